//! Which versions of the protocol talk to each other: equal, or one apart.

use tonic::metadata::{MetadataMap, MetadataValue};

use crate::Error;

/// The metadata in which a native peer names its protocol.
pub(crate) const METADATA: &str = "bowline-protocol";
/// The metadata in which an agent names its software.
pub(crate) const VERSION: &str = "bowline-version";

/// The version to speak with a peer that speaks `theirs`: the older one of the two.
pub(crate) fn agree(ours: u32, theirs: u32) -> Result<u32, Error> {
    if theirs.abs_diff(ours) > 1 || theirs == 0 {
        return Err(Error::Skew { theirs, ours });
    }
    Ok(theirs.min(ours))
}

/// Names our protocol.
pub(crate) fn put(metadata: &mut MetadataMap, ours: u32) {
    metadata.insert(METADATA, MetadataValue::from(ours));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_of_skew_is_spoken_down_and_two_are_refused() {
        assert_eq!(agree(5, 5).unwrap(), 5);
        assert_eq!(agree(5, 6).unwrap(), 5);
        assert_eq!(agree(6, 5).unwrap(), 5);
        assert!(agree(5, 7).is_err() && agree(7, 5).is_err());
        assert!(agree(1, 0).is_err(), "there was never a version 0");
    }
}
