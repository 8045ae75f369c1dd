//! What agents ask the hub to write, for the audit: an entry goes to disk with the proposal itself,
//! and is written again when it is known what became of it.

use std::collections::BTreeMap;

use bowline_client::api::{AuditEntry, Outcome};
use bowline_drive::Asked;
use bowline_sync::FORBIDDEN;
use bowline_types::{Item, Key, ProposalId, Verdict, Wall};
use parking_lot::Mutex;

use crate::audit::{self, Deed};
use crate::denials::{Denials, and_more};

/// Entries of proposals that are not judged yet.
#[derive(Debug, Default)]
pub(crate) struct Proposed {
    open: Mutex<BTreeMap<ProposalId, Vec<(Key, AuditEntry)>>>,
    denials: Denials,
}

impl Proposed {
    /// The entries of a proposal, one for each key; none if it was asked before.
    pub(crate) fn take(&self, asked: &Asked<'_>, from: Option<String>, now: Wall) -> Vec<Item> {
        if asked.again {
            return vec![];
        }
        let entry =
            |item: &Item| audit::written_down(deed(asked, item, from.clone()), Outcome::Asked, now);
        let entries: Vec<_> = asked.proposal.items.iter().map(entry).collect();
        let items = entries.iter().map(|(key, entry)| audit::item(key, entry)).collect();
        if !entries.is_empty() {
            self.open.lock().insert(asked.proposal.id.clone(), entries);
        }
        items
    }

    /// The one entry of what was refused outright, unless there was one like it within a minute.
    pub(crate) fn refused(
        &self,
        asked: &Asked<'_>,
        why: &str,
        from: Option<String>,
        now: Wall,
    ) -> Option<Item> {
        let items = &asked.proposal.items;
        let deed = deed(asked, items.first()?, from);
        let detail = match items.len() {
            1 => why.to_owned(),
            n => format!("{why}; the first of {n} keys"),
        };
        let outcome = if why == FORBIDDEN { Outcome::Denied } else { Outcome::Failed };
        let (who, verb, mut entry) = (deed.who.clone(), deed.verb, None);
        self.denials.enter(&who, verb, None, now, |more| {
            let deed = Deed { detail: and_more(detail, more), ..deed };
            entry = Some(audit::written_down(deed, outcome, now));
            true
        });
        entry.map(|(key, entry)| audit::item(&key, &entry))
    }

    /// The entries of a proposal again, now that it is judged.
    pub(crate) fn judged(&self, id: &ProposalId, verdict: &Verdict) -> Vec<Item> {
        let mut entries = self.open.lock().remove(id).unwrap_or_default();
        for (_, entry) in &mut entries {
            entry.outcome = match verdict {
                Verdict::Taken { .. } => Outcome::Done,
                Verdict::Refused { why, .. } => {
                    entry.detail = audit::shortened(why);
                    Outcome::Failed
                }
                Verdict::Unknown | Verdict::Expired => {
                    entry.detail = "it was not decided".into();
                    Outcome::Failed
                }
            };
        }
        entries.iter().map(|(key, entry)| audit::item(key, entry)).collect()
    }
}

/// What an agent asks for, of one key.
fn deed(asked: &Asked<'_>, item: &Item, from: Option<String>) -> Deed {
    let (verb, detail) = match (&item.body, asked.proposal.shelf.name.kind()) {
        (Some(body), "kv") => ("kv.put", format!("{} bytes", body.bytes.len())),
        (None, "kv") => ("kv.delete", String::new()),
        _ => ("shelf.propose", asked.proposal.shelf.to_string()),
    };
    Deed {
        who: asked.from.to_string(),
        from,
        verb,
        what: item.key.to_string(),
        agent: Some(asked.from.to_string()),
        detail,
    }
}
