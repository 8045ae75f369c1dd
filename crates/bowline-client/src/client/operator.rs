//! Tokens, audit, certificates, shelves, backups, health.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use super::{Call, Client};
use crate::Error;
use crate::api::{
    Approved, AuditEntry, AuditQuery, Doctor, Done, List, PkiRotate, PkiStep, PkiView, ShelfView,
    Status, TokenCreate, TokenCreated, TokenView, paths,
};

impl Client {
    /// One page of the audit, newest first.
    pub async fn audit(&self, query: &AuditQuery) -> Result<List<AuditEntry>, Error> {
        self.get(paths::AUDIT, query).await
    }

    /// Makes a token for a person or a program.
    pub async fn create_token(&self, token: &TokenCreate) -> Result<TokenCreated, Error> {
        self.post(paths::TOKENS, token).await
    }

    /// The tokens that count.
    pub async fn tokens(&self) -> Result<List<TokenView>, Error> {
        self.get(paths::TOKENS, &()).await
    }

    /// Takes a token back.
    pub async fn revoke_token(&self, id: &str) -> Result<Done, Error> {
        self.delete(&paths::token(id)).await
    }

    /// The authorities and the hub's certificate.
    pub async fn pki(&self) -> Result<PkiView, Error> {
        self.get(paths::PKI, &()).await
    }

    /// Brings in a new authority.
    pub async fn rotate_pki(&self, rotate: &PkiRotate) -> Result<PkiView, Error> {
        self.post(paths::PKI_ROTATE, rotate).await
    }

    /// Lets the announced authority sign, now; with `force` though agents have not heard of it.
    pub async fn promote_pki(&self, force: bool) -> Result<PkiView, Error> {
        self.post(paths::PKI_PROMOTE, &PkiStep { force }).await
    }

    /// Ends the trust in the old authority, now; with `force` though agents have not renewed.
    pub async fn retire_pki(&self, force: bool) -> Result<PkiView, Error> {
        self.post(paths::PKI_RETIRE, &PkiStep { force }).await
    }

    /// Takes an announced authority back.
    pub async fn abandon_pki(&self) -> Result<PkiView, Error> {
        self.post(paths::PKI_ABANDON, &Done {}).await
    }

    /// The node's shelves and copies.
    pub async fn shelves(&self) -> Result<List<ShelfView>, Error> {
        self.get(paths::SHELVES, &()).await
    }

    /// Takes back what peers still hold of a stopped shelf.
    pub async fn adopt_shelf(&self, id: &str) -> Result<ShelfView, Error> {
        self.post(&paths::shelf_adopt(id), &Done {}).await
    }

    /// Leaves what peers hold of a stopped shelf.
    pub async fn discard_shelf(&self, id: &str) -> Result<ShelfView, Error> {
        self.post(&paths::shelf_discard(id), &Done {}).await
    }

    /// Lets go what an agent holds though the shelf lacks it.
    pub async fn approve_shelf(&self, id: &str) -> Result<Approved, Error> {
        self.post(&paths::shelf_approve(id), &Done {}).await
    }

    /// How the node is doing.
    pub async fn status(&self) -> Result<Status, Error> {
        self.get(paths::STATUS, &()).await
    }

    /// What is wrong, in words.
    pub async fn doctor(&self) -> Result<Doctor, Error> {
        self.get(paths::DOCTOR, &()).await
    }

    /// Begins a backup of the node's store.
    pub async fn backup(&self) -> Result<Backup, Error> {
        let open = self.open(Method::GET, paths::BACKUP, Call::default());
        let response = tokio::time::timeout(self.timeout(), open).await;
        let body = response.unwrap_or_else(|_| Err(self.late()))?.into_body();
        Ok(Backup { size: body.size_hint().exact(), body, client: self.clone() })
    }
}

/// A backup on its way.
pub struct Backup {
    body: Incoming,
    size: Option<u64>,
    client: Client,
}

impl Backup {
    /// How large it will be, if the server said so.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The next piece; none at the end. A backup that breaks off is an error, never an end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let piece = tokio::time::timeout(self.client.timeout(), self.body.frame()).await;
            match piece.map_err(|_| self.client.late())? {
                None => return Ok(None),
                Some(Err(error)) => return Err(self.client.cut(error)),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }
}
