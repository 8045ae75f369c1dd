//! What has been shown of a watch, so that whatever happens is shown once: also what went while the
//! line was down.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bowline_client::api::What;
use bowline_client::{Client, Error, Watch, WatchItem};
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::print::{self, Cell, Format, Table};

/// How long a hub that has just been there again is left alone before it is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// Entries of a log that are remembered: more than can be told twice.
const REMEMBERED: usize = 10_000;

/// What an event says of something that is watched.
pub(super) enum News<W: Watched + ?Sized> {
    There(Box<W::View>),
    Gone(W::Id),
}

/// Things of one sort: how they are told apart and shown.
pub(super) trait Watched {
    type Id: Ord + Clone;
    type View: Serialize + Clone;
    /// Tells one state of a thing from another.
    type Mark: PartialEq;

    /// What an event says of them; none if it is about something else.
    fn news(&self, what: What) -> Option<News<Self>>;
    fn id(&self, view: &Self::View) -> Self::Id;
    fn table(&self, views: &[Self::View]) -> Table;
    fn row(&self, view: &Self::View) -> Vec<Cell>;
    /// For people, and what names it for programs.
    fn gone(&self, id: &Self::Id) -> (Vec<Cell>, Value);

    /// The state of a thing that need not be shown twice; none: it is shown each time it is told.
    fn mark(&self, _: &Self::View) -> Option<Self::Mark> {
        None
    }

    /// Whether they stay what they are, and are no part of a present state.
    fn is_log(&self) -> bool {
        false
    }

    /// What happened while nobody listened, of what no present state tells; oldest first.
    async fn missed(
        &self,
        _: &Client,
        _shown: &BTreeMap<Self::Id, Option<Self::Mark>>,
        _last: Option<&Self::View>,
    ) -> Result<Vec<Self::View>, Error> {
        Ok(vec![])
    }
}

/// What is shown of an event.
struct Shown {
    row: Vec<Cell>,
    value: Value,
}

/// What the reader knows.
struct Picture<W: Watched> {
    watched: W,
    known: BTreeMap<W::Id, Option<W::Mark>>,
    /// After a reset: what was known, and has not been told again.
    doubtful: Option<BTreeSet<W::Id>>,
    last: Option<W::View>,
}

impl<W: Watched> Picture<W> {
    fn new(watched: W, first: &[W::View]) -> Self {
        let known = first.iter().map(|view| (watched.id(view), watched.mark(view))).collect();
        Self { watched, known, doubtful: None, last: first.last().cloned() }
    }

    fn take(&mut self, what: What) -> Vec<Shown> {
        match what {
            What::Reset if !self.watched.is_log() => {
                let known = std::mem::take(&mut self.known).into_keys();
                self.doubtful.get_or_insert_default().extend(known);
                vec![]
            }
            What::Ready => {
                let gone = self.doubtful.take().into_iter().flatten();
                gone.map(|id| self.shown_gone(&id)).collect()
            }
            what => match self.watched.news(what) {
                Some(News::There(view)) => self.put(*view).into_iter().collect(),
                Some(News::Gone(id)) => {
                    let doubted = self.doubtful.as_mut().is_some_and(|d| d.remove(&id));
                    let known = self.known.remove(&id).is_some() || doubted;
                    known.then(|| self.shown_gone(&id)).into_iter().collect()
                }
                None => vec![],
            },
        }
    }

    fn put(&mut self, view: W::View) -> Option<Shown> {
        let (id, mark) = (self.watched.id(&view), self.watched.mark(&view));
        if let Some(doubtful) = &mut self.doubtful {
            doubtful.remove(&id);
        }
        if mark.is_some() && self.known.get(&id) == Some(&mark) {
            return None;
        }
        self.known.insert(id, mark);
        if self.watched.is_log() {
            while self.known.len() > REMEMBERED {
                self.known.pop_first();
            }
        }
        let value = serde_json::to_value(&view).unwrap_or_default();
        let row = self.watched.row(&view);
        self.last = Some(view);
        Some(Shown { row, value })
    }

    fn shown_gone(&self, id: &W::Id) -> Shown {
        let (row, mut value) = self.watched.gone(id);
        value["verb"] = json!("gone");
        Shown { row, value }
    }

    async fn missed(&self, client: &Client) -> Outcome<Vec<W::View>> {
        loop {
            match self.watched.missed(client, &self.known, self.last.as_ref()).await {
                Err(error) if error.is_unreachable() => {
                    print::note(&format!("{error}; trying again\n"));
                    tokio::time::sleep(AGAIN).await;
                }
                other => return Ok(other?),
            }
        }
    }
}

/// Prints what is there, and then a row for each event that shows something.
pub(super) async fn follow<W: Watched>(
    client: &Client,
    mut watch: Watch,
    watched: W,
    first: Vec<W::View>,
    format: Format,
) -> Outcome {
    let mut table = watched.table(&first).roomy();
    let mut picture = Picture::new(watched, &first);
    if format.is_table() {
        print::out(&table.render(print::colour()))?;
    } else {
        first.iter().try_for_each(|item| print::streamed(item, format))?;
    }
    let mut reset = false;
    loop {
        let what = match watch.next().await? {
            WatchItem::Lost(error) => {
                print::note(&format!("{error}; trying again\n"));
                continue;
            }
            WatchItem::Event(event) => event.what,
        };
        if what == What::Reset {
            print::note("events were missed; the present state follows\n");
            reset = true;
        }
        let is_ready = what == What::Ready;
        let mut shown = picture.take(what);
        if is_ready && std::mem::take(&mut reset) {
            // Not before: what is written until here is no news of the stream.
            let missed = picture.missed(client).await?;
            shown.extend(missed.into_iter().filter_map(|view| picture.put(view)));
        }
        for Shown { row, value } in shown {
            match format.is_table() {
                true => print::out(&table.next(&row, print::colour()))?,
                false => print::streamed(&value, format)?,
            }
        }
    }
}

#[cfg(test)]
mod tests;
