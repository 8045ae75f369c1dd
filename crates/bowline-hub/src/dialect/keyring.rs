//! What agents prove their names with and what signs their tokens, as it is now: a file or a Secret that
//! changes is taken while the hub runs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bowline_argocd::auth::{Method, Users};
use bowline_argocd::claims::Signer;
use bowline_identity::files;
use bowline_kube::{Heard, Watch};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;

use super::{DialectError, DialectOptions, TokenKey};
use crate::plane::Plane;
use crate::state::State;

/// How often files are looked at, and what could not be read.
const LOOK: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 5000 });
/// Secrets that may wait to be checked for one address. Whoever sends more guesses than that must not
/// have everybody else wait behind them.
const MOST_WAITING: usize = 64;
/// The field of a Secret that holds the key.
const FIELD: &str = "jwt.key";

/// Users, and a signer.
pub(super) struct Keyring {
    /// Where the users are, if agents come by name and secret.
    users_file: Option<PathBuf>,
    key: TokenKey,
    /// Where a key is kept that nobody gave.
    kept: PathBuf,
    /// How long access tokens are good.
    life: Duration,
    now: RwLock<Now>,
    /// Secrets that are checked at a time: that is slow on purpose, and whoever floods the port with
    /// guesses must leave the processors to the agents that are here.
    checks: Arc<Semaphore>,
    /// How many wait for that, by where they come from.
    waiting: Mutex<BTreeMap<IpAddr, usize>>,
}

/// There are too many logins from one address at a time.
#[derive(Debug, thiserror::Error)]
#[error("too many logins from {0} at a time: come again later")]
pub(super) struct Crowded(IpAddr);

/// One that waits; no longer once it is dropped, also when whoever asked has hung up.
struct Waits<'a>(&'a Keyring, IpAddr);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting.lock();
        if let Some(count) = waiting.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.1);
            }
        }
    }
}

#[derive(Clone)]
struct Now {
    /// What was read last, and what it means.
    users: (String, Arc<Users>),
    signer: (String, Arc<Signer>),
}

/// What has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    users: bool,
    key: bool,
}

impl Keyring {
    /// Reads, or makes, what is needed. `data` is the hub's folder.
    pub(super) async fn open(
        options: &DialectOptions,
        method: &Method,
        data: &Path,
        plane: Option<&Plane>,
    ) -> Result<Self, DialectError> {
        let users_file = match method {
            Method::UserPass { file } => Some(file.clone()),
            _ => None,
        };
        let (key, life) = (options.key.clone(), options.token_life);
        let kept = data.join("pki").join("argocd-agent-jwt.pem");
        let users = match &users_file {
            Some(file) => read(file)?,
            None => String::new(),
        };
        let pem = pem(&key, &kept, plane).await?;
        let half = std::thread::available_parallelism().map_or(1, |all| all.get().div_ceil(2));
        let checks = Arc::new(Semaphore::new(half));
        let now = Now { users: used(users_file.as_deref(), users), signer: signer(pem, life)? };
        let (now, waiting) = (RwLock::new(now), Mutex::default());
        Ok(Self { users_file, key, kept, life, now, checks, waiting })
    }

    fn users(&self) -> Arc<Users> {
        self.now.read().users.1.clone()
    }

    fn wait(&self, from: IpAddr) -> Result<Waits<'_>, Crowded> {
        let mut waiting = self.waiting.lock();
        let count = waiting.entry(from).or_default();
        if *count >= MOST_WAITING {
            return Err(Crowded(from));
        }
        *count += 1;
        Ok(Waits(self, from))
    }

    /// Whether this is the secret of that agent.
    pub(super) async fn check(
        &self,
        from: IpAddr,
        name: String,
        secret: String,
    ) -> Result<bool, Crowded> {
        let waits = self.wait(from)?;
        let Ok(turn) = self.checks.clone().acquire_owned().await else { return Ok(false) };
        drop(waits);
        let users = self.users();
        let check = move || {
            let known = users.check(&name, &secret);
            // Held to the end of the work, also when whoever asked has hung up.
            drop(turn);
            known
        };
        Ok(tokio::task::spawn_blocking(check).await.unwrap_or(false))
    }

    /// What signs tokens, and tells whether one was signed here.
    pub(super) fn signer(&self) -> Arc<Signer> {
        self.now.read().signer.1.clone()
    }

    /// Whether an agent may still come, as far as its name says.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.users_file.is_none() || self.users().has(name)
    }

    /// Reads everything again. What cannot be used leaves the former in use.
    pub(super) async fn look(&self, plane: Option<&Plane>) -> Result<News, DialectError> {
        let mut news = News::default();
        if let Some(file) = &self.users_file {
            let text = read(file)?;
            if text != self.now.read().users.0 {
                self.now.write().users = used(Some(file), text);
                news.users = true;
            }
        }
        let pem = pem(&self.key, &self.kept, plane).await?;
        if pem != self.now.read().signer.0 {
            self.now.write().signer = signer(pem, self.life)?;
            news.key = true;
        }
        Ok(news)
    }

    fn has_files(&self) -> bool {
        self.users_file.is_some() || matches!(self.key, TokenKey::File(_))
    }

    async fn watch(&self, plane: Option<&Plane>) -> Option<Watch> {
        let TokenKey::Secret(_) = &self.key else { return None };
        match plane?.secrets().await {
            Ok(watch) => Some(watch),
            Err(error) => {
                tracing::warn!(%error, "the Secret with the key of tokens is looked at now and then");
                None
            }
        }
    }

    /// Waits until it is worth a look. Nobody tells when what failed would succeed.
    async fn until_worth(&self, watch: &mut Option<Watch>, failed: bool) {
        let pause = tokio::time::sleep(LOOK);
        let (Some(watch), TokenKey::Secret(name)) = (watch, &self.key) else {
            return pause.await;
        };
        tokio::pin!(pause);
        loop {
            let heard = tokio::select! {
                heard = watch.next() => heard,
                () = &mut pause, if failed || self.has_files() => return,
            };
            match heard {
                Heard::Put(object) if object.metadata.name == *name => return,
                Heard::Trouble(error) => {
                    tracing::warn!(%error, "the Secret with the key of tokens is not told at present");
                }
                Heard::Put(_) | Heard::Gone { .. } | Heard::Missed { .. } | Heard::Listed => {}
            }
        }
    }
}

/// Takes what changes until it is dropped.
pub(crate) async fn follow(state: Arc<State>) {
    let Some(dialect) = state.dialect.clone() else { return };
    let (keys, plane) = (&dialect.keys, state.plane.as_deref());
    if !keys.has_files() && keys.key == TokenKey::Kept {
        return;
    }
    let mut watch = keys.watch(plane).await;
    let mut trouble = String::new();
    loop {
        keys.until_worth(&mut watch, !trouble.is_empty()).await;
        match keys.look(plane).await {
            Ok(news) => {
                trouble.clear();
                if news.users {
                    tracing::info!("the file of names and secrets is read again");
                    dialect.enforce(&state);
                }
                if news.key {
                    tracing::info!("the key of tokens is another: agents authenticate anew");
                    if let Some(plane) = plane {
                        plane.resign();
                    }
                }
            }
            Err(error) => {
                let why = crate::plane::chain(&error);
                if why != trouble {
                    tracing::warn!(error = why, "what was read before stays in use");
                    trouble = why;
                }
            }
        }
    }
}

fn used(file: Option<&Path>, text: String) -> (String, Arc<Users>) {
    let (users, skipped) = Users::parse(&text);
    for line in skipped {
        let file = file.map(|file| file.display().to_string());
        tracing::warn!(file, ?line, "a line is not used");
    }
    (text, Arc::new(users))
}

fn signer(pem: String, life: Duration) -> Result<(String, Arc<Signer>), DialectError> {
    let signer = Signer::from_pem(&pem)?.with_access_life(life);
    Ok((pem, Arc::new(signer)))
}

async fn pem(key: &TokenKey, kept: &Path, plane: Option<&Plane>) -> Result<String, DialectError> {
    match (key, plane) {
        (TokenKey::File(path), _) => read(path),
        (TokenKey::Kept, _) => kept_key(kept),
        (TokenKey::Secret(name), Some(plane)) => plane.secret_text(name, FIELD).await,
        (TokenKey::Secret(name), None) => Err(DialectError::NoCluster(name.clone())),
    }
}

fn read(path: &Path) -> Result<String, DialectError> {
    std::fs::read_to_string(path)
        .map_err(|source| DialectError::File { path: path.to_owned(), source })
}

fn kept_key(path: &Path) -> Result<String, DialectError> {
    if path.exists() {
        return read(path);
    }
    let pem = Signer::generate_pem()?;
    files::write(path, pem.as_bytes(), files::Access::Private)?;
    Ok(pem)
}

#[cfg(test)]
mod tests;
