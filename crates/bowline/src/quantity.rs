//! Durations and sizes as people write them: `30s`, `7d`, `64MiB`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A length of time, written `250ms`, `30s`, `5m`, `12h` or `7d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A number of bytes, written `512`, `64KiB`, `1MiB`, `2GiB` (or with KB, MB, GB by thousands).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const SPANS: &[(&str, u64)] =
    &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
const SIZES: &[(&str, u64)] = &[
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1000),
    ("B", 1),
];

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let millis =
            scaled(text, SPANS).filter(|_| !text.trim().ends_with(|c: char| c.is_ascii_digit()));
        let wrong = || format!("{text:?} is not a duration: write 250ms, 30s, 5m, 12h or 7d");
        millis.map(|ms| Self(Duration::from_millis(ms))).ok_or_else(wrong)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a size: write 512, 64KiB, 1MiB or 2GiB");
        scaled(text, SIZES).map(Self).ok_or_else(wrong)
    }
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = (text[..split].parse::<u64>().ok()?, text[split..].trim());
    if unit.is_empty() {
        return Some(number);
    }
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*scale)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let (unit, scale) = SPANS
            .iter()
            .find(|(_, s)| millis >= *s && millis.is_multiple_of(*s))
            .unwrap_or(&("s", 1000));
        write!(f, "{}{unit}", millis / scale)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = &SIZES[..3];
        match binary.iter().find(|(_, s)| self.0 >= *s && self.0.is_multiple_of(*s)) {
            Some((unit, scale)) => write!(f, "{}{unit}", self.0 / scale),
            None => write!(f, "{}", self.0),
        }
    }
}

macro_rules! as_text {
    ($type:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'d> Deserialize<'d> for $type {
            fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
                // A bare number in YAML arrives as a number.
                match serde_json::Value::deserialize(from)? {
                    serde_json::Value::String(text) => text.parse().map_err(D::Error::custom),
                    other => other.to_string().parse().map_err(D::Error::custom),
                }
            }
        }
    };
}

as_text!(Span);
as_text!(Size);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_and_print_alike() {
        for text in ["250ms", "30s", "5m", "12h", "7d", "90s"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for text in ["512", "64KiB", "1MiB", "3GiB"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        assert_eq!("2MB".parse::<Size>().unwrap(), Size(2_000_000));
        assert_eq!(serde_json::from_str::<Size>("512").unwrap(), Size(512));
    }

    #[test]
    fn what_is_no_quantity_says_how_to_write_one() {
        for bad in ["", "30", "s", "-1s", "1.5h", "3y"] {
            assert!(bad.parse::<Span>().unwrap_err().contains("30s"), "{bad:?}");
        }
        for bad in ["", "MiB", "1 XB", "-1", "99999999999GiB"] {
            assert!(bad.parse::<Size>().is_err(), "{bad:?}");
        }
    }
}
