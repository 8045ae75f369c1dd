//! What the commands that start a role share: settings, logs, signals.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::fmt::writer::OptionalWriter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use super::reload::Kept;
use crate::config::{self, Listen, Log, LogFormat, Role};
use crate::failure::{BUSY, Failure, Outcome, chain};
use crate::print;

/// Flags of every role.
#[derive(Args, Debug, Default)]
pub(super) struct Settings {
    /// A YAML file with the role's settings
    #[arg(long, value_name = "FILE", env = "BOWLINE_SETTINGS")]
    config: Option<PathBuf>,
    /// A preset: edge, node or cluster
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// What is logged: info, or by module
    #[arg(long, value_name = "FILTER")]
    log_level: Option<String>,
    /// How it is logged: text or json
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Check the settings and end
    #[arg(long)]
    check_config: bool,
    /// Print the settings in effect, each with where it came from, and end
    #[arg(long)]
    dump_config: bool,
}

impl Settings {
    /// The settings, or none if they were only to be looked at.
    pub(super) fn load<R: Role>(
        &self,
        data: Option<&Path>,
        mut flags: Vec<(String, Value)>,
    ) -> Outcome<Option<Kept<R>>> {
        flags.extend(data.map(|d| ("data".to_owned(), json!(d))));
        let texts = [
            ("profile", &self.profile),
            ("log.level", &self.log_level),
            ("log.format", &self.log_format),
        ];
        flags.extend(
            texts.into_iter().filter_map(|(k, v)| Some((k.to_owned(), json!(v.as_ref()?)))),
        );
        let kept = Kept::read(self.config.clone(), flags);
        let kept = kept.map_err(|e: config::Error| Failure::usage(chain(&e)))?;
        if self.dump_config {
            print::out(&kept.loaded().dump())?;
            return Ok(None);
        }
        if self.check_config {
            print::out("the settings are good\n")?;
            return Ok(None);
        }
        Ok(Some(kept))
    }
}

/// Flags that are set, by the path of their setting.
pub(super) fn given(flags: &[(&str, &Option<String>)]) -> Vec<(String, Value)> {
    let set = flags.iter().filter_map(|(k, v)| Some(((*k).to_owned(), json!(v.as_ref()?))));
    set.collect()
}

/// How a cluster is reached, by the flags that say so.
pub(super) fn reach(
    name: &str,
    kubeconfig: Option<&String>,
    in_cluster: bool,
) -> Option<(String, Value)> {
    let reach = match (kubeconfig, in_cluster) {
        (_, true) => "in-cluster",
        (Some(_), _) => "kubeconfig",
        (None, false) => return None,
    };
    Some((name.to_owned(), json!(reach)))
}

/// Changes what is logged; there once logging has begun.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging to standard error.
pub(super) fn log(settings: &Log) -> Outcome {
    let (filter, handle) = reload::Layer::new(settings.filter().map_err(wrong)?);
    let to = || match HUSHED.load(Ordering::Relaxed) {
        true => OptionalWriter::none(),
        false => OptionalWriter::some(std::io::stderr()),
    };
    let lines = fmt::layer().with_writer(to);
    let lines = match settings.format {
        LogFormat::Text => lines.with_ansi(print::colour()).boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // Whoever started logging before this keeps it: a role inside a test, say.
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_ok() {
        let _first = FILTER.set(handle);
    }
    Ok(())
}

/// Logs at another level from now on.
pub(super) fn relog(settings: &Log) -> Outcome {
    let filter = settings.filter().map_err(wrong)?;
    match FILTER.get() {
        Some(handle) => handle.reload(filter).map_err(|e| Failure::new(e.to_string())),
        None => Ok(()),
    }
}

/// The same failure; where a port is taken, with the flag that chooses another.
pub(super) fn flagged(failure: Failure, flags: &[(&str, Listen)]) -> Failure {
    if failure.hint.as_deref() != Some(BUSY) {
        return failure;
    }
    let named = |listen: &Listen| {
        let address = listen.to_string();
        failure.message.split_whitespace().any(|word| word.trim_end_matches(':') == address)
    };
    match flags.iter().find(|(_, listen)| named(listen)) {
        Some((flag, _)) => failure.hint(format!(
            "another process listens there: end it, or choose another address with {flag}"
        )),
        None => failure,
    }
}

/// Set when nothing more is worth a line.
static HUSHED: AtomicBool = AtomicBool::new(false);

/// Ends logging: where hub and agents end together, each line between them breaks, which is no news.
pub(super) fn hush() {
    HUSHED.store(true, Ordering::Relaxed);
}

/// A setting that its role does not take.
pub(super) fn wrong((setting, why): config::Wrong) -> Failure {
    Failure::usage(format!("{setting}: {why}"))
}

/// Runs a role on all cores.
pub(super) fn block_on<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|e| Failure::new(format!("starting the runtime: {e}")))?.block_on(work)
}

/// Listens for signals.
pub(super) struct Signals {
    hup: Signal,
    term: Signal,
    int: Signal,
}

impl Signals {
    pub(super) fn new() -> Outcome<Self> {
        let on =
            |kind| signal(kind).map_err(|e| Failure::new(format!("listening for signals: {e}")));
        Ok(Self {
            hup: on(SignalKind::hangup())?,
            term: on(SignalKind::terminate())?,
            int: on(SignalKind::interrupt())?,
        })
    }

    /// What comes of `work`, or none if SIGTERM or SIGINT comes first.
    pub(super) async fn unless_drained<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = drained(&mut self.term, &mut self.int) => None,
        }
    }

    /// Reloads at each SIGHUP, until SIGTERM or SIGINT says to end in good order.
    pub(super) async fn until_drain<E: std::error::Error + 'static>(
        &mut self,
        reload: impl Fn() -> Result<(), E>,
    ) {
        drop(tokio::spawn(crate::footprint::settle()));
        loop {
            tokio::select! {
                _ = self.hup.recv() => {}
                () = drained(&mut self.term, &mut self.int) => return,
            }
            match reload() {
                Ok(()) => tracing::info!("certificates read again"),
                Err(error) => {
                    tracing::error!(error = %chain(&error), "certificates kept as they were");
                }
            }
        }
    }
}

async fn drained(term: &mut Signal, int: &mut Signal) {
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

/// Lets as many files be open as the system allows: a link is a file.
pub(super) fn open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // The soft limit is only ever raised to the hard one.
    let _refused = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_port_names_its_flag() {
        let busy = |address: &str| {
            Failure::new(format!("listening on {address}: address in use")).hint(BUSY)
        };
        let at = |text: &str| text.parse::<Listen>().unwrap();
        let flags = [("--listen", at("127.0.0.1:80")), ("--api", at("127.0.0.1:8080"))];
        let told = |address: &str| flagged(busy(address), &flags).hint.unwrap();
        assert!(told("127.0.0.1:8080").ends_with("with --api"));
        assert!(told("127.0.0.1:80").ends_with("with --listen"));
        assert_eq!(told("127.0.0.1:1"), BUSY);
    }
}
