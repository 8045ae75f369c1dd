//! Durations as Go writes them: `300ms`, `1h30m`, `1.5s`, and a bare `0`.

use std::time::Duration;

/// Nanoseconds in each unit; the two characters that write "micro" mean the same.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("\u{3bc}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 6e10),
    ("h", 3.6e12),
];

/// Reads one; none if it is none, or negative.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
        nanos += number.parse::<f64>().ok()? * scale;
        rest = tail;
    }
    Duration::try_from_secs_f64(nanos / 1e9).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_takes_is_taken() {
        let cases = [
            ("0", 0),
            ("+5s", 5000),
            ("300ms", 300),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("1h15m30.918s", 4_530_918),
            ("2000us", 2),
            ("3000\u{b5}s", 3),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_or_would_be_negative_is_refused() {
        for text in ["", "+", "3", "-5s", "1.2.3s", "s", ".s", "3d", "5 s", "1e3s"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
