//! What is kept on the principal's behalf, beside what it wants.

use bowline_types::Body;
use serde::{Deserialize, Serialize};

/// The body of a record of what the principal was asked about and has not. A principal on another
/// cluster, or on an emptied one, says so of everything; so it is no order to delete, but an absence,
/// of which only so many take effect without a person's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lacking {
    /// The uid that it was asked for by.
    lacking: String,
}

impl Lacking {
    /// As a body.
    pub(crate) fn body(uid: &str) -> Body {
        let lacking = Self { lacking: uid.to_owned() };
        Body::new(serde_json::to_vec(&lacking).expect("plain data with text keys always encodes"))
    }

    /// Whether a body says this, and not what is wanted.
    pub(crate) fn is(body: &Body) -> bool {
        body.bytes.starts_with(br#"{"lacking":"#)
    }
}

#[cfg(test)]
mod tests {
    use bowline_resources::{Desired, Object};
    use bowline_types::Wall;

    use super::*;

    #[test]
    fn what_is_lacking_is_told_from_what_is_wanted() {
        assert!(Lacking::is(&Lacking::body("u1")));
        let desired = Desired::new(&Object::default(), "u1", Wall(0));
        assert!(!Lacking::is(&desired.encode()));
        assert!(Desired::decode(&Lacking::body("u1")).is_err());
    }
}
