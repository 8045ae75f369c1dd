//! `ctl.conf` of argocd-agentctl: clusters and namespaces under names that somebody gave them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Places;
use crate::failure::{Failure, Outcome};
use crate::yaml;

/// The file, as upstream's tool writes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct File {
    contexts: Contexts,
    default_principal: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Contexts {
    principals: BTreeMap<String, Place>,
    agents: BTreeMap<String, Place>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Place {
    kube_context: String,
    namespace: String,
}

impl File {
    /// Reads a file; one that nobody named need not be there.
    fn read(path: &Path, named: bool) -> Outcome<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => {
                return Ok(Self::default());
            }
            text => text.map_err(|e| Failure::new(format!("reading {}: {e}", path.display())))?,
        };
        serde_saphyr::from_str(&text)
            .map_err(|e| Failure::new(format!("{}: {}", path.display(), yaml::problem(&e, 0))))
    }
}

/// Where upstream's tool keeps it.
fn usual() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(PathBuf::from(home).join(".config/argocd-agent/ctl.conf"))
}

impl Places {
    /// Both sides by their contexts, as upstream's tool finds them: by a context that is given, with the
    /// namespace beside it, else by the name in the file, else by the principal that the file says to
    /// take, else the context that the kubeconfig says.
    pub(super) fn found(&self) -> Outcome<Self> {
        let path = self.config.clone().or_else(usual);
        let file = path.as_deref().map(|path| File::read(path, self.config.is_some()));
        let file = file.transpose()?.unwrap_or_default();
        let given = |context: &Option<String>| context.as_ref().is_some_and(|c| !c.is_empty());
        let mut found = self.clone();
        if !given(&self.principal_context) {
            let usual = file.contexts.principals.get(&file.default_principal);
            let place = match &self.principal {
                Some(name) => Some(named("principal", name, &file.contexts.principals)?),
                None => usual,
            };
            if let Some(place) = place {
                found.principal_context = Some(place.kube_context.clone());
                found.principal_namespace.clone_from(&place.namespace);
            }
        }
        if let Some(name) = self.agent.as_ref().filter(|_| !given(&self.agent_context)) {
            let place = named("agent", name, &file.contexts.agents)?;
            found.agent_context = Some(place.kube_context.clone());
            found.agent_namespace.clone_from(&place.namespace);
        }
        Ok(found)
    }
}

fn named<'a>(what: &str, name: &str, all: &'a BTreeMap<String, Place>) -> Outcome<&'a Place> {
    all.get(name).ok_or_else(|| {
        let known: Vec<_> = all.keys().map(String::as_str).collect();
        let hint = match known.is_empty() {
            true => format!("it has none: use --{what}-context and --{what}-namespace"),
            false => format!("it has {}", known.join(", ")),
        };
        Failure::usage(format!("the configuration has no {what} {name:?}")).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser, Debug)]
    struct Line {
        #[command(flatten)]
        places: Places,
    }

    const FILE: &str = "contexts:\n  principals:\n    main:\n      kube-context: control\n      \
        namespace: argocd-1\n    other:\n      kube-context: spare\n      namespace: argocd-2\n  \
        agents:\n    edge:\n      kube-context: work\n      namespace: argocd-3\n\
        default-principal: main\n";

    fn found(args: &[&str]) -> Outcome<[String; 4]> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), FILE).unwrap();
        let config = ["line", "--config", file.path().to_str().unwrap()];
        let line = Line::try_parse_from(config.iter().chain(args)).unwrap();
        let found = line.places.found()?;
        let contexts =
            [found.principal_context, found.agent_context].map(Option::unwrap_or_default);
        let [control, work] = contexts;
        Ok([control, found.principal_namespace, work, found.agent_namespace])
    }

    #[test]
    fn clusters_are_found_by_context_then_by_name_then_by_default() {
        let is = |args: &[&str], expected: [&str; 4]| {
            assert_eq!(found(args).unwrap(), expected, "{args:?}");
        };
        is(&[], ["control", "argocd-1", "", "argocd"]);
        is(&["--principal", "other"], ["spare", "argocd-2", "", "argocd"]);
        is(&["--agent", "edge"], ["control", "argocd-1", "work", "argocd-3"]);
        let given = ["--principal-context", "x", "--principal", "other", "--agent-context", "y"];
        is(&given, ["x", "argocd", "y", "argocd"]);
    }

    #[test]
    fn a_name_or_a_file_that_is_not_there_is_told() {
        let error = found(&["--principal", "mian"]).unwrap_err();
        assert_eq!(error.message, "the configuration has no principal \"mian\"");
        let line = Line::try_parse_from(["line", "--config", "/nowhere/ctl.conf"]).unwrap();
        assert!(line.places.found().unwrap_err().message.contains("/nowhere/ctl.conf"));
    }
}
