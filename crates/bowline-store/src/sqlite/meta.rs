//! A slot's meta as it stands in the file: JSON that a person can read, and apart from it the
//! interest, which is long where there are many prefixes and seldom changes.

use std::borrow::Cow;

use bowline_types::{Cursor, Head, Interest, Meta, Place, Rev};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Text<'a> {
    head: Cow<'a, Head>,
    place: Cow<'a, Place>,
    floor: Rev,
    whole_at: Cursor,
    best: Cow<'a, Option<Head>>,
}

/// All of a meta but its interest.
pub(crate) fn to_text(meta: &Meta) -> String {
    // Taken apart by name, so that a new field cannot be forgotten.
    let Meta { head, place, floor, whole_at, interest: _, best } = meta;
    let text = Text {
        head: Cow::Borrowed(head),
        place: Cow::Borrowed(place),
        floor: *floor,
        whole_at: *whole_at,
        best: Cow::Borrowed(best),
    };
    serde_json::to_string(&text).expect("plain structs have a JSON form")
}

/// The meta again.
pub(crate) fn of_text(text: &str, interest: &str) -> Result<Meta, serde_json::Error> {
    let interest: Interest = serde_json::from_str(interest)?;
    let Text { head, place, floor, whole_at, best } = serde_json::from_str(text)?;
    Ok(Meta {
        head: head.into_owned(),
        place: place.into_owned(),
        floor,
        whole_at,
        interest,
        best: best.into_owned(),
    })
}
