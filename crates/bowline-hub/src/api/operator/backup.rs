//! A consistent copy of the store, as bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::get;
use bowline_client::api::Role;
use bowline_store::BackupOptions;
use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::super::caller::Caller;
use super::super::input::Params;
use super::super::openapi::Doc;
use super::super::{Routes, change};
use crate::problem::{Code, Fault};
use crate::state::State;

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Query {
    with_seal_key: bool,
}

pub(super) fn routes(routes: Routes) -> Routes {
    let doc = Doc::get("/backup", "A consistent copy of the store")
        .query(&["withSealKey"])
        .media("application/octet-stream")
        .gives("Bytes", &json!(""));
    routes.on(doc, get(backup))
}

/// A file that is gone when nobody needs it.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // A file that is left is found by its name.
        let _left = std::fs::remove_file(&self.0);
    }
}

async fn backup(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Params(query): Params<Query>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "backup.create", "store")?;
    let (begin, end) = crate::clear::BACKUP;
    let path = state.data.join(format!("{begin}{:016x}{end}", rand::random::<u64>()));
    let file = Temporary(path.clone());
    let handle = state.handle.clone();
    let work = async move {
        let options = BackupOptions { with_seal_key: query.with_seal_key };
        Ok(handle.backup(file.0.clone(), options).await.map(|_| file)?)
    };
    let file = change(&state, caller.deed("backup.create", "store"), work).await?;
    answer(&path, file).await.map_err(|e| Code::Internal.because(e))
}

async fn answer(path: &Path, keep: Temporary) -> std::io::Result<Response> {
    let open = tokio::fs::File::open(path).await?;
    let size = open.metadata().await?.len();
    let pieces = stream::unfold((open, keep), |(mut open, keep)| async {
        let mut piece = vec![0; PIECE];
        match open.read(&mut piece).await {
            Ok(0) => None,
            Ok(n) => {
                piece.truncate(n);
                Some((Ok(Bytes::from(piece)), (open, keep)))
            }
            Err(error) => Some((Err(error), (open, keep))),
        }
    });
    let response = Response::builder()
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_LENGTH, size)
        .header(CONTENT_DISPOSITION, "attachment; filename=\"bowline-hub.backup\"");
    response.body(Body::from_stream(pieces)).map_err(std::io::Error::other)
}
