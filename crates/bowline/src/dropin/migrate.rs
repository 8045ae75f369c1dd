//! An installation of argocd-agent as it stands, and the way from it to Bowline.

mod look;
mod plan;
mod variables;

use std::collections::BTreeMap;

use serde::Serialize;

pub(crate) use look::look;
pub(crate) use plan::plan;
pub use variables::Hidden;

/// One side of an installation: a principal, or an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The context of its cluster; none: the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Its namespace.
    pub namespace: String,
    /// What runs it; none if nothing was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// What was found of its Secrets and ConfigMaps.
    pub objects: Vec<Item>,
}

/// What runs one side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// `deployment`, `statefulset` or `pod`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The container in it.
    pub container: String,
    /// Its image.
    pub image: String,
    /// The version, as far as the image says.
    pub version: String,
    /// The words of its command, the program first; none where the image has one.
    pub command: Vec<String>,
    /// Whose its volumes are.
    #[serde(skip)]
    pub volumes: Volumes,
    /// The arguments behind `principal` or `agent`.
    pub args: Vec<String>,
    /// Its variables, from ConfigMaps too.
    pub env: BTreeMap<String, String>,
    /// Those from Secrets, each with its Secret and key, `NAME/KEY`.
    pub secret_env: BTreeMap<String, String>,
    /// Their values: the plan depends on them and shows none.
    #[serde(skip)]
    pub hidden: Hidden,
}

/// Who may write to the volumes of a Pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Volumes {
    /// Whoever their files are made for, which is root with most storage.
    #[default]
    AsMade,
    /// A group that the Pod names, or its namespace for it.
    Group,
}

/// A Secret or a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// `Secret` or `ConfigMap`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What is in it.
    pub holds: String,
    /// When the certificate in it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// An agent that the control plane knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Known {
    /// Its name.
    pub name: String,
    /// Whether the namespace of its name is there.
    pub namespace: bool,
    /// How many Applications are in it.
    pub applications: usize,
    /// `managed`, `autonomous` or `unknown`, as its Applications tell.
    pub mode: &'static str,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Side>,
    /// An agent's cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Side>,
    /// The agents that the control plane knows.
    pub agents: Vec<Known>,
    /// `namespace` or `destination`.
    pub mapping: String,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What it is about.
    pub title: String,
    /// What to run.
    pub commands: Vec<String>,
    /// What stays as it is.
    pub stays: String,
    /// How to see that it worked.
    pub check: Vec<String>,
    /// How to go back.
    pub back: Vec<String>,
}

/// The way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// From here.
    pub found: Found,
    /// What to look at before.
    pub warnings: Vec<String>,
    /// Step by step.
    pub steps: Vec<Step>,
    /// What will be missing or different.
    pub lacks: Vec<String>,
}
