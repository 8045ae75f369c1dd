//! Where everything is, below [`BASE`](super::BASE). Segments are percent-encoded.

use std::fmt::Write as _;

use bowline_resources::ObjectKey;

/// What an agent's own API may be called in a path instead of its name.
pub const THIS_AGENT: &str = "-";

/// Agents: `GET`, `POST`.
pub const AGENTS: &str = "/agents";
/// Objects across agents: `GET`.
pub const OBJECTS: &str = "/objects";
/// Key/value: `GET` lists.
pub const KV: &str = "/kv";
/// Changes as server-sent events: `GET`.
pub const EVENTS: &str = "/events";
/// Who did what: `GET`.
pub const AUDIT: &str = "/audit";
/// Tokens: `GET`, `POST`.
pub const TOKENS: &str = "/tokens";
/// Join tokens: `GET`, `POST`.
pub const JOIN_TOKENS: &str = "/join-tokens";
/// Certificates: `GET`.
pub const PKI: &str = "/pki";
/// A new authority: `POST`.
pub const PKI_ROTATE: &str = "/pki/rotate";
/// Lets the announced authority sign: `POST`.
pub const PKI_PROMOTE: &str = "/pki/promote";
/// Ends the trust in the old authority: `POST`.
pub const PKI_RETIRE: &str = "/pki/retire";
/// Takes an announced authority back: `POST`.
pub const PKI_ABANDON: &str = "/pki/abandon";
/// Shelves and copies: `GET`.
pub const SHELVES: &str = "/shelves";
/// A consistent copy of the store: `GET`, as bytes.
pub const BACKUP: &str = "/backup";
/// How the node is doing: `GET`.
pub const STATUS: &str = "/status";
/// What is wrong, in words: `GET`.
pub const DOCTOR: &str = "/doctor";
/// This API as OpenAPI: `GET`.
pub const OPENAPI: &str = "/openapi.json";

/// One agent: `GET`, `PATCH`, `DELETE`.
pub fn agent(name: &str) -> String {
    format!("/agents/{}", segment(name))
}

/// An agent's mode: `PUT`.
pub fn agent_mode(name: &str) -> String {
    format!("{}/mode", agent(name))
}

/// Cuts an agent off: `POST`.
pub fn agent_revoke(name: &str) -> String {
    format!("{}/revoke", agent(name))
}

/// Bytes to an agent and back: `POST`.
pub fn agent_ping(name: &str) -> String {
    format!("{}/ping", agent(name))
}

/// An agent's objects: `POST` creates.
pub fn agent_objects(name: &str) -> String {
    format!("{}/objects", agent(name))
}

/// One object: `GET`, `PUT`, `PATCH`, `DELETE`.
pub fn object(agent: &str, key: &ObjectKey) -> String {
    let (group, namespace) = (segment(key.group_spelled()), segment(key.namespace_spelled()));
    let (kind, name) = (segment(&key.kind), segment(&key.name));
    format!("{}/{group}/{kind}/{namespace}/{name}", agent_objects(agent))
}

/// Operations on an object: `POST`.
pub fn operations(agent: &str, key: &ObjectKey) -> String {
    format!("{}/operations", object(agent, key))
}

/// One key: `GET`, `PUT`, `DELETE`. Slashes in the key are slashes in the path.
pub fn kv(key: &str) -> String {
    let path: Vec<_> = key.split('/').map(segment).collect();
    format!("/kv/{}", path.join("/"))
}

/// One token: `DELETE`.
pub fn token(id: &str) -> String {
    format!("/tokens/{}", segment(id))
}

/// One join token: `DELETE`.
pub fn join_token(id: &str) -> String {
    format!("/join-tokens/{}", segment(id))
}

/// Takes back what peers still hold of a stopped shelf: `POST`.
pub fn shelf_adopt(id: &str) -> String {
    format!("{}/adopt", shelf(id))
}

/// Leaves what peers hold of a stopped shelf: `POST`.
pub fn shelf_discard(id: &str) -> String {
    format!("{}/discard", shelf(id))
}

/// Lets go what an agent holds though a shelf lacks it: `POST`.
pub fn shelf_approve(id: &str) -> String {
    format!("{}/approve", shelf(id))
}

/// One shelf: `GET`. The id is `owner/name`.
pub fn shelf(id: &str) -> String {
    let (owner, name) = id.split_once('/').unwrap_or((id, ""));
    format!("/shelves/{}/{}", segment(owner), segment(name))
}

/// Percent-encodes all but what RFC 3986 reserves for no purpose.
pub fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
