//! Rotations of the CA that were cut short.

use bowline_identity::CaSet;

use super::*;
use crate::{Hub, HubOptions};

const WEEK: u64 = 7 * 86_400;

async fn record(state: &State, entry: RotationEntry) {
    let key = access::key("pki", "rotation").unwrap();
    let item = Item::put(key, access::encode(&entry));
    state.handle.write(&shelves::access(), vec![], vec![item]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_was_not_recorded_gets_its_whole_overlap() {
    let dir = tempfile::tempdir().unwrap();
    let hub = Hub::start(HubOptions::new(dir.path())).await.unwrap();
    let (state, now) = (hub.state().clone(), clock::now());
    // Announced and killed before anything was recorded: it goes on by itself all the same.
    state.pki.step(now, |set| set.rotate("next", now)).unwrap();
    rotate_on(&state).await;
    let begun = state.views.access.rotation().unwrap();
    assert_eq!((begun.next, begun.overlap), (Some(NextStep::Promote), WEEK));
    assert_eq!(state.pki.phase(), "announced");

    // Promoted after its week and killed before that was recorded: the old CA is not retired at once.
    let since = Wall(now.0 - WEEK * 1000 - 1);
    record(&state, RotationEntry { since, ..begun }).await;
    state.pki.step(now, CaSet::promote).unwrap();
    rotate_on(&state).await;
    assert_eq!(state.pki.phase(), "switched", "agents still show certificates of the old CA");
    let begun = state.views.access.rotation().unwrap();
    assert!(begun.next == Some(NextStep::Retire) && begun.since >= now);

    // Recorded and due, it goes on, and ends.
    record(&state, RotationEntry { since, ..begun }).await;
    rotate_on(&state).await;
    assert_eq!(state.pki.phase(), "steady");
    assert_eq!(state.views.access.rotation(), None);
    hub.drain().await;
}
