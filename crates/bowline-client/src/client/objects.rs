//! Objects, operations on them, and key/value.

use bowline_resources::{Object, ObjectKey};
use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::{Call, Client, Expect, Written};
use crate::Error;
use crate::api::{
    Deleted, KvEntry, KvQuery, List, ObjectQuery, ObjectView, OperationAsked, OperationCreate,
    WriteQuery, paths,
};

impl Client {
    /// One page of the objects, by agent and key.
    pub async fn objects(&self, query: &ObjectQuery) -> Result<List<ObjectView>, Error> {
        self.get(paths::OBJECTS, query).await
    }

    /// Every object that matches, page by page.
    pub async fn all_objects(&self, query: &ObjectQuery) -> Result<Vec<ObjectView>, Error> {
        let (mut query, mut all) = (query.clone(), vec![]);
        loop {
            let page = self.objects(&query).await?;
            all.extend(page.items);
            query.from = page.next;
            if query.from.is_none() {
                return Ok(all);
            }
        }
    }

    /// One object.
    pub async fn object(&self, agent: &str, key: &ObjectKey) -> Result<ObjectView, Error> {
        self.get(&paths::object(agent, key), &()).await
    }

    /// Creates an object; a conflict if there is one.
    pub async fn create_object(&self, agent: &str, object: &Object) -> Result<ObjectView, Error> {
        self.post(&paths::agent_objects(agent), object).await
    }

    /// Creates or replaces an object.
    pub async fn put_object(
        &self,
        agent: &str,
        object: &Object,
        expect: Expect,
    ) -> Result<Written<ObjectView>, Error> {
        let call = Call::default().json(object).expect(expect);
        self.call(Method::PUT, &paths::object(agent, &object.key()), call).await
    }

    /// What a [`Client::put_object`] would answer; nothing is written.
    pub async fn would_put_object(
        &self,
        agent: &str,
        object: &Object,
    ) -> Result<Written<ObjectView>, Error> {
        let call = Call::default().json(object).query(&WriteQuery { dry_run: true });
        self.call(Method::PUT, &paths::object(agent, &object.key()), call).await
    }

    /// Changes an object by an RFC 7386 merge patch.
    pub async fn patch_object(
        &self,
        agent: &str,
        key: &ObjectKey,
        patch: &Value,
        expect: Expect,
    ) -> Result<ObjectView, Error> {
        let bytes = Bytes::from(patch.to_string());
        let call = Call::default().bytes(bytes, "application/merge-patch+json").expect(expect);
        self.call(Method::PATCH, &paths::object(agent, key), call).await.map(|w| w.value)
    }

    /// Deletes an object; one with finalizers goes on its agent's word.
    pub async fn delete_object(
        &self,
        agent: &str,
        key: &ObjectKey,
        expect: Expect,
    ) -> Result<Deleted, Error> {
        let call = Call::default().expect(expect);
        self.call(Method::DELETE, &paths::object(agent, key), call).await.map(|w| w.value)
    }

    /// Asks the object's agent for an operation.
    pub async fn operate(
        &self,
        agent: &str,
        key: &ObjectKey,
        operation: &OperationCreate,
    ) -> Result<OperationAsked, Error> {
        self.post(&paths::operations(agent, key), operation).await
    }

    /// One page of the keys that begin with the query's prefix.
    pub async fn kv_list(&self, query: &KvQuery) -> Result<List<KvEntry>, Error> {
        self.get(paths::KV, query).await
    }

    /// One key.
    pub async fn kv_get(&self, key: &str) -> Result<KvEntry, Error> {
        self.get(&paths::kv(key), &()).await
    }

    /// Writes a key; `cas` as in [`KvQuery`].
    pub async fn kv_put(
        &self,
        key: &str,
        value: Bytes,
        cas: Option<u64>,
    ) -> Result<KvEntry, Error> {
        self.kv_write(key, value, &KvQuery { cas, ..KvQuery::default() }).await
    }

    /// Writes a key whose value is a secret: sealed on disk, hidden from viewers.
    pub async fn kv_put_secret(
        &self,
        key: &str,
        value: Bytes,
        cas: Option<u64>,
    ) -> Result<KvEntry, Error> {
        let query = KvQuery { cas, secret: true, ..KvQuery::default() };
        self.kv_write(key, value, &query).await
    }

    async fn kv_write(&self, key: &str, value: Bytes, query: &KvQuery) -> Result<KvEntry, Error> {
        let call = Call::default().query(query).bytes(value, "application/octet-stream");
        self.call(Method::PUT, &paths::kv(key), call).await.map(|w| w.value)
    }

    /// Removes a key; `cas` as in [`KvQuery`].
    pub async fn kv_delete(&self, key: &str, cas: Option<u64>) -> Result<Deleted, Error> {
        let call = Call::default().query(&KvQuery { cas, ..KvQuery::default() });
        self.call(Method::DELETE, &paths::kv(key), call).await.map(|w| w.value)
    }
}
