//! An event of argocd-agent's dialect, as either end takes it in: what is read must survive the way
//! back, and whatever it asks for must be something that an object can be called.

#![no_main]

use bowline_argocd::checksum::spec_checksum;
use bowline_argocd::payload::{self, ErrorReport, RequestUpdate, SyncedResource};
use bowline_argocd::{
    Apps, End, Event, Inbox, Inventory, Kind, Outcome, Place, Resync, Subject, Taken, Target, Task,
};
use bowline_fuzz::{agent, seed};
use bowline_resources::{Mode, ObjectKey};
use bowline_types::Mono;
use bowline_wire::CloudEvent;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;

fuzz_target!(init: seed(seeds()), |data: &[u8]| {
    let Ok(wire) = CloudEvent::decode(data) else { return };
    let Ok(event) = Event::from_wire(wire) else { return };
    assert_eq!(Event::from_wire(event.to_wire(End::Agent)).as_ref(), Ok(&event));
    let ack = event.ack();
    assert_eq!((&ack.resource_id, &ack.event_id), (&event.resource_id, &event.event_id));
    for end in [End::Principal, End::Agent] {
        for mode in [Mode::Managed, Mode::Autonomous] {
            take(end, mode, &event);
        }
    }
});

fn take(end: End, mode: Mode, event: &Event) {
    let mut inbox = Inbox::new(end, mode);
    let Taken::Work(work) = inbox.take(event.clone()) else { return };
    match &work.task {
        Task::Object { resource, object, .. } => {
            assert!(is_name(&Place::of(*resource, object).name));
            let _none_of_it = spec_checksum(*resource, object);
        }
        Task::Resync(message) => {
            let apps = Apps::In(agent().to_string());
            let mut resync = Resync::new(end, mode, agent().as_str(), "argocd", apps);
            let inventory = Inventory::default();
            let _begun = resync.begin(&inventory);
            for (subject, _) in resync.receive(&inventory, message).into_iter().flatten() {
                if let Subject::Object(place) | Subject::Resync(place) = subject {
                    assert!(is_name(&place.name), "{place}");
                }
            }
        }
        _ => {}
    }
    let finished = inbox.finish(work, &Outcome::Done, Mono(0));
    assert_eq!((finished.acks.len(), inbox.waiting(), inbox.working()), (1, 0, 0));
}

fn is_name(name: &str) -> bool {
    ObjectKey::from_parts("argoproj.io", "Application", "a1", name).is_ok()
}

fn seeds() -> Vec<Vec<u8>> {
    let (name, namespace) = ("web".to_owned(), "argocd".to_owned());
    let (uid, kind) = ("u".to_owned(), "Application".to_owned());
    let synced = SyncedResource {
        name: name.clone(),
        namespace: namespace.clone(),
        uid: uid.clone(),
        kind: kind.clone(),
    };
    let update =
        RequestUpdate { name: name.clone(), namespace, uid, kind, checksum: Some(vec![1; 32]) };
    let failed = ErrorReport {
        resource_name: name,
        resource_namespace: "argocd".into(),
        message: "no".into(),
    };
    let events = [
        (Kind::StatusUpdate, Target::Application, APP.into()),
        (Kind::Create, Target::Application, APP.into()),
        (Kind::Delete, Target::AppProject, APP.into()),
        (Kind::SpecUpdate, Target::Repository, APP.into()),
        (Kind::Error, Target::Application, payload::encode(&failed)),
        (Kind::ResponseSyncedResource, Target::ResourceResync, payload::encode(&synced)),
        (Kind::RequestUpdate, Target::ResourceResync, payload::encode(&update)),
        (Kind::Processed, Target::EventProcessed, Default::default()),
        (Kind::Ping, Target::Heartbeat, Default::default()),
    ];
    let wire = |(kind, target, payload): (Kind, Target, bytes::Bytes)| {
        Event::new(kind, target, "web_u", "1", payload).to_wire(End::Agent).encode_to_vec()
    };
    events.map(wire).into()
}

const APP: &str = r#"{"metadata":{"name":"web","namespace":"argocd","uid":"u","annotations":
{"argocd.argoproj.io/source-uid":"s"},"resourceVersion":"5"},"spec":{"project":"p","n":1.5},
"status":{"health":{"status":"Healthy"}},"data":{"k":"dg=="}}"#;
