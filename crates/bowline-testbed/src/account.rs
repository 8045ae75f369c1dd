//! Accounts on a cluster, so that what is tried there has the rights that it has in earnest.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{Rights, kubectl};

/// How long the longest run may take.
const LIFE: &str = "--duration=24h";

/// An account on a cluster that may do what its rights say, and no more. It goes when
/// this is dropped.
#[derive(Debug)]
pub struct Account {
    admin: PathBuf,
    objects: String,
    kubeconfig: tempfile::NamedTempFile,
}

impl Account {
    /// Makes an account for a scene, by the administrator's kubeconfig, where Argo CD is in the
    /// namespace `argocd`.
    ///
    /// # Panics
    ///
    /// When the cluster does not take the rights, or not in time.
    pub fn new(rights: &Rights, admin: &Path, scene: &str, argocd: &str) -> Self {
        let role = rights.role;
        let (home, name) = (format!("{scene}-{role}"), format!("bowline-{role}-{scene}"));
        let objects = rights.objects(&home, &name, argocd);
        let ask = |args: &[&str], input: Option<&str>| {
            kubectl(admin, args, input).unwrap_or_else(|e| panic!("the rights of {name}: {e}"))
        };
        ask(&["apply", "--server-side", "-f", "-"], Some(&objects));
        let token = ask(&["create", "token", &name, "-n", &home, LIFE], None);
        let kubeconfig = tempfile::NamedTempFile::new().expect("a file for a kubeconfig");
        let text = std::fs::read_to_string(admin).expect("the administrator's kubeconfig");
        std::fs::write(kubeconfig.path(), with_token(&text, token.trim())).expect("a kubeconfig");
        let account = Self { admin: admin.to_owned(), objects, kubeconfig };
        account.until_it_counts(argocd);
        account
    }

    /// How it reaches the cluster.
    pub fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }

    /// The same, as a flag's value.
    ///
    /// # Panics
    ///
    /// Where files for a while have names that are no text.
    pub fn flag(&self) -> &str {
        self.kubeconfig().to_str().expect("a path of plain text")
    }

    /// An API server takes rights up a moment after they were made.
    fn until_it_counts(&self, argocd: &str) {
        let start = Instant::now();
        // By a rule of the namespace, and by one that may be the whole cluster's.
        for resource in ["secrets", "applications.argoproj.io"] {
            let may = ["auth", "can-i", "list", resource, "-n", argocd];
            while kubectl(self.kubeconfig(), &may, None).is_err() {
                assert!(start.elapsed() < Duration::from_secs(60), "the rights do not take effect");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let delete = ["delete", "--ignore-not-found", "--wait=false", "-f", "-"];
        let _left = kubectl(&self.admin, &delete, Some(&self.objects));
    }
}

/// The kubeconfig of the test bed's administrator, for somebody else.
fn with_token(kubeconfig: &str, token: &str) -> String {
    let (before, rest) = kubeconfig.split_once("token: \"").expect("a token in the kubeconfig");
    let (_, after) = rest.split_once('"').expect("the token ends");
    format!("{before}token: \"{token}\"{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_for_somebody_else_differs_by_the_token_alone() {
        let admin = "- name: c\n  cluster: {}\n  user: {token: \"old\"}\n";
        let other = with_token(admin, "new");
        assert_eq!(other, "- name: c\n  cluster: {}\n  user: {token: \"new\"}\n");
    }
}
