//! What a case found, as one line of JSON and as a row of `RESULTS.md`.

use serde::Serialize;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Less,
    More,
}

/// What a case found.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) peer_value: f64,
    pub(crate) ratio: f64,
    pub(crate) goal: f64,
    pub(crate) met: bool,
    /// Below 1 the case was made smaller than it should be.
    #[serde(skip_serializing_if = "is_whole")]
    pub(crate) scale: f64,
    /// Other figures of the same run, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
    /// Beside argocd-agent: each figure that has a goal of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rows: Vec<Row>,
}

/// One figure of a case that has several: ours, argocd-agent's, and the limit's if there is one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) goal: f64,
    pub(crate) ours: f64,
    /// Where argocd-agent did the same.
    pub(crate) go: Option<f64>,
    pub(crate) limit: Option<f64>,
    pub(crate) met: bool,
}

impl Row {
    /// A figure of ours with its goal, and argocd-agent's.
    pub(crate) fn new(what: &'static str, figure: &Figure, go: f64) -> Self {
        Self { go: Some(rounded(go)), ..Self::alone(what, figure) }
    }

    /// A figure of ours with its goal, which argocd-agent was not asked for.
    pub(crate) fn alone(what: &'static str, figure: &Figure) -> Self {
        let (goal, ours) = (rounded(figure.goal), rounded(figure.value));
        let (unit, met) = (figure.unit, figure.is_met());
        Self { what, unit, goal, ours, go: None, limit: None, met }
    }

    /// Beside what the bare limit does.
    pub(crate) fn limit(mut self, limit: f64) -> Self {
        self.limit = Some(rounded(limit));
        self
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_whole(scale: &f64) -> bool {
    (*scale - 1.0).abs() < 1e-9
}

/// A figure with the goal it is held against.
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) goal: f64,
    pub(crate) better: Better,
}

impl Figure {
    fn is_met(&self) -> bool {
        match self.better {
            Better::Less => self.value <= self.goal,
            Better::More => self.value >= self.goal,
        }
    }
}

impl Outcome {
    /// Several figures beside argocd-agent's; the first stands for the case.
    pub(crate) fn of_rows(name: &'static str, rows: Vec<Row>) -> Self {
        let met = rows.iter().all(|row| row.met);
        let first = rows.first().cloned();
        let of = |f: fn(&Row) -> f64| first.as_ref().map_or(0.0, f);
        let unit = first.as_ref().map_or("", |row| row.unit);
        let figure =
            Figure { value: of(|r| r.ours), unit, goal: of(|r| r.goal), better: Better::Less };
        let outcome =
            Self::new(name, &figure, "argocd-agent v0.9.0", of(|r| r.go.unwrap_or_default()));
        Self { met, rows, ..outcome }
    }

    /// A figure beside its peer's.
    pub(crate) fn new(
        name: &'static str,
        figure: &Figure,
        peer: &'static str,
        peer_value: f64,
    ) -> Self {
        let met = figure.is_met();
        let ratio = if peer_value == 0.0 { 0.0 } else { rounded(figure.value / peer_value) };
        Self {
            name,
            value: rounded(figure.value),
            unit: figure.unit,
            peer,
            peer_value: rounded(peer_value),
            ratio,
            goal: figure.goal,
            met,
            scale: crate::stage::scale(),
            note: String::new(),
            rows: vec![],
        }
    }

    /// With other figures of the same run.
    pub(crate) fn note(mut self, note: String) -> Self {
        self.note = note;
        self
    }
}

/// Three digits are all that a measurement is worth.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let unit = 10f64.powi(2 - value.abs().log10().floor() as i32);
    (value * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_from_its_own_side_and_figures_have_three_digits() {
        let figure = |value, better| Figure { value, unit: "s", goal: 30.0, better };
        let outcome = |value, better| Outcome::new("x", &figure(value, better), "y", 7.0);
        assert!(outcome(29.0, Better::Less).met && !outcome(31.0, Better::Less).met);
        assert!(outcome(31.0, Better::More).met && !outcome(29.0, Better::More).met);
        assert_eq!(rounded(123_456.0), 123_000.0);
        assert_eq!(rounded(0.012_345), 0.0123);
        assert_eq!(rounded(0.0), 0.0);
        assert_eq!(outcome(14.0, Better::Less).ratio, 2.0);
    }

    #[test]
    fn the_line_has_the_fields_that_were_agreed() {
        let figure = Figure { value: 1.0, unit: "s", goal: 2.0, better: Better::Less };
        let line = serde_json::to_value(Outcome::new("x", &figure, "y", 0.0)).unwrap();
        for field in ["name", "value", "unit", "peer", "peer_value", "ratio", "goal", "met"] {
            assert!(line.get(field).is_some(), "{field}");
        }
    }
}
