//! A bad agent: it has joined, and sends what it should not.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bowline_client::Expect;
use bowline_client::api::ShelfState;
use bowline_identity::{
    AgentDir, ClientTls, HeadSigner, JoinToken, NodeKey, Pair, TrustBundle, Versions,
};
use bowline_resources::Mode;
use bowline_sync::{FORBIDDEN, Frame, Row, Said};
use bowline_types::{
    Body, Cursor, Have, Head, Interest, Item, Key, Lineage, NodeId, Place, Proposal, ProposalId,
    ShelfId, Signature, Term, Verdict,
};
use bowline_wire::{AuthRequest, Dialer, DialerOptions, JoinRequest, Link, Preference};
use bytes::Bytes;

use super::Ground;
use super::rpc::now;
use crate::fleet::{Fleet, MANAGED, Side, join_token};
use crate::load::object;
use crate::run::say;
use crate::stage::Stage;

/// How long the hub may take to answer or to close.
const WAIT: Duration = Duration::from_secs(60);
const MALLORY: &str = "mallory";

/// The bad agent.
pub(crate) struct Mallory {
    /// Its name.
    pub(crate) name: NodeId,
    /// Its certificate and key.
    pub(crate) pair: Pair,
    /// The token that it joined with.
    pub(crate) token: JoinToken,
    head: HeadSigner,
}

impl Mallory {
    /// Joins as anyone would.
    pub(crate) async fn join(stage: &Stage, fleet: &Fleet) -> Result<Self> {
        let text = join_token(fleet.at(Side::Hub), MALLORY, Mode::Managed).await?;
        let mut token: JoinToken = text.parse()?;
        token.hubs = vec![format!("localhost:{}", fleet.hub.agents_port)];
        let dir = AgentDir::open(stage.path(MALLORY).join("pki"))?;
        let keys = dir.begin_join()?;
        let grant = joiner(&token)?.join(request_of(&token, &keys.node, &keys.head)?).await?;
        let trust = TrustBundle::from_pem(&pem(&grant.authorities))?;
        dir.accept(&keys.node, &pem(&grant.chain), &trust, now())?;
        let identity = dir.identity()?.context("just joined")?;
        Ok(Self { name: identity.me.node, pair: identity.pair, token, head: keys.head })
    }
}

/// Certificates as text.
fn pem(ders: &[Vec<u8>]) -> String {
    use base64::Engine as _;
    let one = |der: &Vec<u8>| {
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
    };
    ders.iter().map(one).collect()
}

/// A dialer that only joins.
pub(super) fn joiner(token: &JoinToken) -> Result<Dialer> {
    let tls = ClientTls::join(token.pins.clone())?;
    let name = token.node.clone().context("a token for somebody")?;
    let hub = token.hubs.first().context("a token with an address")?.clone();
    let mut options = DialerOptions::new(name, hub, Arc::new(AuthRequest::default()));
    options.tls = Some(tls.config());
    Ok(Dialer::new(options))
}

fn request_of(token: &JoinToken, key: &NodeKey, head: &HeadSigner) -> Result<JoinRequest> {
    use base64::Engine as _;
    let text = key.csr()?;
    let body: String = text.lines().filter(|l| !l.starts_with("-----")).collect();
    Ok(JoinRequest {
        token_id: token.id.clone(),
        token_secret: token.secret.clone().into_bytes(),
        csr: base64::engine::general_purpose::STANDARD.decode(body)?,
        head_key: head.public(),
        agent_version: "mallory".into(),
    })
}

/// A request with keys that are new.
pub(super) fn join_request(token: &JoinToken) -> Result<JoinRequest> {
    request_of(token, &NodeKey::generate()?, &HeadSigner::generate()?)
}

/// A dialer with this certificate.
fn dialer(fleet: &Fleet, pair: &Pair, node: &str) -> Result<Dialer> {
    dialer_by(fleet, pair, node, Preference::Auto)
}

/// A dialer with this certificate over this transport.
pub(super) fn dialer_by(
    fleet: &Fleet,
    pair: &Pair,
    node: &str,
    preference: Preference,
) -> Result<Dialer> {
    let trust = TrustBundle::from_pem(&String::from_utf8(fleet.hub.ca()?)?)?;
    let tls = ClientTls::new(Some(pair), &trust, Versions::Tls13)?;
    let auth = AuthRequest { method: "mtls".into(), ..AuthRequest::default() };
    let hub = format!("localhost:{}", fleet.hub.agents_port);
    let mut options = DialerOptions::new(NodeId::new(node)?, hub, Arc::new(auth));
    (options.tls, options.preference) = (Some(tls.config()), preference);
    Ok(Dialer::new(options))
}

impl Ground {
    async fn link(&self) -> Result<Link> {
        let dialer = dialer(&self.fleet, &self.mallory.pair, MALLORY)?;
        dialer.dial().await.context("mallory connects")
    }

    /// The hub's operator finds the code in its log.
    fn hub_said(&self, code: &str) -> Result<()> {
        let said = crate::role::tail(&self.fleet.hub.log, 10);
        ensure!(said.contains(code), "the hub does not say {code}: {said}");
        Ok(())
    }

    /// No shelf of the hub has stopped.
    async fn untouched(&self) -> Result<()> {
        let shelves = self.fleet.at(Side::Hub).shelves().await?.items;
        let stopped = shelves.iter().find(|s| s.state == ShelfState::Stopped);
        ensure!(stopped.is_none(), "a liar stopped {:?}", stopped.map(|s| &s.id));
        Ok(())
    }
}

/// Waits for the end of a link, and gives what was said.
async fn ended(mut link: Link, what: &str) -> Result<String> {
    let read = async {
        let mut last = String::new();
        while let Some(next) = link.inbound.next().await {
            if let Err(error) = next {
                last = error.chain();
            }
        }
        last
    };
    let last = tokio::time::timeout(WAIT, read).await;
    let last = last.with_context(|| format!("{what}: the link goes on"))?;
    let end = format!("{:?} {last}", link.handle.end());
    let short: String = end.chars().take(120).collect();
    say(format!("  {what}: {short}"));
    Ok(end)
}

fn coded(end: &str, what: &str, code: &str) -> Result<()> {
    ensure!(end.contains(code), "{what}: closed without {code}: {end}");
    Ok(())
}

/// Noise in place of each kind of frame.
pub(super) async fn frames_that_are_none(ground: &mut Ground) -> Result<()> {
    for kind in [
        "io.bowline.sync.v1.hello",
        "io.bowline.sync.v1.feed",
        "io.bowline.sync.v1.want",
        "io.bowline.sync.v1.ack",
        "io.bowline.sync.v1.propose",
    ] {
        let link = ground.link().await?;
        let noise = ground.chance.bytes(400);
        link.outbound.send_raw(kind, noise.into())?;
        coded(&ended(link, kind).await?, kind, "W102")?;
    }
    Ok(())
}

/// A frame beyond the limit.
pub(super) async fn oversized_frame(ground: &mut Ground) -> Result<()> {
    let link = ground.link().await?;
    link.outbound.send_raw("io.bowline.sync.v1.feed", Bytes::from(vec![0; 20 << 20]))?;
    let what = "20 MiB in a frame";
    coded(&ended(link, what).await?, what, "W103")
}

fn row(shelf: &str, have: Have, head: Option<Head>) -> Result<Row> {
    let interest = Said::Full(Interest::all());
    Ok(Row { shelf: shelf.parse::<ShelfId>()?, have, head, best: None, interest })
}

/// Asks for what is another's: nothing of it comes.
pub(super) async fn shelves_of_another(ground: &mut Ground) -> Result<()> {
    let admin = ground.fleet.at(Side::Hub).clone();
    let value = ground.chance.draw().to_string();
    admin.put_object(MALLORY, &object("own", &value), Expect::Any).await?;
    let mut link = ground.link().await?;
    let others = format!("hub/desired@{MANAGED}");
    let observed = format!("{MANAGED}/observed");
    let own = format!("hub/desired@{MALLORY}");
    let names = [others.as_str(), "hub/audit", "hub/roster", observed.as_str(), own.as_str()];
    let rows = names.iter().map(|n| row(n, Have::default(), None));
    let rows = rows.collect::<Result<Vec<_>>>()?;
    link.outbound.send(Frame::Hello { session: Term::draw(now().0, 1), rows })?;
    let read = async {
        let (mut own_came, mut barrier, mut hubs) = (false, false, Term::default());
        while let Some(next) = link.inbound.next().await {
            let feed = match next? {
                Frame::Feed(feed) => feed,
                Frame::Hello { session, .. } => {
                    hubs = session;
                    continue;
                }
                Frame::Verdict { .. } => return Ok(()),
                _ => continue,
            };
            let shelf = feed.head.shelf.to_string();
            if shelf == own {
                own_came |= !feed.records.is_empty();
            } else if shelf != "hub/roster" {
                bail!("mallory was fed {shelf}");
            }
            // Whom to trust is for all to know.
            let known = |key: &str| key == "trust" || key.contains(MALLORY);
            let strange = feed.records.iter().find(|r| !known(r.key.as_str()));
            if let (Some(record), "hub/roster") = (strange, shelf.as_str()) {
                bail!("mallory was fed {} of the roster", record.key);
            }
            if own_came && !barrier {
                // What comes after a verdict comes after all that was asked for before it.
                barrier = true;
                link.outbound.send(Frame::Propose(Box::new(evil(&others, MALLORY, hubs)?)))?;
            }
        }
        bail!("the link ended before mallory got its own")
    };
    tokio::time::timeout(WAIT, read).await.context("nothing came")??;
    link.handle.close();
    ground.untouched().await
}

/// A wish to write what is not one's own.
fn evil(shelf: &str, as_node: &str, hubs: Term) -> Result<Proposal> {
    let item = Item::put(Key::new("evil")?, Body::new("1"));
    let id = ProposalId { node: NodeId::new(as_node)?, session: Term::draw(now().0, 9), number: 1 };
    let (shelf, guards, items) = (shelf.parse()?, vec![], vec![item]);
    Ok(Proposal { id, shelf, session: hubs, guards, items, ask: None, settled: 0 })
}

/// Asks for writes to what is another's, and in another's name.
pub(super) async fn proposals_for_another(ground: &mut Ground) -> Result<()> {
    let others = format!("hub/desired@{MANAGED}");
    for (shelf, as_node) in [
        (others.as_str(), MALLORY),
        ("hub/roster", MALLORY),
        ("hub/audit", MALLORY),
        ("hub/kv", MANAGED),
    ] {
        let mut link = ground.link().await?;
        let session = Term::draw(now().0, ground.chance.draw());
        link.outbound.send(Frame::Hello { session, rows: vec![] })?;
        let read = async {
            while let Some(Ok(frame)) = link.inbound.next().await {
                if let Frame::Hello { session: theirs, .. } = &frame {
                    let proposal = evil(shelf, as_node, *theirs)?;
                    link.outbound.send(Frame::Propose(Box::new(proposal)))?;
                }
                if let Frame::Verdict { verdict, .. } = frame {
                    return Ok(verdict);
                }
            }
            bail!("the link ended without a verdict: {:?}", link.handle.end())
        };
        let what = format!("{shelf} as {as_node}");
        let verdict = tokio::time::timeout(WAIT, read).await.context("no verdict")?;
        let verdict = verdict.with_context(|| what.clone())?;
        let forbidden = matches!(&verdict, Verdict::Refused { why, .. } if why == FORBIDDEN);
        ensure!(forbidden, "{what}: {verdict:?}");
        say(format!("  {what}: {FORBIDDEN}"));
        link.handle.close();
    }
    let evil = ground.fleet.at(Side::Hub).kv_get("evil").await;
    ensure!(evil.is_err_and(|e| e.is_not_found()), "what was refused is there");
    ground.untouched().await
}

/// Two processes under one name: the older one is told that a newer one took over.
pub(super) async fn a_twin(ground: &mut Ground) -> Result<()> {
    let (older, newer) = (ground.link().await?, ground.link().await?);
    let what = "the older of two";
    coded(&ended(older, what).await?, what, "W202: a newer link of the same node took over")?;
    newer.handle.close();
    Ok(())
}

/// A place far ahead, with nothing to prove it.
fn ahead() -> Have {
    let cursor = Cursor { term: Term::draw(now().0 + 1_000_000, 1), rev: 1 << 40 };
    Have { main: Some(Place { cursor, seen: cursor, part: None }), aside: None }
}

/// Claims to be further than the owner ever was: that link ends, and no shelf stops.
pub(super) async fn a_cursor_it_cannot_have(ground: &mut Ground) -> Result<()> {
    for shelf in ["hub/kv".to_owned(), format!("hub/desired@{MALLORY}")] {
        let link = ground.link().await?;
        let rows = vec![row(&shelf, ahead(), None)?];
        link.outbound.send(Frame::Hello { session: Term::draw(now().0, 2), rows })?;
        let what = format!("a bare claim on {shelf}");
        coded(&ended(link, &what).await?, &what, "BL-0202")?;
        ground.hub_said("BL-0202")?;
        ground.untouched().await?;
    }
    Ok(())
}

/// The same with a head that the owner did not sign.
pub(super) async fn a_forged_head(ground: &mut Ground) -> Result<()> {
    for shelf in ["hub/kv", "hub/roster"] {
        let link = ground.link().await?;
        let have = ahead();
        let cursor = have.main.as_ref().map(|p| p.cursor).unwrap_or_default();
        let mut head = Head::blank(shelf.parse()?);
        head.lineage = Lineage::new(vec![(cursor.term, cursor.rev)]).context("one term")?;
        head.signature = Signature(ground.mallory.head.sign(&head.message()).into());
        let rows = vec![row(shelf, have, Some(head))?];
        link.outbound.send(Frame::Hello { session: Term::draw(now().0, 3), rows })?;
        let what = format!("a forged head of {shelf}");
        coded(&ended(link, &what).await?, &what, "BL-0201")?;
        ground.hub_said("BL-0201")?;
        ground.untouched().await?;
    }
    Ok(())
}
