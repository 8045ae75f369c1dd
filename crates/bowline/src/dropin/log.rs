//! Log levels as argocd-agent names them.

use crate::failure::{Failure, Outcome};

/// Parts of argocd-agent that have levels of their own; of these only the first is here too.
const PARTS: [&str; 4] = ["grpc-event", "resource-proxy", "redis-proxy", "informer-event-buffer"];

/// A filter from `[PART=]LEVEL`; `events` is the module that speaks with the other side.
pub(super) fn filter(levels: &[String], events: &str) -> Outcome<String> {
    let mut filter = vec![];
    for text in levels {
        match text.split_once('=') {
            None => filter.insert(0, level(text)?.to_owned()),
            Some((part, text)) if part == PARTS[0] => {
                filter.push(format!("{events}={}", level(text)?));
            }
            Some((part, text)) if PARTS.contains(&part) => _ = level(text)?,
            Some((part, _)) => {
                let what = format!("--log-level: there is no part {part:?}");
                return Err(Failure::usage(what).hint(format!("parts: {}", PARTS.join(", "))));
            }
        }
    }
    if filter.first().is_none_or(|first| first.contains('=')) {
        filter.insert(0, "info".to_owned());
    }
    Ok(filter.join(","))
}

fn level(text: &str) -> Outcome<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        // There is nothing above an error here.
        "panic" | "fatal" | "error" => Ok("error"),
        "warning" | "warn" => Ok("warn"),
        "info" => Ok("info"),
        "debug" => Ok("debug"),
        "trace" => Ok("trace"),
        _ => {
            let what = format!("--log-level: {text:?} is not a level");
            Err(Failure::usage(what).hint("use error, warning, info, debug or trace"))
        }
    }
}

/// `text` or `json`.
pub(super) fn format(text: &str) -> Outcome<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "text" => Ok("text"),
        "json" => Ok("json"),
        _ => Err(Failure::usage(format!("--log-format: {text:?} is neither text nor json"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_become_a_filter() {
        let of = |text: &str| {
            let levels: Vec<_> = text.split(',').map(str::to_owned).collect();
            filter(&levels, "m").map_err(|f| f.message)
        };
        assert_eq!(of("info").unwrap(), "info");
        assert_eq!(of("grpc-event=trace,Warning").unwrap(), "warn,m=trace");
        assert_eq!(of("redis-proxy=debug").unwrap(), "info");
        assert_eq!(filter(&[], "m").unwrap(), "info");
        assert!(of("loud").is_err() && of("x=info").is_err() && of("redis-proxy=loud").is_err());
    }
}
