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

impl Outcome {
    /// A figure beside its peer's.
    pub(crate) fn new(
        name: &'static str,
        figure: &Figure,
        peer: &'static str,
        peer_value: f64,
    ) -> Self {
        let met = match figure.better {
            Better::Less => figure.value <= figure.goal,
            Better::More => figure.value >= figure.goal,
        };
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
