//! What comes with a request, checked, with problems that say what is wrong.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT, IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::{Code, Fault};
use crate::state::State;
use bowline_client::api::{DEFAULT_LIMIT, MAX_LIMIT};

/// The largest body of a request.
pub(crate) const MAX_BODY: usize = 2 << 20;
/// The most that is read of one that is larger.
const MAX_READ: usize = 16 << 20;

/// A body as it is.
pub(crate) struct Raw(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = Fault;

    async fn from_request(request: Request, _: &S) -> Result<Self, Fault> {
        let large = || Code::TooLarge.because(format!("a body has at most {MAX_BODY} bytes"));
        let headers = request.headers();
        let told = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
        // Who waits for our leave, or would send without end, hears it at once.
        let asks = headers.contains_key(EXPECT);
        if told.is_some_and(|told: usize| told > MAX_READ || (told > MAX_BODY && asks)) {
            return Err(large());
        }
        bounded(request.into_body()).await.map(Self).ok_or_else(large)
    }
}

/// A body, unless it is too large, or the line broke and nobody reads the answer. What is too large
/// is read all the same, up to a bound: a client that still writes when the connection is closed
/// never sees why.
async fn bounded(body: axum::body::Body) -> Option<Bytes> {
    let (mut kept, mut read) = (BytesMut::new(), 0);
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.ok()?;
        read += chunk.len();
        if read > MAX_READ {
            return None;
        }
        if read <= MAX_BODY {
            kept.extend_from_slice(&chunk);
        }
    }
    (read <= MAX_BODY).then(|| kept.freeze())
}

/// A body as JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let Raw(bytes) = Raw::from_request(request, state).await?;
        // No body means all defaults.
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(text).map(Self).map_err(|e| Code::BadJson.because(e))
    }
}

/// The query.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(q)| Self(q)).map_err(|e| Code::BadQuery.because(e.body_text()))
    }
}

/// The segments of the path.
pub(crate) struct At<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<State>> for At<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<State>) -> Result<Self, Fault> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(p)| Self(p)).map_err(|e| Code::BadQuery.because(e.body_text()))
    }
}

/// What must be so for a write to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Nothing.
    Any,
    /// It is not there yet.
    Missing,
    /// It is at this rev.
    Rev(u64),
}

impl<S: Send + Sync> FromRequestParts<S> for Expect {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Fault> {
        expect(&parts.headers)
    }
}

fn expect(headers: &HeaderMap) -> Result<Expect, Fault> {
    let text = |name| headers.get(name).map(|v: &http::HeaderValue| v.to_str().unwrap_or(""));
    if let Some(tag) = text(IF_MATCH) {
        let rev = tag.trim().trim_matches('"').parse();
        return rev.map(Expect::Rev).map_err(|_| {
            Code::BadQuery.because(format!("If-Match: {tag:?} is not a rev in quotes"))
        });
    }
    match text(IF_NONE_MATCH) {
        None => Ok(Expect::Any),
        Some("*") => Ok(Expect::Missing),
        Some(other) => Err(Code::BadQuery.because(format!("If-None-Match: {other:?} is not *"))),
    }
}

/// How many items a page has.
pub(crate) fn limit(asked: Option<usize>) -> usize {
    asked.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)
}
