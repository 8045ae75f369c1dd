//! How a server takes in the body of a request: written once, for the hub and for the agent.

/// A body on its way in. What is too large is read all the same, up to a bound, and dropped: a client
/// that still writes when the connection is closed never sees the answer.
#[derive(Debug, Default)]
pub struct Intake {
    kept: Vec<u8>,
    read: usize,
}

impl Intake {
    /// The largest body.
    pub const MAX: usize = 2 << 20;
    /// The most that is read of one that is larger.
    const MOST: usize = 16 << 20;

    /// Whether a body that says this of its length is read at all. Who waits for our leave (`asks`),
    /// or would send without end, hears at once that it is too large.
    pub fn admits(length: Option<usize>, asks: bool) -> bool {
        let most = if asks { Self::MAX } else { Self::MOST };
        length.is_none_or(|length| length <= most)
    }

    /// Takes the next piece; says whether to go on.
    pub fn take(&mut self, piece: &[u8]) -> bool {
        self.read = self.read.saturating_add(piece.len());
        if self.read <= Self::MAX {
            self.kept.extend_from_slice(piece);
        }
        self.read <= Self::MOST
    }

    /// The body, unless it was too large.
    pub fn whole(self) -> Option<Vec<u8>> {
        (self.read <= Self::MAX).then_some(self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_read_for_a_while_and_dropped() {
        let piece = vec![0; 1 << 20];
        let taken = |pieces: usize| {
            let mut intake = Intake::default();
            let read = (0..pieces).take_while(|_| intake.take(&piece)).count();
            (read, intake.kept.len() <= Intake::MAX, intake.whole().map(|b| b.len()))
        };
        assert_eq!(taken(2), (2, true, Some(Intake::MAX)));
        assert_eq!(taken(3), (3, true, None));
        assert_eq!(taken(40), (16, true, None), "not without end");
    }

    #[test]
    fn who_asks_first_hears_at_once() {
        let (fits, large, huge) = (Some(Intake::MAX), Some(Intake::MAX + 1), Some(17 << 20));
        for (length, asks, want) in [
            (None, true, true),
            (fits, true, true),
            (large, true, false),
            (large, false, true),
            (huge, false, false),
        ] {
            assert_eq!(Intake::admits(length, asks), want, "{length:?}, asks: {asks}");
        }
    }
}
