//! Which versions of the protocol talk to each other: equal, or one apart.

use tonic::metadata::{MetadataMap, MetadataValue};

use crate::{Error, PROTOCOL};

/// The metadata in which a native peer names its protocol.
pub(crate) const METADATA: &str = "bowline-protocol";
/// The metadata in which an agent names its software.
pub(crate) const VERSION: &str = "bowline-version";

/// The version to speak with a peer that speaks `theirs`: the older one of the two.
pub(crate) fn agree(theirs: u32) -> Result<u32, Error> {
    if theirs.abs_diff(PROTOCOL) > 1 || theirs == 0 {
        return Err(Error::Skew { theirs, ours: PROTOCOL });
    }
    Ok(theirs.min(PROTOCOL))
}

/// Names our protocol.
pub(crate) fn put(metadata: &mut MetadataMap) {
    metadata.insert(METADATA, MetadataValue::from(PROTOCOL));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_of_skew_is_spoken_down_and_two_are_refused() {
        assert_eq!(agree(PROTOCOL).unwrap(), PROTOCOL);
        assert_eq!(agree(PROTOCOL + 1).unwrap(), PROTOCOL);
        assert!(agree(PROTOCOL + 2).is_err());
        assert!(agree(0).is_err());
    }
}
