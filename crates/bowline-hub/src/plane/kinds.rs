//! Which kinds are taken from the cluster, and how far each has been told. One that cannot be listed
//! holds up nothing but itself.

use bowline_resources::argocd::GROUP;

/// A kind that is taken from the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) reach: Reach,
    /// Only objects with these labels.
    pub(super) labels: Option<&'static str>,
}

/// Which namespaces a kind is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Argo CD's own.
    Own,
    /// All of them.
    All,
}

/// How far a kind has been told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Told {
    /// Not yet; it would look like everything was gone.
    #[default]
    Waits,
    /// It cannot be, until somebody does something about this.
    Cannot(String),
    /// All of it.
    Listed,
    /// All of it once, and at present nothing new, until somebody does something about this.
    Lapsed(String),
}

impl Told {
    /// Whether what was told can be relied on: what was told once stays told.
    pub(super) fn is_known(&self) -> bool {
        matches!(self, Self::Listed | Self::Lapsed(_))
    }
}

/// What is taken from every control plane, and these kinds.
pub(super) fn taken(more: &[(String, String)]) -> Vec<Taken> {
    let of = |group: &str, kind: &str, reach| Taken {
        group: group.into(),
        kind: kind.into(),
        reach,
        labels: None,
    };
    let repositories = Some("argocd.argoproj.io/secret-type in (repository,repo-creds)");
    let mut all = vec![
        of(GROUP, "Application", Reach::All),
        of(GROUP, "AppProject", Reach::Own),
        Taken { labels: repositories, ..of("", "Secret", Reach::Own) },
        of("", "ConfigMap", Reach::Own),
    ];
    for (group, kind) in more {
        let known = all.iter().any(|t| t.group == *group && t.kind == *kind);
        if !known {
            all.push(of(group, kind, Reach::All));
        }
    }
    all
}
