//! The bodies that a peer puts on its shelves: refused, or read and then written as the same body.

#![no_main]

use bowline_fuzz::{NOW, agent, seed};
use bowline_resources::{
    Desired, Mode, Object, Observed, Of, Operation, OperationRequest, RosterEntry,
};
use bowline_types::Body;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed(seeds()), |data: &[u8]| {
    let body = Body::new(data.to_vec());
    if let Ok(desired) = Desired::decode(&body) {
        assert_eq!(Desired::decode(&desired.encode()).expect("our own"), desired);
    }
    if let Ok(observed) = Observed::decode(&body) {
        assert_eq!(Observed::decode(&observed.encode()).expect("our own"), observed);
    }
    if let Ok(entry) = RosterEntry::decode(&body) {
        assert_eq!(RosterEntry::decode(&entry.encode()).expect("our own"), entry);
    }
    if let Ok(request) = OperationRequest::decode(data) {
        assert_eq!(OperationRequest::decode(&request.encode()).expect("our own"), request);
    }
});

fn seeds() -> Vec<Vec<u8>> {
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"},
    });
    let object = Object::from_value(object).expect("an object");
    let request = OperationRequest {
        id: "1".into(),
        key: object.key(),
        uid: Some("uid-1".into()),
        operation: Operation::Sync,
        by: "someone".into(),
        argument: Default::default(),
    };
    let bodies = [
        Desired::new(&object, "uid-1", NOW).encode(),
        Observed::new(Of::default(), NOW).encode(),
        RosterEntry::new(agent(), Mode::Managed, NOW).encode(),
    ];
    let bodies = bodies.into_iter().map(|body| body.bytes);
    bodies.chain([request.encode()]).map(|bytes| bytes.to_vec()).collect()
}
