//! A fleet that joins a running hub, each agent by a token of its own, as real ones do.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_identity::{ClientTls, HeadSigner, JoinToken, NodeKey, TrustBundle, pem};
use bowline_types::NodeId;
use bowline_wire::{AuthRequest, Dialer, DialerOptions, Grant, JoinRequest, Preference};
use tokio::task::JoinSet;

use crate::fleet::{Error, Fleet, Keys, Papers, now};
use crate::load::Setup;

/// Agents that join at the same time.
const ABREAST: usize = 16;

impl Fleet {
    /// Lets every agent join by its token. `progress` is told how many have come so far.
    pub async fn join(
        setup: &Setup,
        tokens: &[(NodeId, String)],
        progress: &mut dyn FnMut(usize),
    ) -> Result<Self, Error> {
        let (key, head) = (NodeKey::generate()?, HeadSigner::generate()?);
        let csr = pem::request(&key.csr()?)?;
        let mut waiting = tokens.iter();
        let mut under_way = JoinSet::new();
        let mut granted = BTreeMap::new();
        let mut trust = None;
        loop {
            while under_way.len() < ABREAST
                && let Some((name, token)) = waiting.next()
            {
                let token: JoinToken = token.parse()?;
                let asked = request(&token, &csr, &head);
                let dialer = dialer(setup, name, &token)?;
                let name = name.clone();
                under_way.spawn(async move {
                    let grant = dialer.join(asked).await;
                    (name, grant)
                });
            }
            let Some(joined) = under_way.join_next().await else { break };
            // A task that panicked has said so already; the agent is missing below.
            let Ok((name, grant)) = joined else { continue };
            let grant: Grant = grant.map_err(|e| Error::Join(name.clone(), e))?;
            granted.insert(name, pem::encode_chain(&grant.chain));
            trust = Some(grant.authorities);
            progress(granted.len());
        }
        let trust = TrustBundle::from_pem(&pem::encode_chain(&trust.ok_or(Error::Empty)?))?;
        let names = granted.keys().cloned().collect();
        let keys = Keys {
            papers: Papers::Granted(granted),
            csr: key.csr()?,
            key_pem: key.to_pem(),
            trust,
            head_public: head.public(),
            head,
            hub_head: None,
            made: now(),
        };
        Ok(Self::of(names, keys))
    }
}

fn request(token: &JoinToken, csr: &[u8], head: &HeadSigner) -> JoinRequest {
    JoinRequest {
        token_id: token.id.clone(),
        token_secret: token.secret.clone().into_bytes(),
        csr: csr.to_vec(),
        head_key: head.public(),
        agent_version: env!("CARGO_PKG_VERSION").into(),
    }
}

fn dialer(setup: &Setup, name: &NodeId, token: &JoinToken) -> Result<Dialer, Error> {
    let auth = Arc::new(AuthRequest::default());
    let mut options = DialerOptions::new(name.clone(), setup.hub.clone(), auth);
    options.server_name.clone_from(&setup.server_name);
    options.tls = Some(ClientTls::join(token.pins.clone())?.config());
    options.preference = Preference::Http2;
    options.patience = setup.patience;
    Ok(Dialer::new(options))
}
