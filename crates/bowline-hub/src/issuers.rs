//! Whose certificate is by which CA, and whom a step of a rotation would lock out.

use std::collections::BTreeMap;

use bowline_identity::Fingerprint;

use crate::clock;
use crate::state::State;
use crate::views::roster::Listed;

/// Names that a list shows before it only counts.
const NAMED: usize = 5;

/// Agents that can come in: they have joined, are not revoked, and their time is not up.
fn live(state: &State) -> impl Iterator<Item = Listed> {
    let now = clock::now();
    let counts = move |listed: &Listed| {
        let entry = &listed.entry;
        entry.revoked.is_none() && entry.certificate.as_ref().is_some_and(|c| c.not_after > now)
    };
    state.views.roster.after(None).into_iter().filter(counts)
}

/// The agents that can come in, and the CA of the certificate that each last showed.
fn holders(state: &State) -> Vec<(String, Fingerprint)> {
    let presumed = state.pki.presumed();
    let holder = |listed: Listed| {
        let shown = state.contacts.get(&listed.entry.name).and_then(|contact| contact.shown);
        (listed.entry.name.to_string(), shown.map_or(presumed, |shown| shown.issuer))
    };
    live(state).map(holder).collect()
}

/// How many certificates count, by the CA that signed them.
pub(crate) fn count(state: &State) -> BTreeMap<Fingerprint, u64> {
    let mut by = BTreeMap::new();
    for (_, issuer) in holders(state) {
        *by.entry(issuer).or_default() += 1;
    }
    by
}

/// Who has shown no certificate by the CA that signs now.
pub(crate) fn behind(state: &State) -> Vec<String> {
    let signing = state.pki.signing();
    let behind = holders(state).into_iter().filter(|(_, issuer)| *issuer != signing);
    behind.map(|(name, _)| name).collect()
}

/// Who has not been connected since the next CA was announced, and so has not heard of it.
pub(crate) fn uninformed(state: &State) -> Vec<String> {
    let Some(rotation) = state.views.access.rotation() else { return vec![] };
    let heard = |listed: &Listed| {
        let name = &listed.entry.name;
        state.views.links.get(name).is_some_and(|l| l.handle.is_some() || l.since > rotation.since)
            || state.contacts.get(name).is_some_and(|c| c.at > rotation.since)
    };
    live(state).filter(|l| !heard(l)).map(|l| l.entry.name.to_string()).collect()
}

/// Whom the next step of the rotation that is under way would lock out.
pub(crate) fn locked_out_by_next_step(state: &State) -> Vec<String> {
    match state.pki.phase() {
        "announced" => uninformed(state),
        "switched" => behind(state),
        _ => vec![],
    }
}

/// The first names, and how many more there are.
pub(crate) fn some(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    if names.len() > NAMED { format!("{shown} and {} more", names.len() - NAMED) } else { shown }
}
