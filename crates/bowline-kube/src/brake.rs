//! How often one object is put back: whoever changes it in turn must not make a race of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bowline_resources::ObjectKey;

use crate::Error;

/// How long one write takes up.
const EACH: Duration = Duration::from_millis(200);
/// What may be written in one go: a thousand times.
const BURST: Duration = Duration::from_secs(200);
/// Objects that are kept in mind before those that are at rest are forgotten.
const KEPT: usize = 4096;

/// Counts writes by object. Each takes a slot on the time line of its object, which may run ahead of the
/// clock. Two hubs on one control plane, or two agents on one cluster, undo what the other does: as fast
/// as the server can if nobody holds back.
#[derive(Debug, Default)]
pub struct Brake {
    until: BTreeMap<ObjectKey, Instant>,
}

impl Brake {
    /// Lets a write of this object pass, or says that there were too many.
    pub fn pass(&mut self, key: &ObjectKey, now: Instant) -> Result<(), Error> {
        if self.until.len() > KEPT {
            self.until.retain(|_, until| *until > now);
        }
        let until = self.until.get(key).copied().unwrap_or(now).max(now) + EACH;
        if until - now > BURST {
            return Err(Error::Contested { what: key.to_string() });
        }
        self.until.insert(key.clone(), until);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        format!("argoproj.io/Application/web/{name}").parse().unwrap()
    }

    #[test]
    fn a_race_ends_at_five_writes_a_second_and_others_are_not_held_back() {
        let (mut brake, start) = (Brake::default(), Instant::now());
        let mut passed = |name: &str, seconds: u64, tries: usize| {
            let now = start + Duration::from_secs(seconds);
            (0..tries).filter(|_| brake.pass(&key(name), now).is_ok()).count()
        };
        assert_eq!(passed("a", 0, 9000), 1000);
        assert_eq!(passed("b", 0, 1), 1);
        assert_eq!(passed("a", 10, 9000), 50);
        assert_eq!(passed("a", 1000, 9000), 1000);
    }

    #[test]
    fn objects_at_rest_are_forgotten() {
        let (mut brake, start) = (Brake::default(), Instant::now());
        for n in 0..=KEPT {
            brake.pass(&key(&n.to_string()), start).unwrap();
        }
        brake.pass(&key("later"), start + BURST).unwrap();
        assert_eq!(brake.until.len(), 1);
    }
}
