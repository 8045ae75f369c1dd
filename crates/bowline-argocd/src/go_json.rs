//! JSON with the bytes that Go's `encoding/json` would write: checksums are made of them.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// A value as Go writes it after reading it as Kubernetes does: keys sorted by bytes, no spaces,
/// whole numbers of 64 bits as they are and all others as floats.
///
/// Invalid UTF-8, which Go replaces by U+FFFD, cannot occur in a [`Value`].
pub fn go_json(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            // Sorted here: whether the map is depends on a feature that any crate may turn on.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| key.as_bytes());
            out.push('{');
            for (at, (key, item)) in fields.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(out, key);
                out.push(':');
                write(out, item);
            }
            out.push('}');
        }
    }
}

fn write_number(out: &mut String, number: &Number) {
    if let Some(whole) = number.as_i64() {
        let _ = write!(out, "{whole}");
        return;
    }
    let float = number.as_f64().unwrap_or_default();
    let size = float.abs();
    if size == 0.0 {
        // A server sends minus zero as `-0`, which its clients read as the whole number 0.
        out.push('0');
    } else if (1e-6..1e21).contains(&size) {
        let _ = write!(out, "{float}");
    } else {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let sign = if exponent.starts_with('-') { "" } else { "+" };
        let _ = write!(out, "{digits}e{sign}{exponent}");
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(text: &str) -> String {
        go_json(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn keys_are_sorted_by_bytes_and_nothing_is_padded() {
        assert_eq!(
            go(r#"{"b": [1, {}], "a":  null, "B": true}"#),
            r#"{"B":true,"a":null,"b":[1,{}]}"#
        );
        // U+FF5E sorts before U+1F600 by bytes, after it by UTF-16.
        let keys = go(r#"{"\ud83d\ude00": 1, "\uff5e": 2, "a": 3}"#);
        assert_eq!(keys, "{\"a\":3,\"\u{ff5e}\":2,\"\u{1f600}\":1}");
    }

    #[test]
    fn text_is_escaped_for_web_pages() {
        assert_eq!(go(r#""<a>&\u2028\u2029""#), r#""\u003ca\u003e\u0026\u2028\u2029""#);
        assert_eq!(go(r#""\u0000\u001f\u007f\/\b\f""#), "\"\\u0000\\u001f\u{7f}/\\b\\f\"");
    }

    #[test]
    fn numbers_are_whole_or_floats() {
        for (given, written) in [
            ("0", "0"),
            ("-0", "0"),
            ("1.0", "1"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9223372036854775808", "9223372036854776000"),
            ("18446744073709551615", "18446744073709552000"),
            ("0.1", "0.1"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("-1.25e-9", "-1.25e-9"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ] {
            assert_eq!(go(given), written, "{given}");
        }
    }
}
