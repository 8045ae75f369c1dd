//! One write to one object: rights, ownership, expectations, commit.

use std::sync::Arc;

use axum::response::Response;
use bowline_client::api::{Deleted, ObjectView, Role, WriteQuery};
use bowline_resources::{
    Deletion, Desired, Object, ObjectKey, Owner, RosterEntry, desired_shelf, merge_patch, rfc3339,
};
use bowline_types::{Guard, Item};
use http::StatusCode;
use serde_json::Value;

use super::super::caller::Caller;
use super::super::input::Expect;
use super::super::{change_if, json};
use super::find;
use crate::audit::Deed;
use crate::clock;
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::views::fleet::Found;

/// One write to one object by one caller.
pub(super) struct Writer {
    state: Arc<State>,
    caller: Caller,
    agent: String,
    key: ObjectKey,
    verb: &'static str,
    /// Everything is checked, and nothing written: neither the object nor the audit.
    dry_run: bool,
}

impl Writer {
    /// Checks rights and ownership.
    pub(super) fn new(
        state: Arc<State>,
        caller: Caller,
        agent: String,
        key: ObjectKey,
        verb: &'static str,
        query: WriteQuery,
    ) -> Result<Self, Fault> {
        caller.object(Role::Operator, verb, &agent, &key)?;
        let writer = Self { state, caller, agent, key, verb, dry_run: query.dry_run };
        writer.entry()?;
        Ok(writer)
    }

    /// The agent's entry, if the hub may write the object now.
    fn entry(&self) -> Result<Arc<RosterEntry>, Fault> {
        let entry = self.caller.object(Role::Operator, self.verb, &self.agent, &self.key)?;
        if let Some(mode) = entry.changing {
            let why = format!("{} is becoming {mode}", entry.name);
            return Err(Code::ModeChanging.because(why).hint("wait, or call the change off"));
        }
        if entry.owner_of(self.key.namespace.as_deref(), &self.key.kind) == Owner::Agent {
            let why = format!("{} is owned by {} and read-only here", self.key, entry.name);
            let hint = "write it at the agent with --at-agent; sync and refresh work from here";
            return Err(Code::ReadOnly.because(why).hint(hint));
        }
        if self.state.plane.as_ref().is_some_and(|p| p.owns(&entry.name, &self.key)) {
            let why = format!("{} comes from the control-plane cluster", self.key);
            return Err(Code::ReadOnly
                .because(why)
                .hint("write it there, with kubectl or Argo CD"));
        }
        Ok(entry)
    }

    pub(super) async fn put(self, object: Object, expect: Expect) -> Result<Response, Fault> {
        let _turn = self.state.clone().write_turn(&self.agent, &self.key).await;
        let entry = self.entry()?;
        let there = self.state.views.fleet.get(&entry, &self.key);
        let known = there.as_ref().and_then(|f| f.wanted.says()).cloned();
        if self.verb == "object.create" && there.is_some() {
            return Err(Code::Exists.because(format!("{} at {}", self.key, self.agent)));
        }
        check(there.as_ref(), expect)?;
        let desired = match (&known, &there) {
            (Some(known), _) if known.deleting => return Err(deleting(&self.key)),
            (Some(known), Some(found)) => match known.replaced(&object) {
                Some(desired) => desired,
                None => return Ok(json(StatusCode::OK, &self.view(found)?)),
            },
            _ => Desired::new(&object, fresh_uid(), clock::now()),
        };
        let status = if known.is_some() { StatusCode::OK } else { StatusCode::CREATED };
        self.write(&entry, there.map(|f| f.wanted.rev), desired, status).await
    }

    pub(super) async fn patch(self, patch: &Value, expect: Expect) -> Result<Response, Fault> {
        let _turn = self.state.clone().write_turn(&self.agent, &self.key).await;
        let entry = self.entry()?;
        let there = find(&self.state, &entry, &self.key)?;
        check(Some(&there), expect)?;
        let known = there.wanted.says().ok_or_else(|| Code::Internal.problem())?;
        if known.deleting {
            return Err(deleting(&self.key));
        }
        let mut value = known.object.to_value();
        merge_patch(&mut value, patch);
        let object = Object::from_value(value).map_err(|e| Code::Invalid.because(e))?;
        if object.key() != self.key {
            return Err(Code::Invalid.because("a patch cannot rename an object"));
        }
        let Some(desired) = known.replaced(&object) else {
            return Ok(json(StatusCode::OK, &self.view(&there)?));
        };
        self.write(&entry, Some(there.wanted.rev), desired, StatusCode::OK).await
    }

    pub(super) async fn delete(self, expect: Expect) -> Result<Response, Fault> {
        let _turn = self.state.clone().write_turn(&self.agent, &self.key).await;
        let entry = self.entry()?;
        let there = find(&self.state, &entry, &self.key)?;
        check(Some(&there), expect)?;
        let now = clock::now();
        let known = there.wanted.says().ok_or_else(|| Code::Internal.problem())?;
        let marked = match known.delete(now) {
            Deletion::Already => {
                let rev = there.wanted.rev;
                return Ok(json(StatusCode::OK, &Deleted { gone: false, rev }));
            }
            // Nobody has ever had it: there is nobody to say that it is gone.
            Deletion::Now if entry.certificate.is_none() => None,
            Deletion::Now => {
                let mut marked = known.clone();
                marked.deleting = true;
                marked.object.metadata.deletion_timestamp = Some(rfc3339(now));
                Some(marked)
            }
            Deletion::Mark(marked) => Some(*marked),
        };
        let gone = marked.is_none();
        let rev = self.commit(&entry, Some(there.wanted.rev), marked).await?;
        Ok(json(StatusCode::OK, &Deleted { gone, rev }))
    }

    async fn write(
        &self,
        entry: &RosterEntry,
        rev: Option<u64>,
        desired: Desired,
        status: StatusCode,
    ) -> Result<Response, Fault> {
        let key = self.key.record_key();
        let supposed =
            self.dry_run.then(|| Found::supposed(entry, key, rev.unwrap_or(0), &desired));
        self.commit(entry, rev, Some(desired)).await?;
        let found = supposed.map_or_else(|| find(&self.state, entry, &self.key), Ok)?;
        Ok(json(status, &self.view(&found)?))
    }

    async fn commit(
        &self,
        entry: &RosterEntry,
        rev: Option<u64>,
        desired: Option<Desired>,
    ) -> Result<u64, Fault> {
        let (handle, shelf) = (self.state.handle.clone(), desired_shelf(&entry.name, Owner::Hub));
        let key = self.key.record_key();
        let guards = vec![Guard { key: key.clone(), at: rev }];
        let items = vec![Item { key, body: desired.map(|d| d.encode()) }];
        if self.dry_run {
            handle.would_write(&shelf, guards, items).await?;
            return Ok(rev.unwrap_or(0));
        }
        let deed = Deed {
            agent: Some(self.agent.clone()),
            ..self.caller.deed(self.verb, self.key.to_string())
        };
        let work = async move { Ok(handle.write(&shelf, guards, items).await?.rev) };
        change_if(&self.state, deed, work).await
    }

    fn view(&self, found: &Found) -> Result<ObjectView, Fault> {
        let view = found.view(self.caller.reveals());
        view.ok_or_else(|| Code::Internal.because("the object cannot be read"))
    }
}

fn check(there: Option<&Found>, expect: Expect) -> Result<(), Fault> {
    let rev = there.map(|f| f.wanted.rev);
    let mut fault = match (expect, rev) {
        (Expect::Any, _) | (Expect::Missing, None) => return Ok(()),
        (Expect::Rev(wanted), Some(rev)) if rev == wanted => return Ok(()),
        (_, Some(rev)) => Code::Conflict.because(format!("it is at rev {rev}")),
        (Expect::Rev(_), None) => Code::Conflict.because("it is not there"),
    };
    fault.0.rev = rev;
    Err(fault.hint("read it again, then write"))
}

fn deleting(key: &ObjectKey) -> Fault {
    Code::Deleting.because(key).hint("wait until its agent says that it is gone")
}

/// Drawn as a version 4 UUID.
fn fresh_uid() -> String {
    let n = (rand::random::<u128>() & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{n:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
