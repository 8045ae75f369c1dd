//! What comes with a request, checked, with problems that say what is wrong.

use std::sync::Arc;
use std::time::Duration;

use axum::body::BodyDataStream;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT, IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::{Code, Fault};
use crate::state::State;
use bowline_client::Intake;
use bowline_client::api::{DEFAULT_LIMIT, MAX_LIMIT};

/// How long, and how much, is read behind the answer that a body is too large.
const BEHIND: Duration = Duration::from_secs(10);
const MUCH: usize = 256 << 20;

/// A body as it is.
pub(crate) struct Raw(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = Fault;

    async fn from_request(request: Request, _: &S) -> Result<Self, Fault> {
        let most = Intake::MAX;
        let large = || Code::TooLarge.because(format!("a body has at most {most} bytes"));
        let headers = request.headers();
        let told = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
        let asks = headers.contains_key(EXPECT);
        let mut pieces = request.into_body().into_data_stream();
        if !Intake::admits(told, asks) {
            // Who asks for leave to send does not get it by our reading on.
            if !asks {
                read_on(pieces);
            }
            return Err(large());
        }
        let mut intake = Intake::default();
        while let Some(piece) = pieces.next().await {
            // If the line broke nobody reads the answer.
            if !intake.take(&piece.map_err(|_| large())?) {
                read_on(pieces);
                return Err(large());
            }
        }
        intake.whole().map(|body| Self(body.into())).ok_or_else(large)
    }
}

/// Reads on behind the answer and drops it all, for a while: HTTP/2 resets the stream of a body that nobody
/// reads, answer and all, and HTTP/1.1 closes the connection under a client that still writes.
fn read_on(mut pieces: BodyDataStream) {
    tokio::spawn(tokio::time::timeout(BEHIND, async move {
        let mut left = MUCH;
        while let Some(Ok(piece)) = pieces.next().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                return;
            }
        }
    }));
}

/// No body means all defaults.
fn or_none(bytes: &[u8]) -> &[u8] {
    if bytes.is_empty() { b"{}" } else { bytes }
}

/// A body as a JSON object.
pub(crate) struct Json<T>(pub(crate) T);

/// A body as any JSON, for who looks at all of it.
pub(crate) struct AnyJson(pub(crate) serde_json::Value);

impl<S: Send + Sync> FromRequest<S> for AnyJson {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let Raw(bytes) = Raw::from_request(request, state).await?;
        serde_json::from_slice(or_none(&bytes)).map(Self).map_err(|e| Code::BadJson.because(e))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let Raw(bytes) = Raw::from_request(request, state).await?;
        let text = or_none(&bytes);
        // A list would be taken for the fields in their order.
        if text.trim_ascii_start().first() == Some(&b'[') {
            return Err(Code::BadJson.because("an object is expected, and this is a list"));
        }
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
