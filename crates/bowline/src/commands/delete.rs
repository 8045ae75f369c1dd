//! `bowline delete`.

use std::path::PathBuf;

use bowline_client::Expect;
use clap::Args;

use super::apply::agent_of;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::select::Which;
use crate::{manifest, print};

#[derive(Args, Debug)]
pub(super) struct Delete {
    /// NAME, Kind/NAME, or group/Kind/namespace/name
    #[arg(required_unless_present = "files", conflicts_with = "files")]
    object: Option<String>,
    /// Delete the objects of this file, folder, or - for standard input
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The agent that it is at
    #[arg(long, short = 'a')]
    agent: Option<String>,
    /// The namespace that it is in
    #[arg(long, short = 'n')]
    namespace: Option<String>,
}

impl Delete {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let client = connection.client()?;
        let mut targets = vec![];
        if let Some(object) = &self.object {
            let (object, agent) = (object.clone(), self.agent.clone());
            let which = Which { object, agent, namespace: self.namespace.clone() };
            let view = which.find(&client, connection.is_at_agent()).await?;
            targets.push((view.agent, view.key));
        }
        for file in &self.files {
            for document in manifest::read(file)? {
                let object =
                    document.object.map_err(|e| Failure::new(e).during(&document.place))?;
                let agent = agent_of(self.agent.as_deref(), &object, connection.is_at_agent())
                    .map_err(|failure| failure.during(&document.place))?;
                targets.push((agent, object.key()));
            }
        }
        for (agent, key) in targets {
            let deleted = client.delete_object(&agent, &key, Expect::Any).await?;
            let word = if deleted.gone { "deleted" } else { "is being finalized" };
            print::out(&format!("{key} {word}\n"))?;
        }
        Ok(())
    }
}
