//! Whose work the loop does. The core knows nothing of traces, and one frame may carry many
//! people's work; so what is told along with a frame is looked up here, by what the frame holds.
//!
//! | span | at | from, to |
//! |---|---|---|
//! | `commit` | the owner | a write asked for, durable |
//! | `take` | a peer | a frame with news came, every fold has them |
//! | `apply` | a peer | an object came, what this node then wrote under the same key is durable |
//! | `propose` | a proposer | a wish, its verdict seen here |
//! | `decide` | the owner | a wish came, it was looked at |
//!
//! All of it is empty, and costs nothing, unless telemetry runs. What is remembered is bounded: a
//! trace that is forgotten is a span less, never a frame less.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

use bowline_sync::{Action, Decision, Event, Frame, Tag, WriteError};
use bowline_types::{
    Change, Cursor, Item, Key, NodeId, Proposal, ProposalId, Rev, ShelfId, Verdict,
};
use bowline_wire::{Span, TraceContext};
use bytes::Bytes;

/// Entries of each kind that are remembered.
const KEPT: usize = 1024;
/// Records of one feed that are looked at.
const LOOKED_AT: usize = 256;
/// For how long what is written under a key counts as the answer to what came under it.
const ANSWER: Duration = Duration::from_secs(60);

/// A map that forgets its oldest entries.
struct Recent<K, V> {
    map: BTreeMap<K, V>,
    order: VecDeque<K>,
}

impl<K: Ord + Clone, V> Recent<K, V> {
    fn new() -> Self {
        Self { map: BTreeMap::new(), order: VecDeque::new() }
    }

    fn put(&mut self, key: K, value: V) {
        if self.map.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > KEPT {
            if let Some(old) = self.order.pop_front() {
                self.map.remove(&old);
            }
        }
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

/// What names a wish on its way out: the core numbers it later.
type Wish = (ShelfId, Option<Key>, Option<Bytes>);

/// Whose work is under way.
pub(crate) struct Traces {
    node: NodeId,
    /// Work that callers wait for.
    begun: BTreeMap<Tag, (ShelfId, Span)>,
    /// Work that is over with the present turn.
    turn: Vec<Span>,
    /// Whose work a record is.
    of: Recent<(ShelfId, Rev), TraceContext>,
    /// Under which keys something came, and when.
    came: Recent<Key, (TraceContext, SystemTime)>,
    /// Traces that began here: what comes back is their end, not somebody's wish.
    ours: Recent<String, ()>,
    wishes: Recent<Wish, TraceContext>,
    /// Wishes that came in, until they are decided.
    asked: Recent<ProposalId, TraceContext>,
    /// What was decided, until it is written.
    decided: Recent<(ShelfId, Key), TraceContext>,
    /// For a wish that is decided at once.
    held: Option<TraceContext>,
}

impl Traces {
    pub(crate) fn new(node: NodeId) -> Self {
        Self {
            node,
            begun: BTreeMap::new(),
            turn: vec![],
            of: Recent::new(),
            came: Recent::new(),
            ours: Recent::new(),
            wishes: Recent::new(),
            asked: Recent::new(),
            decided: Recent::new(),
            held: None,
        }
    }

    /// Whose work a wish is that is decided here and now.
    pub(crate) fn hold(&mut self, trace: Option<TraceContext>) {
        self.held = trace;
    }

    /// What was held.
    pub(crate) fn held(&mut self) -> Option<TraceContext> {
        self.held.take()
    }

    /// A write is asked for.
    pub(crate) fn write(
        &mut self,
        tag: Tag,
        shelf: &ShelfId,
        items: &[Item],
        trace: Option<TraceContext>,
    ) {
        let span = match (&trace, self.answered(items)) {
            (None, Some((key, (context, at)))) => {
                let span = Span::begin(&self.node, "apply", Some(context));
                span.map(|mut span| {
                    span.since(*at);
                    span.set("key", key);
                    span
                })
            }
            _ => Span::begin(&self.node, "commit", trace.as_ref())
                .inspect(|span| self.ours.put(span.context().trace_id().to_owned(), ())),
        };
        self.begin(tag, shelf, span);
    }

    /// What came under one of these keys, a short while ago.
    fn answered<'a>(
        &'a self,
        items: &'a [Item],
    ) -> Option<(&'a Key, &'a (TraceContext, SystemTime))> {
        if self.came.is_empty() {
            return None;
        }
        let came = items.iter().find_map(|i| Some((&i.key, self.came.get(&i.key)?)));
        came.filter(|(_, (_, at))| at.elapsed().is_ok_and(|age| age < ANSWER))
    }

    /// Whose work it is to bring about what came under these keys a short while ago.
    pub(crate) fn behind(&self, keys: Vec<Key>) -> BTreeMap<Key, TraceContext> {
        let fresh = |at: &SystemTime| at.elapsed().is_ok_and(|age| age < ANSWER);
        let of = |key: &Key| self.came.get(key).filter(|(_, at)| fresh(at)).map(|(c, _)| c.clone());
        keys.into_iter().filter_map(|key| of(&key).map(|context| (key, context))).collect()
    }

    fn begin(&mut self, tag: Tag, shelf: &ShelfId, span: Option<Span>) {
        if let Some(mut span) = span {
            span.set("shelf", shelf);
            self.begun.insert(tag, (shelf.clone(), span));
        }
    }

    /// A wish for another's shelf.
    pub(crate) fn propose(
        &mut self,
        tag: Tag,
        shelf: &ShelfId,
        items: &[Item],
        ask: Option<&Bytes>,
        trace: Option<TraceContext>,
    ) {
        let span = Span::begin(&self.node, "propose", trace.as_ref());
        if let Some(span) = &span {
            self.ours.put(span.context().trace_id().to_owned(), ());
            self.wishes.put(wish(shelf, items, ask), span.context());
        }
        self.begin(tag, shelf, span);
    }

    /// A frame came, with this trace.
    pub(crate) fn came(&mut self, event: &Event, trace: Option<&TraceContext>) {
        let (Some(trace), Event::Frame(_, frame)) = (trace, event) else { return };
        match frame {
            Frame::Feed(feed) => {
                let Some(mut span) = Span::begin(&self.node, "take", Some(trace)) else { return };
                span.set("shelf", &feed.head.shelf);
                span.set("records", feed.records.len());
                let (context, now) = (span.context(), SystemTime::now());
                let wish = self.ours.get(&trace.trace_id().to_owned()).is_none();
                for record in feed.records.iter().take(LOOKED_AT) {
                    self.of.put((feed.head.shelf.clone(), record.rev), context.clone());
                    if wish {
                        self.came.put(record.key.clone(), (context.clone(), now));
                    }
                }
                self.turn.push(span);
            }
            Frame::Propose(proposal) => self.asked(proposal, trace),
            _ => {}
        }
    }

    fn asked(&mut self, proposal: &Proposal, trace: &TraceContext) {
        let Some(mut span) = Span::begin(&self.node, "decide", Some(trace)) else { return };
        span.set("shelf", &proposal.shelf);
        let context = span.context();
        for item in proposal.items.iter().take(LOOKED_AT) {
            self.decided.put((proposal.shelf.clone(), item.key.clone()), context.clone());
        }
        self.asked.put(proposal.id.clone(), context);
        self.turn.push(span);
    }

    /// A decider has said what is written.
    pub(crate) fn decided(
        &mut self,
        id: &ProposalId,
        shelf: &ShelfId,
        decision: &Result<Decision, String>,
    ) {
        let (Some(context), Ok(decision)) = (self.asked.get(id).cloned(), decision) else { return };
        for item in decision.items.iter().take(LOOKED_AT) {
            self.decided.put((shelf.clone(), item.key.clone()), context.clone());
        }
    }

    /// What the core is about to do: frames that follow a write carry its trace.
    pub(crate) fn look(&mut self, actions: &[Action]) {
        if self.begun.is_empty() && self.decided.is_empty() {
            return;
        }
        for action in actions {
            match action {
                Action::Wrote(tag, Ok(at)) => {
                    if let Some((shelf, span)) = self.begun.get(tag) {
                        self.of.put((shelf.clone(), at.rev), span.context());
                    }
                }
                Action::Changed(shelf, changes) if shelf.owner == self.node => {
                    for change in changes {
                        self.changed(shelf, change);
                    }
                }
                _ => {}
            }
        }
    }

    fn changed(&mut self, shelf: &ShelfId, change: &Change) {
        if let Change::Put(record) = change
            && let Some(context) = self.decided.map.remove(&(shelf.clone(), record.key.clone()))
        {
            self.of.put((shelf.clone(), record.rev), context);
        }
    }

    /// Whose work a frame carries: the newest of what it holds.
    pub(crate) fn of(&self, frame: &Frame) -> Option<TraceContext> {
        match frame {
            Frame::Feed(feed) if !self.of.is_empty() => {
                let newest = feed.records.iter().rev().take(LOOKED_AT);
                let of = |rev| self.of.get(&(feed.head.shelf.clone(), rev));
                newest.map(|r| r.rev).find_map(of).cloned()
            }
            Frame::Propose(p) if !self.wishes.is_empty() => {
                self.wishes.get(&wish(&p.shelf, &p.items, p.ask.as_ref())).cloned()
            }
            _ => None,
        }
    }

    /// A write is durable, or was refused.
    pub(crate) fn wrote(&mut self, tag: Tag, result: &Result<Cursor, WriteError>) {
        let Some((_, mut span)) = self.begun.remove(&tag) else { return };
        match result {
            Ok(at) => span.set("rev", at.rev),
            Err(error) => span.fail(format!("{error:?}")),
        }
        span.end();
    }

    /// A wish has its verdict.
    pub(crate) fn judged(&mut self, tag: Tag, verdict: &Verdict) {
        let Some((_, mut span)) = self.begun.remove(&tag) else { return };
        match verdict {
            Verdict::Taken { at, .. } => span.set("rev", at.rev),
            Verdict::Refused { why, .. } => span.fail(why),
            other => span.fail(format!("{other:?}")),
        }
        span.end();
    }

    /// The turn is over.
    pub(crate) fn turned(&mut self) {
        self.turn.drain(..).for_each(Span::end);
    }
}

fn wish(shelf: &ShelfId, items: &[Item], ask: Option<&Bytes>) -> Wish {
    (shelf.clone(), items.first().map(|i| i.key.clone()), ask.cloned())
}
