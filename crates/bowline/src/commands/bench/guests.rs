//! The simulated agents in the hub's roster: they come by join tokens, bear a label that says what
//! they are, and leave when it is over.

use std::future::Future;

use bowline_client::Client;
use bowline_client::api::JoinTokenCreate;
use bowline_load::{Fleet, Setup};
use bowline_resources::Mode;
use bowline_types::NodeId;
use tokio::task::JoinSet;

use crate::failure::{Failure, Outcome, chain};
use crate::print::Progress;

/// Tells simulated agents from real ones, so that no real one is ever replaced or removed.
const LABEL: &str = "bowline.io/bench";
/// Requests to the API at the same time.
const ABREAST: usize = 16;
/// How long a join token may be used.
const TOKEN_LIFE: u64 = 600;

/// Simulated agents that a hub knows, or will.
pub(super) struct Guests {
    client: Client,
    names: Vec<NodeId>,
    /// Whether some of them may be in the roster.
    came: bool,
}

impl Guests {
    pub(super) fn new(client: Client, prefix: &str, count: u16) -> Outcome<Self> {
        let name = |i| NodeId::new(&format!("{prefix}-{i:05}"));
        let names: Result<_, _> = (0..count).map(name).collect();
        let names = names.map_err(|e| Failure::usage(format!("--prefix {prefix:?}: {e}")))?;
        Ok(Self { client, names, came: false })
    }

    /// Lets all of them join; none for a fleet of nobody.
    pub(super) async fn join(&mut self, hub: Option<&str>) -> Outcome<Option<(Fleet, Setup)>> {
        self.no_real_ones().await?;
        if self.names.is_empty() {
            return Ok(None);
        }
        self.came = true;
        let tokens = self.tokens().await?;
        let failed = |e: bowline_load::Error| Failure::new(chain(&e));
        let mut setup = Setup::of_token(&tokens[0].1).map_err(failed)?;
        if let Some(hub) = hub {
            setup.hub = hub.to_owned();
        }
        let mut progress = Progress::start("joining");
        let all = tokens.len() as u64;
        let joined =
            Fleet::join(&setup, &tokens, &mut |done| progress.at(done as u64, Some(all))).await;
        let fleet = joined.map_err(|e| {
            failed(e)
                .hint("agents connect to the hub's --listen port; name it with --hub HOST:PORT")
        })?;
        Ok(Some((fleet, setup)))
    }

    /// Refuses names that real agents have.
    async fn no_real_ones(&self) -> Outcome {
        for agent in super::super::agents::all(&self.client, None).await? {
            let ours = self.names.iter().any(|n| n.as_str() == agent.name);
            if ours && !agent.labels.contains_key(LABEL) {
                let what = format!("{} is a real agent", agent.name);
                return Err(Failure::usage(what).hint("name the simulated ones with --prefix"));
            }
        }
        Ok(())
    }

    async fn tokens(&self) -> Outcome<Vec<(NodeId, String)>> {
        let made = each(&self.names, "asking for tokens", |name| {
            let client = self.client.clone();
            async move {
                let labels = [(LABEL.to_owned(), "true".to_owned())].into();
                let agent = name.to_string();
                let ask =
                    JoinTokenCreate { agent, mode: Mode::Managed, labels, ttl_seconds: TOKEN_LIFE };
                Ok((name, client.create_join_token(&ask).await?.token))
            }
        });
        made.await
    }

    /// Takes all of them out of the roster again.
    pub(super) async fn leave(&self) -> Outcome {
        if !self.came {
            return Ok(());
        }
        let listed = super::super::agents::all(&self.client, Some(LABEL)).await?;
        let ours = |n: &&NodeId| listed.iter().any(|a| a.name == n.as_str());
        let there: Vec<_> = self.names.iter().filter(ours).cloned().collect();
        let removed = each(&there, "leaving", |name| {
            let client = self.client.clone();
            async move { client.remove_agent(name.as_str()).await }
        });
        removed.await.map(drop)
    }
}

/// Does something for each, some at a time.
async fn each<T, F>(names: &[NodeId], what: &str, work: impl Fn(NodeId) -> F) -> Outcome<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, bowline_client::Error>> + Send + 'static,
{
    let mut progress = Progress::start(what);
    let (mut waiting, mut under_way, mut done) = (names.iter(), JoinSet::new(), vec![]);
    loop {
        while under_way.len() < ABREAST
            && let Some(name) = waiting.next()
        {
            under_way.spawn(work(name.clone()));
        }
        let Some(one) = under_way.join_next().await else { return Ok(done) };
        let one = one.map_err(|e| Failure::new(format!("{what}: {e}")))?;
        done.push(one.map_err(|e| Failure::from(e).during(what))?);
        progress.at(done.len() as u64, Some(names.len() as u64));
    }
}
