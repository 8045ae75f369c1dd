//! Bad input on every port, by strangers and by a bad agent: each gets a clear coded answer, the
//! processes live, and a good agent beside goes on.

mod agent;
mod http;
mod raw;
mod rpc;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bowline_client::Expect;
use bowline_resources::Health;

use crate::chance::Chance;
use crate::fleet::{Fleet, MANAGED, Side};
use crate::load::object;
use crate::run::Run;
use crate::stage::{Stage, until};

/// How long a good agent may take to report, while others are bad.
const PROBE: Duration = Duration::from_secs(30);

/// What attacks need.
pub(crate) struct Ground {
    /// Those who are attacked.
    pub(crate) fleet: Fleet,
    /// A bad agent that has joined.
    pub(crate) mallory: agent::Mallory,
    /// Choices.
    pub(crate) chance: Chance,
    probes: u64,
}

/// Runs every attack so many times.
pub(crate) async fn run(run: &mut Run, stage: &Stage) -> Result<()> {
    let fleet = Fleet::start(stage, Ok).await?;
    let mallory = agent::Mallory::join(stage, &fleet).await?;
    let mut ground = Ground { fleet, mallory, chance: run.chance.branch(), probes: 0 };
    let pids = ground.pids()?;
    ground.probe().await.context("before any attack")?;
    macro_rules! attacks {
        ($($attack:path),* $(,)?) => {$(
            let outcome = $attack(&mut ground).await;
            let lived = ground.lives(&pids).await;
            run.case(stringify!($attack), outcome.and(lived));
        )*};
    }
    for _ in 0..run.times {
        attacks!(
            raw::garbage_on_every_port,
            raw::garbage_inside_tls,
            raw::ten_thousand_headers,
            raw::a_request_line_without_end,
            raw::a_body_that_never_comes,
            raw::a_body_that_never_comes_at_the_agent,
            raw::slow_connections,
            http::malformed_bodies_and_paths,
            http::malformed_bodies_and_paths_at_the_agent,
            http::oversized_bodies,
            http::deep_json,
            http::bad_tokens,
            http::a_foreign_page_at_the_agent,
            rpc::malformed_messages,
            rpc::oversized_messages,
            rpc::no_certificate,
            rpc::certificate_of_another_authority,
            rpc::expired_certificate,
            rpc::an_agent_that_the_hub_forgot,
            rpc::bad_session_tokens,
            rpc::bad_join_tokens,
            agent::frames_that_are_none,
            agent::oversized_frame,
            agent::shelves_of_another,
            agent::proposals_for_another,
            agent::a_twin,
            agent::a_cursor_it_cannot_have,
            agent::a_forged_head,
        );
    }
    Ok(())
}

impl Ground {
    fn pids(&self) -> Result<Vec<u32>> {
        let roles = [&self.fleet.hub.role, &self.fleet.managed.role, &self.fleet.autonomous.role];
        roles
            .iter()
            .map(|r| r.as_ref().map(crate::role::Role::pid).context("not running"))
            .collect()
    }

    /// The same processes live and are healthy, and a good agent goes on.
    async fn lives(&mut self, pids: &[u32]) -> Result<()> {
        let Fleet { hub, managed, autonomous, .. } = &mut self.fleet;
        for role in [&mut hub.role, &mut managed.role, &mut autonomous.role] {
            ensure!(role.as_mut().is_some_and(crate::role::Role::is_alive), "a process has ended");
        }
        ensure!(self.pids()? == pids, "not the same processes");
        for port in [self.fleet.hub.health_port, self.fleet.managed.health_port] {
            let answer = raw::plain(
                port,
                b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\
                connection: close\r\n\r\n",
            )
            .await?;
            ensure!(answer.status == 200, "health says {answer:?}");
        }
        self.probe().await
    }

    /// A new object reaches Healthy.
    async fn probe(&mut self) -> Result<()> {
        self.probes += 1;
        let object = object("probe", &self.probes.to_string());
        let admin = self.fleet.at(Side::Hub);
        admin.put_object(MANAGED, &object, Expect::Any).await.context("the probe")?;
        until("the probe is healthy", PROBE, || async {
            let report = admin.object(MANAGED, &object.key()).await?.report;
            let good = report.as_ref().is_some_and(|r| r.current && r.health == Health::Healthy);
            ensure!(good, "{report:?}");
            Ok(())
        })
        .await
    }
}
