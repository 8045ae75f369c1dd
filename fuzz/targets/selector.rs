//! Label and field selectors from a query, and names of objects and shelves.

#![no_main]

use std::collections::BTreeMap;

use bowline_fuzz::seed;
use bowline_resources::{FieldSelector, LabelSelector, ObjectKey};
use bowline_types::ShelfId;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed(SEEDS), |data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(labels) = text.parse::<LabelSelector>() {
        assert_eq!(labels.to_string().parse::<LabelSelector>().as_ref(), Ok(&labels));
        assert!(!labels.is_empty() || labels.matches(&BTreeMap::new()));
    }
    let _refused = text.parse::<FieldSelector>();
    if let Ok(key) = text.parse::<ObjectKey>() {
        assert_eq!(key.to_string().parse::<ObjectKey>().as_ref(), Ok(&key));
        assert_eq!(ObjectKey::from_record(&key.record_key()).as_ref(), Ok(&key));
    }
    if let Ok(shelf) = text.parse::<ShelfId>() {
        assert_eq!(shelf.to_string().parse::<ShelfId>().expect("our own name"), shelf);
    }
});

const SEEDS: [&str; 4] = [
    "env=prod,tier in (a,b),x notin (c),!legacy,app,zone!=z",
    "status.health!=Healthy,agent=alpha,metadata.namespace=n",
    "apps/Deployment/default/web",
    "hub/desired@a1",
];
