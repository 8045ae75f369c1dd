//! What people asked an agent for, until it has acked that. It goes with the session: whoever asked learns
//! from the silence that nothing was taken on, and asks again under the same id.

use std::collections::BTreeMap;

use bowline_argocd::{Need, Place};
use bowline_resources::argocd::OPERATION_ID;
use bowline_resources::{Operation, OperationRequest};
use bowline_types::Rev;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

/// What people asked for and the agent has not acked yet.
#[derive(Debug, Default)]
pub(super) struct Asked {
    asks: BTreeMap<(Place, Operation), Ask>,
    /// What the agent was told of and is wanted no more, with the rev that it was last told.
    pub(super) ends: BTreeMap<Place, Rev>,
}

#[derive(Debug)]
struct Ask {
    id: String,
    argument: Value,
    /// Who wants to know that the agent has acked it.
    waiting: Vec<oneshot::Sender<()>>,
}

/// Whether the agent has to be told because of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// It has.
    New,
    /// It has been asked for already, and is told again as it is.
    Known,
}

impl Asked {
    /// Somebody asks.
    pub(super) fn add(
        &mut self,
        place: Place,
        request: OperationRequest,
        taken: oneshot::Sender<()>,
    ) -> Request {
        let OperationRequest { id, operation, argument, .. } = request;
        let had = self.asks.remove(&(place.clone(), operation));
        let known = had.as_ref().is_some_and(|had| had.id == id);
        let mut ask = match had {
            Some(had) if known => had,
            // The last sync that was asked for is the one that is told.
            Some(_) if operation == Operation::Sync => Ask::new(id, argument),
            // The next look, or end, does for those who asked before, if it is as thorough.
            Some(had) => {
                let argument = if had.argument == "hard" { had.argument } else { argument };
                Ask { id, argument, ..had }
            }
            None => Ask::new(id, argument),
        };
        ask.waiting.retain(|waiting| !waiting.is_closed());
        ask.waiting.push(taken);
        self.asks.insert((place, operation), ask);
        if known { Request::Known } else { Request::New }
    }

    /// The agent has acked the last that it was told of this.
    pub(super) fn acked(&mut self, place: &Place, operation: Operation) {
        let ask = self.asks.remove(&(place.clone(), operation));
        for waiting in ask.into_iter().flat_map(|ask| ask.waiting) {
            // Who has lost patience asks again.
            let _ended = waiting.send(());
        }
    }

    /// What was asked for was asked of an object that is wanted no more.
    pub(super) fn forget(&mut self, place: &Place) {
        for operation in [Operation::Sync, Operation::Refresh, Operation::Terminate] {
            self.asks.remove(&(place.clone(), operation));
        }
    }

    /// The sync that is asked for, with the id by which the agent's report shows that it was taken on: the
    /// ack may be lost.
    pub(super) fn sync(&self, place: &Place) -> Option<Value> {
        let ask = self.asks.get(&(place.clone(), Operation::Sync))?;
        let mut sync = match &ask.argument {
            Value::Object(map) => map.clone(),
            _ => Map::from_iter([("sync".to_owned(), json!({}))]),
        };
        if let Value::Array(info) = sync.entry("info").or_insert_with(|| json!([])) {
            info.push(json!({"name": OPERATION_ID, "value": ask.id}));
        }
        Some(sync.into())
    }

    /// How thoroughly the agent is asked to look.
    pub(super) fn refresh(&self, place: &Place) -> Option<&str> {
        let ask = self.asks.get(&(place.clone(), Operation::Refresh))?;
        Some(ask.argument.as_str().unwrap_or("normal"))
    }
}

impl Ask {
    fn new(id: String, argument: Value) -> Self {
        Self { id, argument, waiting: vec![] }
    }
}

/// By what the agent is told of an operation.
pub(super) fn need(operation: Operation) -> Need {
    match operation {
        Operation::Sync => Need::SetOperation,
        Operation::Refresh => Need::SpecUpdate,
        Operation::Terminate => Need::TerminateOperation,
    }
}

/// What the agent is asked for by the telling of a need.
pub(super) fn operation(need: &Need) -> Option<Operation> {
    match need {
        Need::SetOperation => Some(Operation::Sync),
        Need::SpecUpdate | Need::Create => Some(Operation::Refresh),
        Need::TerminateOperation => Some(Operation::Terminate),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bowline_argocd::Resource;
    use bowline_resources::ObjectKey;
    use tokio::sync::oneshot::Receiver;

    use super::*;

    fn web() -> Place {
        Place::new(Resource::Application, "a1", "web")
    }

    fn ask(asked: &mut Asked, what: Operation, id: &str, how: &str) -> (Request, Receiver<()>) {
        let (taken, acked) = oneshot::channel();
        let request = OperationRequest {
            id: id.into(),
            key: ObjectKey::from_parts("argoproj.io", "Application", "a1", "web").unwrap(),
            uid: None,
            operation: what,
            by: "somebody".into(),
            argument: how.into(),
        };
        (asked.add(web(), request, taken), acked)
    }

    #[test]
    fn whoever_asks_again_under_the_same_id_waits_for_the_same_ack() {
        let mut asked = Asked::default();
        let (first, mut one) = ask(&mut asked, Operation::Sync, "one", "");
        let (second, mut two) = ask(&mut asked, Operation::Sync, "one", "");
        assert_eq!((first, second), (Request::New, Request::Known));
        asked.acked(&web(), Operation::Sync);
        assert!(one.try_recv().is_ok() && two.try_recv().is_ok());
        let (first, mut one) = ask(&mut asked, Operation::Sync, "one", "");
        let (second, mut two) = ask(&mut asked, Operation::Sync, "two", "");
        assert_eq!((first, second), (Request::New, Request::New));
        asked.acked(&web(), Operation::Sync);
        assert!(one.try_recv().is_err(), "it was overtaken");
        assert!(two.try_recv().is_ok());
    }

    #[test]
    fn one_look_does_for_all_who_asked_and_is_as_thorough_as_the_most_that_was_asked_for() {
        let mut asked = Asked::default();
        let (_, mut hard) = ask(&mut asked, Operation::Refresh, "one", "hard");
        let (_, mut normal) = ask(&mut asked, Operation::Refresh, "two", "normal");
        assert_eq!(asked.refresh(&web()), Some("hard"));
        asked.acked(&web(), Operation::Refresh);
        assert!(hard.try_recv().is_ok() && normal.try_recv().is_ok());
        assert_eq!(asked.refresh(&web()), None);
        let (_, mut gone) = ask(&mut asked, Operation::Terminate, "one", "");
        asked.forget(&web());
        assert!(gone.try_recv().is_err());
    }
}
