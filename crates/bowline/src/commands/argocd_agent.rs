//! `argocd-agent principal|agent|version`: upstream's command lines, on a hub and an agent of ours.

use std::path::PathBuf;

use bowline_agent::{
    ClientCertificate, Pem, PrincipalLine, PrincipalOptions, PrincipalRoots, PrincipalTransport,
    Versions,
};
use bowline_hub::{HubOptions, Outside};
use bowline_identity::cert::host_names;
use bowline_identity::pem;
use clap::Args;
use serde_json::json;
use tokio::sync::watch;

use super::reload::Kept;
use super::role::{self, Settings, Signals};
use super::{compat, hub, telemetry};
use crate::config::{self, LogFormat};
use crate::connect::Connection;
use crate::dropin::material::Material;
use crate::dropin::objects::Site;
use crate::dropin::{self, CommandLine, Faces, Line};
use crate::failure::{Failure, Outcome};
use crate::print;

/// Run a hub by the command line of `argocd-agent principal`
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(super) struct Principal {
    /// Flags as in docs/argocd-agent-flags.md
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

impl Principal {
    pub(super) fn run(&self, connection: &Connection) -> Outcome {
        principal(&self.flags, connection.data.clone())
    }
}

/// Runs what comes behind the name `argocd-agent`.
pub(crate) fn run(args: &[String]) -> Outcome {
    let data = std::env::var_os("BOWLINE_DATA").map(PathBuf::from);
    match args.split_first() {
        Some((verb, rest)) if verb == "principal" => principal(rest, data),
        Some((verb, rest)) if verb == "agent" => agent(rest, data),
        Some((verb, rest)) if verb == "version" => version(rest),
        Some((verb, _)) if matches!(verb.as_str(), "help" | "-h" | "--help") => print::out(USAGE),
        Some((verb, _)) => Err(Failure::usage(format!("there is no command {verb:?}")).hint(HINT)),
        None => Err(Failure::usage("a command is needed").hint(HINT)),
    }
}

const HINT: &str = "the commands are principal, agent and version";
const USAGE: &str = "Usage: argocd-agent principal|agent|version [flags]\n\n\
    This is Bowline in argocd-agent's place; `argocd-agent COMMAND --help` lists the flags.\n";

fn version(args: &[String]) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    let facts = json!({"name": "bowline", "version": version});
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["-o" | "--output", "text"] => print::out(&format!("bowline-{version}\n")),
        ["-s" | "--short"] => print::out(&format!("{version}\n")),
        ["-o" | "--output", "json"] | ["-ojson" | "--output=json"] => {
            print::out(&format!("{facts:#}\n"))
        }
        ["-o" | "--output", "yaml"] | ["-oyaml" | "--output=yaml"] => {
            print::out(&bowline_resources::yaml(&facts))
        }
        _ => Err(Failure::usage("version takes --short, or --output text|json|yaml")),
    }
}

/// Says what has no effect, in the way that the rest is logged.
fn say(notices: &[String], format: LogFormat) {
    for notice in notices {
        match format {
            LogFormat::Text => print::note(&format!("note: {notice}\n")),
            LogFormat::Json => tracing::warn!("{notice}"),
        }
    }
}

fn principal(args: &[String], data: Option<PathBuf>) -> Outcome {
    let Some(CommandLine { mut meaning, notices }) = dropin::principal(args)? else {
        return Ok(());
    };
    let flags = std::mem::take(&mut meaning.settings);
    let kept = Settings::default().load::<config::Hub>(data.as_deref(), flags)?;
    let Some(kept) = kept else { return Ok(()) };
    let log = &kept.settings().log;
    role::log(log)?;
    role::open_files();
    say(&notices, log.format);
    role::block_on(serve_principal(&kept, meaning))
}

async fn serve_principal(kept: &Kept<config::Hub>, meaning: dropin::Principal) -> Outcome {
    let mut settings = kept.settings().clone();
    let mut signals = Signals::new()?;
    let telemetry = telemetry::start(&settings.telemetry)?;
    let site = Site::open(meaning.access, &meaning.namespace).await?;
    let material = Material::read(site, meaning.faces.sources()).await?;
    let outside = outside_of(&meaning.faces, &material.texts);
    // Our own agents see the hub's own certificate: it is good for the same names.
    settings.san.extend(names(outside.as_ref()));
    let started = hub::start(&settings, |options| as_upstream(options, outside));
    let hub = started.await.map_err(|failure| {
        let (metrics, health) =
            (("--metrics-port", settings.metrics), ("--healthz-port", settings.health));
        role::flagged(failure, &[("--listen-port", settings.listen), metrics, health])
    })?;
    let at = hub.addresses;
    print::out(&format!("ready: hub for agents on {}, API on https://{}\n", at.agents, at.api))?;
    let faces = &meaning.faces;
    let followed = material.follow(|texts| {
        let outside = outside_of(faces, texts).unwrap_or_default();
        hub.set_outside(&outside).map_err(|e| Failure::of(&e))
    });
    let again = || {
        kept.again();
        hub.reload()
    };
    tokio::select! {
        () = signals.until_drain(again) => {}
        () = followed => {}
    }
    hub.drain().await;
    telemetry::finish(telemetry).await;
    Ok(())
}

/// What agents see and are checked by, from the texts in the order of the sources.
/// What no setting says, as upstream's principal has it.
fn as_upstream(options: &mut HubOptions, outside: Option<Outside>) {
    options.outside = outside;
    if let Some(dialect) = &mut options.dialect {
        dialect.series_by_agent = true;
    }
}

fn outside_of(faces: &Faces, texts: &[String]) -> Option<Outside> {
    let authorities = texts.first().cloned();
    match (faces, texts) {
        (Faces::Given { .. }, [_, certificate, key]) => {
            let certificate = Some((certificate.clone(), key.clone()));
            Some(Outside { certificate, authorities })
        }
        (Faces::Own { .. }, _) => Some(Outside { certificate: None, authorities }),
        _ => None,
    }
}

/// The names of the certificate that agents of argocd-agent see.
fn names(outside: Option<&Outside>) -> Vec<String> {
    let certificate = outside.and_then(|o| o.certificate.as_ref());
    let leaf = certificate.and_then(|(chain, _)| pem::certificates(chain).ok());
    let leaf = leaf.map(|mut chain| chain.swap_remove(0));
    leaf.and_then(|leaf| host_names(&leaf).ok()).unwrap_or_default()
}

fn agent(args: &[String], data: Option<PathBuf>) -> Outcome {
    let Some(CommandLine { mut meaning, notices }) = dropin::agent(args)? else {
        return Ok(());
    };
    let flags = std::mem::take(&mut meaning.settings);
    let kept = Settings::default().load::<config::Agent>(data.as_deref(), flags)?;
    let Some(kept) = kept else { return Ok(()) };
    let log = &kept.settings().log;
    role::log(log)?;
    say(&notices, log.format);
    role::block_on(serve_agent(&kept, meaning))
}

async fn serve_agent(kept: &Kept<config::Agent>, meaning: dropin::Agent) -> Outcome {
    let site = Site::open(meaning.access.clone(), &meaning.namespace).await?;
    let material = Material::read(site, meaning.line.sources()).await?;
    let (senders, line) = line(&meaning.line, &material.texts);
    let mut options = super::agent::options(kept.settings())?;
    let (principal, proof) = (principal_of(&meaning, line)?, kept.settings().go_principal.proof.0);
    options.principal = Some(PrincipalOptions { proof, ..principal });
    let followed = material.follow(|texts| {
        for (sender, text) in senders.iter().zip(texts) {
            sender.send_replace(text.clone());
        }
        Ok(())
    });
    tokio::select! {
        ended = super::agent::serve(kept, options) => ended,
        () = followed => Ok(()),
    }
}

fn principal_of(meaning: &dropin::Agent, line: PrincipalLine) -> Outcome<PrincipalOptions> {
    let mut options = PrincipalOptions::new(compat::address(&meaning.host, meaning.port), line);
    options.credentials = compat::credentials(&meaning.creds)?;
    options.mode = meaning.mode;
    options.compression = meaning.compression;
    options.mapping = compat::mapping(meaning.by_destination, meaning.mode)?;
    options.heartbeat = meaning.heartbeat;
    options.keepalive = meaning.keepalive;
    if meaning.websocket {
        options.transport = PrincipalTransport::WebSocket;
    }
    Ok(options)
}

/// The line to the principal, and where to put each text when it changes.
fn line(line: &Line, texts: &[String]) -> (Vec<watch::Sender<String>>, PrincipalLine) {
    let (senders, pieces): (Vec<_>, Vec<_>) = texts
        .iter()
        .cloned()
        .map(watch::channel)
        .map(|(to, from)| (to, Pem::Followed(from)))
        .unzip();
    let mut pieces = pieces.into_iter();
    let tls = match (line, pieces.next(), pieces.next()) {
        (Line::Tls { .. }, Some(certificate), Some(key)) => PrincipalLine::Tls {
            roots: pieces.next().map_or(PrincipalRoots::Insecure, PrincipalRoots::Pem),
            client: Some(ClientCertificate { certificate, key }),
            versions: Versions::Tls12And13,
        },
        _ => PrincipalLine::Plaintext,
    };
    (senders, tls)
}

#[cfg(test)]
mod tests {
    use bowline_hub::DialectOptions;

    use super::*;

    #[test]
    fn upstreams_series_by_agent_are_there_unasked() {
        let mut options = HubOptions::new("unused");
        options.dialect = Some(DialectOptions::new("mtls:CN=([^,]+)"));
        as_upstream(&mut options, None);
        assert!(options.dialect.is_some_and(|dialect| dialect.series_by_agent));
    }
}
