//! The flows: what is there before, what somebody does, and how everything must be in the end.

use std::fmt;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::scene::Ground;
use super::{autonomous, managed};

/// Every flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flow {
    Managed(managed::Flow),
    Autonomous(autonomous::Flow),
}

impl Flow {
    /// All of them.
    pub(crate) fn all() -> Vec<Self> {
        let managed = managed::Flow::ALL.iter().copied().map(Self::Managed);
        managed.chain(autonomous::Flow::ALL.iter().copied().map(Self::Autonomous)).collect()
    }

    /// The three that fit a push: down, up, and both ways.
    pub(crate) fn few() -> Vec<Self> {
        let both = Self::Managed(managed::Flow::Sync);
        vec![Self::Managed(managed::Flow::Update), both, Self::Autonomous(autonomous::Flow::Status)]
    }

    /// Makes what is there before.
    pub(crate) async fn prepare(self, play: &Play<'_>) -> Result<()> {
        match self {
            Self::Managed(flow) => flow.prepare(play).await,
            Self::Autonomous(flow) => flow.prepare(play).await,
        }
    }

    /// Somebody does something.
    pub(crate) async fn act(self, play: &Play<'_>) -> Result<()> {
        match self {
            Self::Managed(flow) => flow.act(play).await,
            Self::Autonomous(flow) => flow.act(play).await,
        }
    }

    /// Complains unless everything is as the flow says.
    pub(crate) async fn look(self, play: &Play<'_>) -> Result<()> {
        match self {
            Self::Managed(flow) => flow.look(play).await,
            Self::Autonomous(flow) => flow.look(play).await,
        }
    }

    /// Removes what was made, at its owner's.
    pub(crate) async fn clear(self, play: &Play<'_>) -> Result<()> {
        match self {
            Self::Managed(flow) => flow.clear(play).await,
            Self::Autonomous(flow) => flow.clear(play).await,
        }
    }

    /// The name of its object in a round.
    pub(crate) fn object(self, round: u64) -> String {
        let name = match self {
            Self::Managed(flow) => format!("{flow:?}"),
            Self::Autonomous(flow) => format!("{flow:?}"),
        };
        format!("{}-{round}", name.to_lowercase())
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Managed(flow) => format!("managed {flow:?}"),
            Self::Autonomous(flow) => format!("autonomous {flow:?}"),
        };
        f.pad(&text.to_lowercase())
    }
}

/// A flow's part of the ground.
pub(crate) struct Play<'a> {
    pub(crate) ground: &'a Ground,
    /// The name of its object.
    pub(crate) name: String,
}

/// Complains unless a field is so.
pub(crate) fn is(object: &Value, pointer: &str, wanted: &Value) -> Result<()> {
    let found = object.pointer(pointer).unwrap_or(&Value::Null);
    ensure!(found == wanted, "{pointer} is {found}, not {wanted}");
    Ok(())
}

/// What must be there.
pub(crate) fn there(object: Option<Value>, whose: &str) -> Result<Value> {
    object.with_context(|| format!("{whose} is not there"))
}

/// Complains of what must be gone.
pub(crate) fn gone(object: Option<Value>, whose: &str) -> Result<()> {
    ensure!(object.is_none(), "{whose} is still there");
    Ok(())
}
