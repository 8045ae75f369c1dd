//! Which hub the client commands talk to: the context file.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Outcome};
use crate::yaml;

/// The context file: `DIR/config.yaml` of `--data DIR`, `BOWLINE_CONFIG`, or the user's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    /// The context that is used if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// All of them.
    #[serde(default)]
    pub contexts: Vec<Context>,
}

/// One hub, and how to be let in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Context {
    /// What it is called.
    pub name: String,
    /// `https://HOST:PORT`; none in an agent's folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The authorities to trust, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// Or a file with them; relative to the context file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Sent as a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The loopback APIs of agents on this machine, by name, for `--at-agent=NAME`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, String>,
}

impl File {
    /// Reads a file; one that is not there is empty.
    pub fn read(path: &Path) -> Outcome<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(Failure::new(format!("reading {}: {error}", path.display()))),
        };
        let mut file: Self = serde_saphyr::from_str(&text)
            .map_err(|e| Failure::new(format!("{}: {}", path.display(), yaml::problem(&e, 0))))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        for context in &mut file.contexts {
            if let Some(ca) = &context.ca_file {
                context.ca_file = Some(folder.join(ca));
            }
        }
        Ok(file)
    }

    /// Writes the file so that only its owner can read the tokens in it.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let value = serde_json::to_value(self).map_err(std::io::Error::other)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // Written beside and moved, so that nobody ever reads half of it; under a name of its own,
        // so that two who write at once do not take each other's file away.
        let beside = beside(path);
        let text = bowline_resources::yaml(&value);
        let written = private(&beside).and_then(|mut file| file.write_all(text.as_bytes()));
        let moved = written.and_then(|()| std::fs::rename(&beside, path));
        if moved.is_err() {
            let _gone = std::fs::remove_file(&beside);
        }
        moved
    }

    /// Adds or replaces a context and makes it the current one.
    pub fn set(&mut self, context: Context) {
        self.current = Some(context.name.clone());
        self.contexts.retain(|c| c.name != context.name);
        self.contexts.push(context);
    }

    /// The context of that name, or the current one, or the only one.
    pub fn pick(&self, name: Option<&str>) -> Option<&Context> {
        let Some(name) = name.or(self.current.as_deref()) else {
            return if self.contexts.len() == 1 { self.contexts.first() } else { None };
        };
        self.contexts.iter().find(|c| c.name == name)
    }
}

impl Context {
    /// The authorities to trust, as PEM.
    pub fn authorities(&self) -> Outcome<Option<Vec<u8>>> {
        if let Some(pem) = &self.ca {
            return Ok(Some(pem.clone().into_bytes()));
        }
        let Some(path) = &self.ca_file else { return Ok(None) };
        let read = std::fs::read(path);
        read.map(Some).map_err(|e| Failure::new(format!("reading {}: {e}", path.display())))
    }
}

/// The folder of `bowline dev`, if nobody names another.
pub const DEV: &str = "bowline-dev";

/// Where the context file is: beside the data, where the environment says, beside the data of a
/// `bowline dev` that was started here, or in the user's folder.
pub fn path(data: Option<&Path>, env: impl Fn(&str) -> Option<String>) -> PathBuf {
    if let Some(path) = named(data, &env) {
        return path;
    }
    let dev = Path::new(DEV).join("config.yaml");
    if dev.is_file() { dev } else { own(env) }
}

/// Where the context file is, if somebody says so.
pub fn named(data: Option<&Path>, env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = || env("BOWLINE_CONFIG").filter(|v| !v.is_empty()).map(PathBuf::from);
    data.map(|data| data.join("config.yaml")).or_else(set)
}

/// The user's own context file.
pub fn own(env: impl Fn(&str) -> Option<String>) -> PathBuf {
    let set = |name: &str| env(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || set("HOME").unwrap_or_default().join(".config");
    set("XDG_CONFIG_HOME").unwrap_or_else(home).join("bowline").join("config.yaml")
}

/// A name beside a file that no other writer uses.
fn beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("yaml.{}-{count}", std::process::id()))
}

/// Makes a file that only its owner can read. What is there under that name is replaced: its
/// rights may be others.
pub fn private(path: &Path) -> std::io::Result<std::fs::File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = std::fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_survives_writing_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/config.yaml");
        let mut file = File::default();
        file.set(Context {
            name: "dev".into(),
            server: "https://127.0.0.1:8080".into(),
            ca: Some("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n".into()),
            token: Some("blt_x".into()),
            agents: [("alpha".to_owned(), "http://127.0.0.1:8502".to_owned())].into(),
            ..Context::default()
        });
        file.write(&path).unwrap();
        assert_eq!(File::read(&path).unwrap(), file);
        assert_eq!(file.pick(None).unwrap().name, "dev");
        assert!(file.pick(Some("prod")).is_none());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn many_may_write_at_once_and_leave_one_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        let file = File {
            current: Some("a".into()),
            contexts: vec![Context { name: "a".into(), ..Context::default() }],
        };
        std::thread::scope(|scope| {
            let write = || (0..50).for_each(|_| file.write(&path).unwrap());
            (0..4).for_each(|_| _ = scope.spawn(write));
        });
        assert_eq!(File::read(&path).unwrap(), file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside");
    }

    #[test]
    fn a_missing_file_is_empty_and_a_bad_one_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        assert_eq!(File::read(&path).unwrap(), File::default());
        std::fs::write(&path, "contexts:\n- name: a\n  sever: x\n").unwrap();
        assert!(File::read(&path).unwrap_err().message.contains("sever"));
    }

    #[test]
    fn the_place_is_data_then_environment_then_home() {
        let env = |name: &str| match name {
            "BOWLINE_CONFIG" => Some("/env.yaml".to_owned()),
            "HOME" => Some("/home/ann".to_owned()),
            _ => None,
        };
        assert_eq!(path(Some(Path::new("/d")), env), Path::new("/d/config.yaml"));
        assert_eq!(path(None, env), Path::new("/env.yaml"));
        let home = |name: &str| env(name).filter(|_| name != "BOWLINE_CONFIG");
        assert_eq!(path(None, home), Path::new("/home/ann/.config/bowline/config.yaml"));
    }
}
