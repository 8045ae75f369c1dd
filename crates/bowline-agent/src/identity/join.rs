//! Being let in: a token and a key become a certificate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_identity::{AgentDir, ClientTls, JoinToken, NodeKey, TrustBundle, pem};
use bowline_types::{NodeId, Wall};
use bowline_wire::{
    AuthRequest, Backoff, Dialer, DialerOptions, Grant, JoinRequest, Preference, ProxyRules,
};
use tracing::{info, warn};

use super::VERSION;
use crate::clock::wall;
use crate::error::Error;
use crate::options::AgentOptions;

/// How to get to a hub.
#[derive(Clone)]
pub(super) struct Way {
    hubs: Vec<String>,
    proxy: ProxyRules,
    transport: Preference,
}

impl Way {
    pub(super) fn of(options: &AgentOptions) -> Self {
        let (hubs, proxy) = (options.hubs.clone(), options.proxy.clone());
        Self { hubs, proxy, transport: options.transport }
    }
}

/// A token that is for somebody else is not used up.
pub(super) fn fits(token: &JoinToken, name: Option<&NodeId>) -> Result<(), Error> {
    match (&token.node, name) {
        (Some(found), Some(wanted)) if found != wanted => {
            Err(Error::OtherToken { wanted: wanted.clone(), found: found.clone() })
        }
        _ => Ok(()),
    }
}

/// Turns a token into an identity. A hub that is away is tried again for a while; one that says no
/// is not.
pub(super) async fn join(
    dir: &AgentDir,
    token: &JoinToken,
    way: &Way,
    name: Option<&NodeId>,
    patience: Duration,
) -> Result<(), Error> {
    let path = dir.node_file();
    let keys = dir.begin_join().map_err(|source| Error::Identity { path, source })?;
    let nobody = token.node.clone().or_else(|| name.cloned());
    let nobody = nobody.unwrap_or_else(|| NodeId::new("joining").expect("a fixed, valid name"));
    let credentials = Arc::new(AuthRequest::default());
    let mut dial = DialerOptions::new(nobody, "", credentials);
    let own = !way.hubs.is_empty();
    dial.hubs.clone_from(if own { &way.hubs } else { &token.hubs });
    dial.tls = Some(ClientTls::join(token.pins.clone())?.config());
    dial.proxy = way.proxy.clone();
    dial.preference = way.transport;
    dial.version = VERSION.into();
    let dialer = Dialer::new(dial);
    let (began, mut backoff) = (Instant::now(), Backoff::default());
    let grant = loop {
        let asked = JoinRequest {
            token_id: token.id.clone(),
            token_secret: token.secret.clone().into_bytes(),
            csr: request(&keys.node)?,
            head_key: keys.head.public(),
            agent_version: VERSION.into(),
        };
        match dialer.join(asked).await {
            Ok(grant) => break grant,
            Err(error) => {
                let refused = matches!(error, bowline_wire::Error::Refused(_));
                if refused || began.elapsed() >= patience {
                    return Err(Error::Join(error));
                }
                warn!(error = error.chain(), "not joined yet");
                tokio::time::sleep(backoff.next_wait().max(Duration::from_millis(50))).await;
            }
        }
    };
    let name = accept(dir, &keys.node, &grant, wall())?;
    info!(%name, "joined the fleet");
    Ok(())
}

/// Keeps a grant, if all of it fits; says for whom it is.
pub(super) fn accept(
    dir: &AgentDir,
    key: &NodeKey,
    grant: &Grant,
    now: Wall,
) -> Result<NodeId, Error> {
    let bad = |e: &dyn std::fmt::Display| Error::Grant(e.to_string());
    let trust =
        TrustBundle::from_pem(&pem::encode_chain(&grant.authorities)).map_err(|e| bad(&e))?;
    let chain = pem::encode_chain(&grant.chain);
    let identity = dir.accept(key, &chain, &trust, now).map_err(|e| bad(&e))?;
    Ok(identity.me.node)
}

/// A request for a certificate, as it travels.
pub(super) fn request(key: &NodeKey) -> Result<Vec<u8>, Error> {
    pem::request(&key.csr()?).map_err(|e| Error::Grant(e.to_string()))
}
