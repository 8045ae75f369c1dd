//! One follower: lists, watches from there, and lists again when its place is lost.

use std::time::Duration;

use bowline_resources::{Object, ObjectKey};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::known::{Known, News};
use super::{Heard, Teller};
use crate::backoff::Backoff;
use crate::body::{Lines, Unread};
use crate::call::{About, Call, with_query};
use crate::cluster::Cluster;
use crate::list::{Item, Pages, resource_version, unreadable};
use crate::pace::Pace;
use crate::refusal::{Status, refused};
use crate::{Error, Kind};

/// Follows one kind in one namespace, or in all.
pub(super) struct Follower {
    cluster: Cluster,
    kind: Kind,
    namespace: Option<String>,
    labels: Option<String>,
    tell: Teller,
    known: Known,
    place: Place,
    mood: Mood,
    backoff: Backoff,
}

/// Where in the server's history it is.
enum Place {
    /// Nowhere: a list must say what there is.
    Lost,
    /// All up to this resourceVersion has been told.
    At(String),
}

enum Mood {
    Well,
    /// This has been told.
    Troubled(Error),
}

/// How one try went.
enum Turn {
    /// As it should; the next may follow at once.
    Well,
    /// Nothing to tell, but pause before the next.
    Pause,
    /// To be told.
    Failed(Error),
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    sort: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
}

impl Follower {
    pub(super) fn new(
        cluster: Cluster,
        kind: Kind,
        namespace: Option<String>,
        labels: Option<String>,
        tell: Teller,
    ) -> Self {
        let Pace { first_pause, longest_pause, .. } = cluster.inner.door.pace;
        Self {
            cluster,
            kind,
            namespace,
            labels,
            tell,
            known: Known::new(),
            place: Place::Lost,
            mood: Mood::Well,
            backoff: Backoff::new(first_pause, longest_pause),
        }
    }

    /// Follows for ever.
    pub(super) async fn run(mut self) {
        loop {
            let turn = match &self.place {
                Place::Lost => self.list().await,
                Place::At(version) => {
                    let version = version.clone();
                    self.follow(&version).await
                }
            };
            let least = match turn {
                Turn::Well => continue,
                Turn::Pause => Duration::ZERO,
                Turn::Failed(error) => {
                    let asked = self.asked_wait(&error);
                    self.trouble(error).await;
                    asked
                }
            };
            tokio::time::sleep(self.backoff.pause().max(least)).await;
        }
    }

    /// How long the server asks to be left alone, as far as that is obeyed.
    fn asked_wait(&self, error: &Error) -> Duration {
        match error {
            Error::Throttled { after, .. } => (*after).min(self.cluster.inner.door.pace.throttled),
            _ => Duration::ZERO,
        }
    }

    /// Tells all that is there, and what went while the place was lost.
    async fn list(&mut self) -> Turn {
        let cluster = self.cluster.clone();
        let (kind, namespace) = (self.kind.clone(), self.namespace.clone());
        let labels = self.labels.clone();
        let mut pages = Pages::new(&cluster, &kind, namespace.as_deref(), labels.as_deref());
        self.known.begin_list();
        let mut version = String::new();
        loop {
            match pages.next().await {
                Ok(Some(page)) => {
                    version = page.resource_version;
                    for object in page.objects {
                        self.put(object, |key, uid| Heard::Missed { key, uid }).await;
                    }
                }
                Ok(None) => break,
                // The list took longer than the server keeps it: once is no trouble.
                Err(Error::Expired { .. }) if self.backoff.failures() == 0 => return Turn::Pause,
                Err(error) => return Turn::Failed(error),
            }
        }
        for (key, uid) in self.known.end_list(&kind) {
            self.tell.tell(Heard::Missed { key, uid }).await;
        }
        self.place = Place::At(version);
        self.mood = Mood::Well;
        self.tell.tell(Heard::Listed).await;
        Turn::Well
    }

    /// Tells what happens from a place on, until the watch ends.
    async fn follow(&mut self, version: &str) -> Turn {
        let pace = self.cluster.inner.door.pace.clone();
        // Not all watches of a fleet end at the same time.
        let asked = pace.watch.mul_f64(rand::random_range(0.7..=1.0));
        let opened = self.cluster.inner.door.stream(&self.watch_call(version, asked)).await;
        let body = match opened {
            Ok(body) => body,
            Err(error) => return self.not_opened(error),
        };
        self.recovered().await;
        let (mut lines, start) = (Lines::new(body), Instant::now());
        let end = start + asked + pace.grace;
        loop {
            let patience = pace.silence.min(end.saturating_duration_since(Instant::now()));
            let line = match timeout(patience, lines.next()).await {
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None) | Err(Unread::Broken(_))) => break,
                Ok(Err(Unread::TooLong(limit))) => return self.lost(too_long(limit)),
                Err(_) => {
                    debug!(kind = %self.kind.kind, ?patience, "watch is silent, opened again");
                    break;
                }
            };
            if let Err(error) = self.take(&line).await {
                return self.lost(error);
            }
            self.backoff.reset();
        }
        // A server that hangs up at once must not be asked again at once.
        if start.elapsed() < pace.settled {
            return Turn::Pause;
        }
        self.backoff.reset();
        Turn::Well
    }

    fn watch_call(&self, version: &str, asked: Duration) -> Call {
        let namespace = self.namespace.as_deref();
        let seconds = asked.as_secs().max(1).to_string();
        let query = [
            ("watch", Some("true")),
            ("allowWatchBookmarks", Some("true")),
            ("resourceVersion", Some(version)),
            ("timeoutSeconds", Some(seconds.as_str())),
            ("labelSelector", self.labels.as_deref()),
        ];
        let path = with_query(&self.kind.collection(namespace), &query);
        Call::read(path, About::of("watch", &self.kind, namespace, None))
    }

    /// The watch could not be opened. The place is kept unless the server says something about it;
    /// a kind that vanished may come back with other objects.
    fn not_opened(&mut self, error: Error) -> Turn {
        match error {
            Error::Expired { .. } | Error::Invalid { .. } | Error::NoKind { .. } => {
                self.lost(error)
            }
            error => Turn::Failed(error),
        }
    }

    /// The place is lost. That histories are kept for a while only is no trouble, unless it goes on.
    fn lost(&mut self, error: Error) -> Turn {
        self.place = Place::Lost;
        self.known.lose_place();
        match error {
            Error::Expired { .. } if self.backoff.failures() == 0 => Turn::Pause,
            error => Turn::Failed(error),
        }
    }

    /// Takes one line of a watch. An error means that it cannot go on from here.
    async fn take(&mut self, line: &[u8]) -> Result<(), Error> {
        let about = About::of("watch", &self.kind, self.namespace.as_deref(), None);
        let unread = |e: serde_json::Error| unreadable(&about, &e);
        let Event { sort, object } = serde_json::from_slice(line).map_err(unread)?;
        match sort {
            "ADDED" | "MODIFIED" => {
                let object = self.object(object).map_err(unread)?;
                let version = resource_version(&object).to_owned();
                self.put(object, |key, uid| Heard::Gone { key, uid }).await;
                self.place = Place::At(version);
            }
            "DELETED" => {
                let object = self.object(object).map_err(unread)?;
                self.known.gone(&object);
                let uid = object.metadata.uid.clone().unwrap_or_default();
                self.tell.tell(Heard::Gone { key: object.key(), uid }).await;
                self.place = Place::At(resource_version(&object).to_owned());
            }
            "BOOKMARK" => {
                let mark: Bookmark = serde_json::from_str(object.get()).map_err(unread)?;
                self.place = Place::At(mark.metadata.resource_version);
            }
            "ERROR" => {
                let status: Status = serde_json::from_str(object.get()).map_err(unread)?;
                return Err(refused(self.cluster.server(), &about, status, None));
            }
            // Sorts that are not known yet carry nothing that we asked for.
            other => debug!(sort = other, "unknown event of a watch"),
        }
        Ok(())
    }

    fn object(&self, raw: &RawValue) -> Result<Object, serde_json::Error> {
        let item = serde_json::from_str::<Item>(raw.get())?;
        Ok(item.into_object(&self.kind, &self.cluster.inner.manager))
    }

    /// Tells an object, and before it, in the words of `instead`, the end of another of its name.
    async fn put(&mut self, object: Object, instead: fn(ObjectKey, String) -> Heard) {
        match self.known.put(&object) {
            News::Stale => return,
            News::Fresh => {}
            News::Instead { of } => {
                self.tell.tell(instead(object.key(), of)).await;
            }
        }
        self.tell.tell(Heard::Put(Box::new(object))).await;
    }

    async fn trouble(&mut self, error: Error) {
        if matches!(&self.mood, Mood::Troubled(told) if told.is_like(&error)) {
            return;
        }
        self.tell.tell(Heard::Trouble(error.clone())).await;
        self.mood = Mood::Troubled(error);
    }

    async fn recovered(&mut self) {
        if let Mood::Troubled(_) = self.mood {
            self.mood = Mood::Well;
            self.tell.tell(Heard::Listed).await;
        }
    }
}

fn too_long(limit: usize) -> Error {
    let (what, why) = ("watch".into(), format!("an event has more than {limit} bytes"));
    Error::Other { what, code: None, why }
}
