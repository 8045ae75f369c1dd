//! The hub under test, in a process of its own. What the API would be too slow for, or is not the
//! point of a case, it does itself when told so by a line on its standard input.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use bowline_drive::Handle;
use bowline_hub::{Hub, HubOptions};
use bowline_resources::{Desired, Object, Owner, desired_shelf};
use bowline_types::{Body, Item, Key, MAX_COMMIT_RECORDS, NodeId, ShelfId, ShelfName};

use crate::child::ready;
use crate::flag;
use crate::seed::now;

/// `hub --data DIR --port PORT`: serves until it is killed, or its input ends.
pub(crate) async fn serve(args: &[String]) -> Result<()> {
    let port: u16 = flag(args, "--port")?.parse()?;
    let mut options = HubOptions::new(PathBuf::from(flag(args, "--data")?));
    options.agents.set_port(port);
    let hub = Hub::start(options).await?;
    ready(&[
        ("addr", hub.addresses.agents.to_string()),
        ("api", format!("https://{}", hub.addresses.api)),
        ("token", hub.first_token.clone().unwrap_or_default()),
    ]);
    let next = || std::io::stdin().lines().next();
    while let Some(line) = tokio::task::spawn_blocking(next).await? {
        let line = line?;
        let began = Instant::now();
        let words: Vec<_> = line.split_whitespace().collect();
        let bytes = command(&hub.handle(), &words).await?;
        let seconds = began.elapsed().as_secs_f64();
        ready(&[("seconds", seconds.to_string()), ("bytes", bytes.to_string())]);
    }
    Ok(())
}

async fn command(handle: &Handle, words: &[&str]) -> Result<usize> {
    match words {
        ["objects", agent, count, version] => {
            objects(handle, &NodeId::new(agent)?, count.parse()?, version).await
        }
        ["churn", count, keys, bytes] => {
            churn(handle, count.parse()?, keys.parse()?, bytes.parse()?).await
        }
        ["caught-up", agents @ ..] => {
            for agent in agents {
                caught_up(handle, NodeId::new(agent)?).await?;
            }
            Ok(0)
        }
        _ => bail!("no such command: {words:?}"),
    }
}

/// Wants the first `count` objects of an agent to be of a version; says how many bytes that is.
async fn objects(handle: &Handle, agent: &NodeId, count: usize, version: &str) -> Result<usize> {
    let shelf = desired_shelf(agent, Owner::Hub);
    let item = |n: usize| -> Result<Item> {
        let object = Object::from_value(serde_json::json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": format!("object-{n:06}"), "namespace": "bench"},
            "spec": {"replicas": 3, "template": {"spec": {"containers": [
                {"name": "main", "image": format!("registry.example/app:{version}")},
            ]}}},
        }))?;
        let desired = Desired::new(&object, format!("uid-{n:06}"), now());
        Ok(Item::put(object.key().record_key(), desired.encode()))
    };
    let items = (0..count).map(item).collect::<Result<Vec<_>>>()?;
    let bytes = items.iter().map(Item::weight).sum();
    for some in items.chunks(MAX_COMMIT_RECORDS) {
        handle.write(&shelf, vec![], some.to_vec()).await?;
    }
    Ok(bytes)
}

/// Writes `count` values of `bytes` bytes under `keys` keys of key/value, in full commits.
async fn churn(handle: &Handle, count: usize, keys: usize, bytes: usize) -> Result<usize> {
    /// Commits that may be on their way to the disk.
    const AT_ONCE: usize = 8;
    let shelf = ShelfId::new(NodeId::hub(), ShelfName::new("kv")?);
    let mut waiting = std::collections::VecDeque::new();
    for from in (0..count).step_by(MAX_COMMIT_RECORDS) {
        let item = |n: usize| -> Result<Item> {
            let key = Key::new(&format!("churn/{:06}", n % keys))?;
            let mut value = vec![b'x'; bytes];
            let number = n.to_string();
            value[..number.len()].copy_from_slice(number.as_bytes());
            Ok(Item::put(key, Body::new(value)))
        };
        let upto = count.min(from + MAX_COMMIT_RECORDS);
        let items = (from..upto).map(item).collect::<Result<Vec<_>>>()?;
        let (handle, shelf) = (handle.clone(), shelf.clone());
        waiting.push_back(tokio::spawn(async move { handle.write(&shelf, vec![], items).await }));
        if waiting.len() >= AT_ONCE {
            waiting.pop_front().context("not empty")?.await??;
        }
    }
    for written in waiting {
        written.await??;
    }
    Ok(count * bytes)
}

/// Waits until an agent's copies lack nothing.
async fn caught_up(handle: &Handle, agent: NodeId) -> Result<()> {
    loop {
        let agent = agent.clone();
        if handle.with(move |node| node.lag(&agent)).await? == Some(0) {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
