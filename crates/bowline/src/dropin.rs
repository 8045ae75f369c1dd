//! argocd-agent's place, taken: its command lines, its Secrets and ConfigMaps, and the way from it to
//! here. Under the name `argocd-agent` (a link to the binary) upstream's command lines work as they
//! stand; `flags` holds what becomes of each flag.

mod agent;
pub(crate) mod authority;
pub(crate) mod cluster_secret;
mod duration;
mod flags;
mod given;
mod log;
pub(crate) mod material;
pub mod migrate;
pub(crate) mod objects;
mod page;
mod principal;

use std::fmt::Write as _;
use std::path::Path;

use bowline_kube::Access;

pub(crate) use agent::{Agent, Line};
pub(crate) use principal::{Faces, Principal};

use self::flags::{AGENT, Effect, Flag, PRINCIPAL};
use self::given::{Error, Given};
use crate::failure::{Failure, Outcome};
use crate::print;

pub use page::page;

/// A command line of argocd-agent.
pub(crate) struct CommandLine<T> {
    /// What it means here.
    pub(crate) meaning: T,
    /// What to say at the start: flags without effect, and variables that are left alone.
    pub(crate) notices: Vec<String>,
}

/// Reads the command line of `argocd-agent principal`; none if it asked for help, which was given.
pub(crate) fn principal(args: &[String]) -> Outcome<Option<CommandLine<Principal>>> {
    let Some(given) = read("principal", PRINCIPAL, args)? else { return Ok(None) };
    let mount = Path::new("/var/run/secrets/kubernetes.io/serviceaccount/namespace");
    let pod = std::fs::read_to_string(mount).ok();
    let meaning = Principal::of(&given, pod.as_deref().map(str::trim))?;
    Ok(Some(CommandLine { meaning, notices: notices(&given) }))
}

/// Reads the command line of `argocd-agent agent`; none if it asked for help, which was given.
pub(crate) fn agent(args: &[String]) -> Outcome<Option<CommandLine<Agent>>> {
    let Some(given) = read("agent", AGENT, args)? else { return Ok(None) };
    let meaning = Agent::of(&given)?;
    Ok(Some(CommandLine { meaning, notices: notices(&given) }))
}

fn read(role: &str, table: &'static [Flag], args: &[String]) -> Outcome<Option<Given>> {
    match Given::read(table, args, |name| std::env::var(name).ok()) {
        Ok(given) => Ok(Some(given)),
        Err(Error::Help) => print::out(&help(role, table)).map(|()| None),
        Err(error) => {
            let hint = format!("`argocd-agent {role} --help` lists all flags");
            Err(Failure::usage(error.to_string()).hint(hint))
        }
    }
}

fn notices(given: &Given) -> Vec<String> {
    let without = given.without_effect().into_iter();
    let without = without.map(|n| format!("{} has no effect here: {}", n.flag, n.why));
    given.warnings.iter().cloned().chain(without).collect()
}

fn help(role: &str, table: &[Flag]) -> String {
    let mut out = format!("Usage: argocd-agent {role} [flags]\n\n");
    for flag in table.iter().filter(|flag| !flag.name.is_empty()) {
        let short = flag.short.map_or("    ".to_owned(), |c| format!("-{c}, "));
        let words = match flag.effect {
            Effect::Same(words) => words.to_owned(),
            Effect::Nothing(why) | Effect::Missing { why, .. } => format!("no effect: {why}"),
        };
        let default = match flag.default {
            "" | "false" => String::new(),
            default => format!(" (default {default})"),
        };
        let _ = writeln!(out, "  {short}--{}\n          {words}{default}", flag.name);
    }
    out
}

/// How the cluster is reached: by a kubeconfig if one is named, or if this is no pod.
fn reach(given: &Given) -> Access {
    let (path, context) = (given.some("kubeconfig"), given.some("kubecontext"));
    let pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    if path.is_none() && context.is_none() && pod {
        return Access::InCluster;
    }
    Access::Kubeconfig { path: path.map(Into::into), context }
}

fn reach_name(access: &Access) -> &'static str {
    match access {
        Access::InCluster => "in-cluster",
        Access::Infer | Access::Kubeconfig { .. } => "kubeconfig",
    }
}
