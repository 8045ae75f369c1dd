//! RFC 3339 in UTC from and to milliseconds, so that no calendar crate is needed.

use bowline_types::Wall;

const DAY: u64 = 86_400_000;

/// A time as text, to the second, or to the millisecond if it has any.
pub fn rfc3339(at: Wall) -> String {
    let (days, in_day) = (at.0 / DAY, at.0 % DAY);
    let (year, month, day) = civil(days as i64);
    let (hour, minute, second) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1000 % 60);
    let date = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    match in_day % 1000 {
        0 => format!("{date}Z"),
        millis => format!("{date}.{millis:03}Z"),
    }
}

/// The time that a text means; none if it is not RFC 3339 or before 1970.
pub fn parse_rfc3339(text: &str) -> Option<Wall> {
    let text = text.trim();
    if !text.is_ascii() || text.len() < 20 {
        return None;
    }
    let (date, rest) = text.split_at(19);
    let bytes = date.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let part = &date[from..to];
        if part.bytes().all(|c| c.is_ascii_digit()) { part.parse().ok() } else { None }
    };
    let seps = bytes[4] == b'-' && bytes[7] == b'-' && bytes[13] == b':' && bytes[16] == b':';
    if !seps || !matches!(bytes[10], b'T' | b't' | b' ') {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = (1..=12).contains(&month) && hour < 24 && minute < 60 && second <= 60;
    if !in_range || day < 1 || day > month_days(year, month) {
        return None;
    }
    let (millis, zone) = fraction(rest)?;
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let total = (seconds - offset(zone)?) * 1000 + millis;
    u64::try_from(total).ok().map(Wall)
}

fn fraction(rest: &str) -> Option<(i64, &str)> {
    let Some(digits) = rest.strip_prefix('.') else { return Some((0, rest)) };
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    let (digits, zone) = digits.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let padded: String = digits.chars().chain("000".chars()).take(3).collect();
    Some((padded.parse().ok()?, zone))
}

fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let two = |s: &str| if s.len() == 2 { s.parse::<u8>().ok() } else { None };
    Some(sign * (i64::from(two(hours)?) * 3600 + i64::from(two(minutes)?) * 60))
}

fn month_days(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

// Both count years from March, so that the leap day is the last of its year.

fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, in_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (month + 9) % 12;
    let in_year = (153 * from_march + 2) / 5 + day - 1;
    let in_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + in_year;
    era * 146_097 + in_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn known_times_read_as_expected() {
        assert_eq!(rfc3339(Wall(0)), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(Wall(951_782_400_000)), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(Wall(1_794_787_200_123)), "2026-11-16T00:00:00.123Z");
        assert_eq!(parse_rfc3339("2026-11-16T01:00:00+01:00"), Some(Wall(1_794_787_200_000)));
        assert_eq!(parse_rfc3339("2000-02-29T00:00:00.5Z"), Some(Wall(951_782_400_500)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let bad = [
            "",
            "now",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "1960-01-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "+026-01-01T00:00:00Z",
        ];
        for text in bad {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn every_time_survives_its_text() {
        let mut rng = Rng(1);
        for _ in 0..2000 {
            let at = Wall(rng.below(4_000_000_000_000));
            assert_eq!(parse_rfc3339(&rfc3339(at)), Some(at));
        }
    }
}
