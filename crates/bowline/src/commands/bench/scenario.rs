//! What is measured, one function for each scenario.

use std::time::{Duration, Instant};

use bowline_client::api::{EventQuery, What};
use bowline_client::{Client, Events, Expect};
use bowline_load::{Fleet, Flood, Load, Options, Patience, Seen, Setup, Work};
use bowline_resources::Object;
use tokio::task::JoinSet;

use super::figures::Figures;
use super::process::Process;
use crate::failure::{Failure, Outcome, chain};
use crate::print::Progress;

/// Reports a second and agent beside a round trip, if nobody says.
const BESIDE: u32 = 200;
/// How long a report may take to come back.
const REPORT: Duration = Duration::from_secs(30);

/// One run.
pub(super) struct Run<'a> {
    pub(super) client: &'a Client,
    pub(super) fleet: Option<(Fleet, Setup)>,
    pub(super) lasting: Duration,
    pub(super) patience: Duration,
    pub(super) flood: Flood,
    /// Bytes of a value.
    pub(super) value: usize,
    pub(super) clients: u16,
    pub(super) hub: Option<Process>,
    pub(super) progress: Progress,
}

/// What the hub's process had used when somebody looked.
#[derive(Clone, Copy)]
struct Used {
    memory: f64,
    cpu: f64,
    at: Instant,
}

impl Run<'_> {
    pub(super) async fn idle(&mut self) -> Outcome<Figures> {
        let before = self.used()?;
        let agents = f64::from(self.agents());
        let report = self.work(Work::Idle).await?;
        let mut figures = Figures::default();
        if let Some((before, after)) = before.zip(self.used()?) {
            figures.add("memoryPerAgent", (after.memory - before.memory) / agents, "KB");
            figures.add("hubMemory", after.memory / 1024.0, "MB");
            figures.add("hubCores", busy(before, after), "cores");
        }
        figures.add("connect", report.connect_seconds, "s");
        figures.add("agents", agents, "agents");
        figures.add("connected", count(report.seen.up), "agents");
        figures.add("failed", count(report.seen.failed), "attempts");
        Ok(figures)
    }

    pub(super) async fn updates(&mut self) -> Outcome<Figures> {
        let before = self.used()?;
        let report = self.work(Work::Flood(self.flood)).await?;
        let mut figures = Figures::default();
        figures.add("updates", report.acked_per_second, "a second");
        figures.add("agents", f64::from(self.agents()), "agents");
        figures.add("seconds", report.work_seconds, "s");
        figures.add("refused", count(report.seen.refused), "feeds");
        figures.add("failed", count(report.seen.failed), "attempts");
        if let Some((before, after)) = before.zip(self.used()?) {
            figures.add("hubMemory", after.memory / 1024.0, "MB");
            figures.add("hubCores", busy(before, after), "cores");
        }
        Ok(figures)
    }

    pub(super) async fn reconnect(&mut self) -> Outcome<Figures> {
        let (fleet, setup) = self.fleet()?;
        let load = Load::start(fleet, setup, Work::Idle);
        let (most, all) = (self.patience, u64::from(self.agents()));
        let mut tell = teller(&mut self.progress, all);
        let mut patience = Patience { most, progress: &mut tell };
        let first = load.synced(&mut patience).await.map_err(failed)?;
        let before = load.meter().seen();
        load.set(Work::Away);
        load.until("away", &mut patience, |s| s.up == 0, |s| all - s.up).await.map_err(failed)?;
        load.set(Work::Idle);
        let took = load.back(before.opened, &mut patience).await.map_err(failed)?;
        let mut figures = Figures::default();
        figures.add("back", took.as_secs_f64(), "s");
        figures.add("agents", count(all), "agents");
        figures.add("connect", first.as_secs_f64(), "s");
        figures.add("failed", count(load.meter().seen().failed - before.failed), "attempts");
        load.leave().await;
        Ok(figures)
    }

    pub(super) async fn round_trip(&mut self) -> Outcome<Figures> {
        let (echoing, beside, name) = self.echo_beside_others().await?;
        let query = EventQuery {
            kinds: Some("object".into()),
            agent: Some(name.clone()),
            ..EventQuery::default()
        };
        let mut events = self.client.events(&query).await?;
        let (before, began, mut took) = (beside.meter().seen(), Instant::now(), vec![]);
        while began.elapsed() < self.lasting || took.is_empty() {
            took.push(once(self.client, &mut events, &name, took.len()).await?);
            self.progress.say(&format!("{} rounds", took.len()));
        }
        let acked = count(beside.meter().seen().acked - before.acked);
        let loaded = acked / began.elapsed().as_secs_f64();
        tokio::join!(beside.leave(), echoing.leave());
        let mut figures = Figures::default();
        figures.add_spread(&mut took);
        figures.add("rounds", count(took.len() as u64), "rounds");
        figures.add("beside", loaded, "updates a second");
        Ok(figures)
    }

    /// One agent that answers, and the others, which make the load.
    async fn echo_beside_others(&mut self) -> Outcome<(Load, Load, String)> {
        let (fleet, setup) = self.fleet()?;
        let (one, others) = fleet.split(1);
        let name = one.names().first().map(ToString::to_string).unwrap_or_default();
        let mut tell = teller(&mut self.progress, fleet.len() as u64);
        let mut patience = Patience { most: self.patience, progress: &mut tell };
        let echoing = Load::start(one, setup.clone(), Work::Echo);
        echoing.synced(&mut patience).await.map_err(failed)?;
        let beside = Load::start(others, setup, Work::Idle);
        beside.synced(&mut patience).await.map_err(failed)?;
        let rate = if self.flood.rate == 0 { BESIDE } else { self.flood.rate };
        beside.set(Work::Flood(Flood { rate, ..self.flood }));
        Ok((echoing, beside, name))
    }

    pub(super) async fn writes(&mut self, prefix: &str) -> Outcome<Figures> {
        let before = self.used()?;
        let value = bytes::Bytes::from(vec![b'x'; self.value]);
        let (began, mut writers) = (Instant::now(), JoinSet::new());
        for number in 0..self.clients {
            let (client, value, lasting) = (self.client.clone(), value.clone(), self.lasting);
            let key = format!("{prefix}/{number:05}");
            writers.spawn(async move {
                let mut took = vec![];
                while began.elapsed() < lasting {
                    let at = Instant::now();
                    client.kv_put(&key, value.clone(), None).await?;
                    took.push(at.elapsed());
                }
                client.kv_delete(&key, None).await?;
                Ok::<_, bowline_client::Error>(took)
            });
        }
        let mut took: Vec<Duration> = vec![];
        while let Some(done) = writers.join_next().await {
            took.extend(done.map_err(|e| Failure::new(e.to_string()))??);
        }
        let after = self.used()?;
        let mut figures = Figures::default();
        let seconds = self.lasting.as_secs_f64();
        figures.add("writes", count(took.len() as u64) / seconds, "a second");
        figures.add("clients", f64::from(self.clients), "clients");
        figures.add_spread(&mut took);
        if let Some((before, after)) = before.zip(after) {
            figures.add("hubCores", busy(before, after), "cores");
        }
        Ok(figures)
    }

    async fn work(&mut self, work: Work) -> Outcome<bowline_load::Report> {
        let (fleet, setup) = self.fleet()?;
        let options = Options { setup, work, lasting: self.lasting, patience: self.patience };
        let mut tell = teller(&mut self.progress, fleet.len() as u64);
        bowline_load::run(fleet, options, &mut tell).await.map_err(failed)
    }

    fn fleet(&self) -> Outcome<(Fleet, Setup)> {
        self.fleet.clone().ok_or_else(|| Failure::usage("this takes at least one agent"))
    }

    fn agents(&self) -> u32 {
        let count = self.fleet.as_ref().map_or(0, |(fleet, _)| fleet.len());
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn used(&self) -> Outcome<Option<Used>> {
        let look =
            |hub: Process| Ok(Used { memory: hub.memory()?, cpu: hub.cpu()?, at: Instant::now() });
        self.hub.map(look).transpose()
    }
}

fn failed(error: bowline_load::Error) -> Failure {
    Failure::new(chain(&error))
}

fn teller(progress: &mut Progress, all: u64) -> impl FnMut(&Seen) {
    move |seen: &Seen| {
        let Seen { up, synced, acked, failed, .. } = seen;
        progress.say(&format!(
            "{up} of {all} up, {synced} in sync, {acked} acknowledged, {failed} failed"
        ));
    }
}

/// Cores that were busy between two looks.
fn busy(before: Used, after: Used) -> f64 {
    (after.cpu - before.cpu) / (after.at - before.at).as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn count(n: u64) -> f64 {
    n as f64
}

/// Writes an object and waits for the event that tells its agent's report of it.
async fn once(
    client: &Client,
    events: &mut Events,
    agent: &str,
    round: usize,
) -> Outcome<Duration> {
    let object = Object::from_value(serde_json::json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": format!("round-{:02}", round % 20), "namespace": "bench"},
        "spec": {"round": round},
    }));
    let object = object.map_err(|e| Failure::new(e.to_string()))?;
    let began = Instant::now();
    // The report may be here before the answer is.
    let written = client.put_object(agent, &object, Expect::Any);
    let (rev, seen) = tokio::join!(written, reported(events, &object));
    let rev = rev?.value.rev;
    let (mut at, mut when) = seen?;
    while at < rev {
        (at, when) = reported(events, &object).await?;
    }
    Ok(when - began)
}

/// The next report of an object that is about what it is now.
async fn reported(events: &mut Events, object: &Object) -> Outcome<(u64, Instant)> {
    let key = object.key();
    let spec = object.to_value()["spec"].clone();
    let next = async {
        loop {
            let Some(event) = events.next().await? else {
                return Err(Failure::new("the stream of events ended"));
            };
            let What::Object { key: at, object: Some(view), .. } = event.what else { continue };
            let current = view.report.as_ref().is_some_and(|r| r.current);
            if at == key && current && view.object.to_value()["spec"] == spec {
                return Ok((view.rev, Instant::now()));
            }
        }
    };
    let late = |_| Failure::new("no report came back in time");
    tokio::time::timeout(REPORT, next).await.map_err(late)?
}
