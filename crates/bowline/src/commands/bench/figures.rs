//! What was measured, as a table and as one line of JSON.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::failure::Outcome;
use crate::print::{self, Format, Table};

/// What one run came to.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) scenario: &'static str,
    list: Vec<Figure>,
    /// The figure that the scenario is about, if not the first.
    headline: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Figure {
    /// The name in the JSON.
    name: &'static str,
    value: f64,
    unit: &'static str,
}

impl Figures {
    /// Adds a figure; the first is what the scenario is about.
    pub(super) fn add(&mut self, name: &'static str, value: f64, unit: &'static str) {
        self.list.push(Figure { name, value, unit });
    }

    /// Adds the figures of what took so long.
    pub(super) fn add_spread(&mut self, took: &mut [Duration]) {
        took.sort_unstable();
        let spread = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];
        if self.list.is_empty() {
            self.headline = Some("p99");
        }
        for (name, share) in spread {
            self.add(name, quantile(took, share).as_secs_f64() * 1000.0, "ms");
        }
    }

    /// The table for people, and last a line of JSON for programs; or that alone.
    pub(super) fn print(&self, format: Format) -> Outcome {
        if !format.is_table() {
            // One line alone, so that a script need not look for where it begins.
            return print::streamed(&self.json(), format);
        }
        let mut table = Table::new(vec!["FIGURE", "VALUE", "UNIT"]);
        for figure in &self.list {
            let value = number(figure.value);
            table.push(vec![figure.name.into(), value.into(), figure.unit.into()]);
        }
        print::out(&table.render(print::colour()))?;
        print::out(&format!("{}\n", self.json()))
    }

    fn json(&self) -> Value {
        let first = match self.headline {
            Some(name) => self.list.iter().find(|f| f.name == name),
            None => self.list.first(),
        };
        let others: Map<_, _> =
            self.list.iter().map(|f| (f.name.to_owned(), json!(rounded(f.value)))).collect();
        json!({
            "name": self.scenario,
            "value": first.map(|f| rounded(f.value)),
            "unit": first.map(|f| f.unit),
            "figures": others,
        })
    }
}

/// The value below which a share of all is; they must be in order.
fn quantile(took: &[Duration], share: f64) -> Duration {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    let at = (took.len() as f64 * share) as usize;
    took.get(at.min(took.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Three places are more than the machine repeats.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 || v.fract() == 0.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_told_by_its_quantiles() {
        let mut took: Vec<_> = (1..=1000).rev().map(Duration::from_millis).collect();
        let mut figures = Figures { scenario: "round-trip", ..Figures::default() };
        figures.add_spread(&mut took);
        let json = figures.json();
        assert_eq!((&json["value"], &json["unit"]), (&json!(991.0), &json!("ms")));
        assert_eq!(json["figures"]["p50"], 501.0);
        assert_eq!(json["figures"]["max"], 1000.0);
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }
}
