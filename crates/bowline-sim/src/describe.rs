//! Events, actions and frames in one line each, for those who step through a schedule.

use bowline_sync::{Action, Event, Feed, Frame, Row};
use bowline_types::{Change, Have, Place, Why};

pub(crate) fn event(event: &Event) -> String {
    match event {
        Event::LinkUp(link, peer) => format!("link {} to {peer} is up", link.0),
        Event::LinkDown(link) => format!("link {} is down", link.0),
        Event::Frame(link, f) => format!("link {}: {}", link.0, frame(f)),
        Event::Write { shelf, items, .. } => {
            let items = items.iter().map(|i| match &i.body {
                Some(body) => format!("{}={body:?}", i.key),
                None => format!("no {}", i.key),
            });
            format!("write {shelf}: {}", items.collect::<Vec<_>>().join(", "))
        }
        Event::Persisted(ticket) => format!("batch {} is on disk", ticket.0),
        Event::PersistFailed(ticket) => format!("batch {} failed", ticket.0),
        Event::Interest(shelf, interest) => format!("shall hold {interest:?} of {shelf}"),
        other => format!("{other:?}"),
    }
}

pub(crate) fn action(action: &Action) -> String {
    match action {
        Action::Send(link, f) => format!("sends on link {}: {}", link.0, frame(f)),
        Action::Persist(batch) => {
            let writes = batch.writes.iter().map(|w| {
                let (puts, drops) = (w.puts.len(), w.drops.len());
                format!("{} {:?} {:?} +{puts} -{drops}", w.shelf, w.slot, w.start)
            });
            format!("batch {}: {}", batch.ticket.0, writes.collect::<Vec<_>>().join("; "))
        }
        Action::Changed(shelf, changes) => {
            let changes = changes.iter().map(|c| match c {
                Change::Put(r) => format!("{}@{}", r.key, r.rev),
                Change::Gone(key, Why::Removed) => format!("{key} removed"),
                Change::Gone(key, Why::Absent) => format!("{key} absent"),
            });
            format!("{shelf} now reads {}", changes.collect::<Vec<_>>().join(", "))
        }
        Action::Close(link, reason) => format!("closes link {}: {reason:?}", link.0),
        Action::Forgot(shelf) => format!("has forgotten something of {shelf}"),
        other => format!("{other:?}"),
    }
}

fn frame(frame: &Frame) -> String {
    match frame {
        Frame::Hello { rows, .. } => {
            let rows: Vec<_> = rows.iter().map(row).collect();
            format!("Hello [{}]", rows.join("; "))
        }
        Frame::Feed(f) => feed(f),
        Frame::Ack { shelf, number, taken, have: at } => {
            let what = if *taken { "took" } else { "refuses" };
            format!("Ack {shelf}: {what} {number}, {}", have(at))
        }
        Frame::Give { shelf, have: at } => format!("Give {shelf} from {}", have(at)),
        other => format!("{other:?}"),
    }
}

fn row(row: &Row) -> String {
    format!("{} {}", row.shelf, have(&row.have))
}

fn feed(feed: &Feed) -> String {
    let records = feed.records.iter().map(|r| {
        let dead = if r.is_live() { "" } else { " dead" };
        format!("{}@{}{dead}", r.key, r.rev)
    });
    let records = records.collect::<Vec<_>>().join(", ");
    let (shelf, target) = (&feed.head.shelf, feed.target);
    format!("Feed {} {shelf} {target:?} to {}: {records}", feed.number, place(&feed.to))
}

fn have(have: &Have) -> String {
    let main = have.main.as_ref().map_or("nothing".into(), place);
    let aside = have.aside.as_ref().map(|p| format!(", aside {}", place(p)));
    format!("at {main}{}", aside.unwrap_or_default())
}

fn place(place: &Place) -> String {
    let seen =
        if place.seen == place.cursor { "".into() } else { format!(" of {}", place.seen.rev) };
    let part = place.part.as_ref().map(|p| format!(" walking {:?} after {:?}", p.adding, p.after));
    format!("{:?}{seen}{}", place.cursor, part.unwrap_or_default())
}
