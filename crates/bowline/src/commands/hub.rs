//! `bowline hub`: the control plane.

use std::path::Path;

use bowline_hub::{Hub as Running, HubOptions};
use clap::Args;
use serde_json::json;

use super::reload::Kept;
use super::role::{self, Settings, Signals};
use super::telemetry;
use crate::config;
use crate::connect::Connection;
use crate::context::{Context, File};
use crate::failure::{Failure, Outcome};
use crate::print;
use crate::quantity::Size;

/// How a hub's own context is called, in the file in its folder.
const CONTEXT: &str = "hub";

/// Run a hub
#[derive(Args, Debug)]
pub(super) struct Hub {
    #[command(flatten)]
    settings: Settings,
    /// Where agents connect
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where people and programs connect
    #[arg(long, value_name = "ADDR")]
    api: Option<String>,
    /// Where Prometheus reads, or off
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
    /// Where probes ask, or off
    #[arg(long, value_name = "ADDR")]
    health: Option<String>,
    /// A name or address that the hub's certificate is good for; may be repeated
    #[arg(long, value_name = "NAME")]
    san: Vec<String>,
    /// The kubeconfig of the control-plane cluster, where people say what they want
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
    /// The control plane is the cluster that this runs in
    #[arg(long, conflicts_with = "kubeconfig")]
    in_cluster: bool,
    /// The namespace of Argo CD on the control plane
    #[arg(long, short = 'n', value_name = "NAME")]
    namespace: Option<String>,
    /// How an Application finds its agent: namespace or destination
    #[arg(long, value_name = "KIND")]
    mapping: Option<String>,
    /// Let agents of argocd-agent in, unmodified: mtls:REGEX, userpass:FILE, as its --auth
    #[arg(long = "go-agents", value_name = "METHOD")]
    go_agents: Option<String>,
    /// A file with your own CA, certificate and key as PEM, instead of one made here; or a folder with tls.crt
    /// and tls.key, as a Secret is mounted
    #[arg(long = "with-ca", value_name = "PATH")]
    own_ca: Option<std::path::PathBuf>,
    /// Go on though the store has lost what it acknowledged, or is gone; agents prove what is missing
    #[arg(long)]
    accept_loss: bool,
}

impl Hub {
    pub(super) fn run(self, connection: &Connection) -> Outcome {
        let mut flags = role::given(&[
            ("listen", &self.listen),
            ("api", &self.api),
            ("metrics", &self.metrics),
            ("health", &self.health),
            ("control-plane.kubeconfig", &self.kubeconfig),
            ("control-plane.namespace", &self.namespace),
            ("control-plane.mapping", &self.mapping),
            ("go-agents.auth", &self.go_agents),
        ]);
        let kubeconfig = self.kubeconfig.as_ref();
        flags.extend(role::reach("control-plane.reach", kubeconfig, self.in_cluster));
        if !self.san.is_empty() {
            flags.push(("san".into(), json!(self.san)));
        }
        let kept = self.settings.load::<config::Hub>(connection.data.as_deref(), flags)?;
        let Some(kept) = kept else { return Ok(()) };
        role::log(&kept.settings().log)?;
        role::open_files();
        let ca = self.own_ca.as_deref().map(read).transpose()?;
        role::block_on(serve(&kept, ca, self.accept_loss))
    }
}

fn read(path: &Path) -> Outcome<String> {
    let file = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|e| Failure::new(format!("reading {}: {e}", path.display())))
    };
    if !path.is_dir() {
        return file(path);
    }
    Ok(format!("{}\n{}", file(&path.join("tls.crt"))?, file(&path.join("tls.key"))?))
}

async fn serve(kept: &Kept<config::Hub>, ca: Option<String>, accept_loss: bool) -> Outcome {
    let settings = kept.settings();
    let mut signals = Signals::new()?;
    let telemetry = telemetry::start(&settings.telemetry)?;
    let started = start(settings, |options| (options.ca, options.accept_loss) = (ca, accept_loss));
    // The control plane may be slow to answer.
    let Some(started) = signals.unless_drained(started).await else { return Ok(()) };
    let hub = started.map_err(|failure| {
        let (metrics, health) = (("--metrics", settings.metrics), ("--health", settings.health));
        let ports = [("--listen", settings.listen), ("--api", settings.api), metrics, health];
        role::flagged(failure, &ports)
    })?;
    if hub.first_token.is_some() {
        let file = settings.data.join("config.yaml");
        print::note(&format!("the first token, for everything, is in {}\n", file.display()));
    }
    let at = hub.addresses;
    print::out(&format!("ready: hub for agents on {}, API on https://{}\n", at.agents, at.api))?;
    let again = || {
        kept.again();
        hub.reload()
    };
    signals.until_drain(again).await;
    hub.drain().await;
    telemetry::finish(telemetry).await;
    Ok(())
}

/// The token for everything that is in a hub's folder.
pub(super) fn token(data: &Path) -> Outcome<Option<String>> {
    let contexts = File::read(&data.join("config.yaml"))?;
    Ok(contexts.pick(Some(CONTEXT)).and_then(|c| c.token.clone()))
}

/// Starts a hub and writes its context file, with a token for everything. `adjust` sets what is no
/// setting.
pub(super) async fn start(
    settings: &config::Hub,
    adjust: impl FnOnce(&mut HubOptions),
) -> Outcome<Running> {
    let mut options = HubOptions::new(&settings.data);
    let port = |name: &str, listen: config::Listen| {
        listen.address().ok_or_else(|| Failure::usage(format!("{name} cannot be off")))
    };
    options.agents = port("listen", settings.listen)?;
    options.api = port("api", settings.api)?;
    options.api_certificate = settings.api_tls.files();
    options.token_key_age = settings.session_tokens.key_age.0;
    options.metrics = settings.metrics.address();
    options.health = settings.health.address();
    options.sans.splice(0..0, settings.san.iter().cloned());
    options.plane = settings.control_plane.options().map_err(role::wrong)?;
    let dialect = settings.go_agents.options(&settings.control_plane.namespace);
    options.dialect = dialect.map_err(role::wrong)?;
    options.keepalive = settings.keepalive.options();
    options.audit_age = settings.audit.retention.0;
    options.audit_entries = settings.audit.entries;
    options.limits.message = size(settings.limits.message);
    options.flow.window = size(settings.limits.in_flight_per_link);
    options.flow.total = size(settings.limits.in_flight);
    options.requests_per_second = settings.limits.requests_per_second;
    adjust(&mut options);
    let file = settings.data.join("config.yaml");
    let mut contexts = File::read(&file)?;
    let known = contexts.pick(Some(CONTEXT)).and_then(|c| c.token.clone());
    // The first start may have ended before its token was written down, and it is nowhere else.
    // Whoever owns this folder owns the CA: a token for everything gives them nothing new.
    options.new_admin = known.is_none();
    let hub = Running::start(options).await.map_err(|e| match e.hint() {
        Some(hint) => Failure::of(&e).hint(hint),
        None => Failure::of(&e),
    })?;
    let host = host(settings);
    contexts.set(Context {
        name: CONTEXT.into(),
        server: format!("https://{host}:{}", hub.addresses.api.port()),
        ca: Some(hub.trust()),
        token: hub.first_token.clone().or(known),
        ..Context::default()
    });
    contexts.write(&file).map_err(|e| Failure::new(format!("writing {}: {e}", file.display())))?;
    Ok(hub)
}

/// The name by which this machine reaches its own hub: names that are good elsewhere may mean
/// nothing here, and localhost is always in the certificate.
fn host(settings: &config::Hub) -> String {
    match settings.api.address().map(|at| at.ip()) {
        Some(ip) if !ip.is_unspecified() && !ip.is_loopback() => {
            let literal = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
            settings.san.first().cloned().unwrap_or(literal)
        }
        _ => "localhost".to_owned(),
    }
}

fn size(size: Size) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ca_is_one_file_or_the_two_of_a_secret() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("tls.crt"), "cert").unwrap();
        let lacking = read(folder.path()).unwrap_err();
        assert!(lacking.message.contains("tls.key"), "{}", lacking.message);
        std::fs::write(at("tls.key"), "key").unwrap();
        assert_eq!(read(folder.path()).unwrap(), "cert\nkey");
        assert_eq!(read(&at("tls.key")).unwrap(), "key");
    }

    #[test]
    fn a_hub_is_reached_by_localhost_on_its_own_machine() {
        let mut settings =
            config::Hub { san: vec!["hub.example.com".into()], ..Default::default() };
        assert_eq!(host(&settings), "localhost");
        settings.api = "10.0.0.5:8080".parse().unwrap();
        assert_eq!(host(&settings), "hub.example.com", "nothing listens on localhost");
    }
}
