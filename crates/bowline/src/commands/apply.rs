//! `bowline apply`: files become objects.

use std::path::PathBuf;

use bowline_client::api::paths;
use bowline_client::{Client, Expect};
use bowline_resources::{Object, diff_text};
use clap::Args;

use crate::connect::Connection;
use crate::failure::{Code, Failure, Outcome};
use crate::manifest::{self, Document};
use crate::print;

#[derive(Args, Debug)]
pub(super) struct Apply {
    /// A file, a folder, or - for standard input; may be given several times
    #[arg(long = "filename", short = 'f', value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The agent to apply to; else each object's label bowline.io/agent says
    #[arg(long, short = 'a')]
    agent: Option<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Apply {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let mut documents = vec![];
        for file in &self.files {
            documents.extend(manifest::read(file)?);
        }
        if documents.is_empty() {
            return Err(Failure::new("there is no object in what was given"));
        }
        let client = connection.client()?;
        let mut failed = vec![];
        for document in documents {
            match self.one(&client, connection, &document).await {
                Ok(line) => print::out(&line)?,
                // The next would fail alike.
                Err(failure) if failure.code == Code::Unreachable => {
                    return Err(failure.during(&document.place));
                }
                Err(failure) => {
                    print::note(&failure.during(&document.place).text());
                    failed.push(document.place);
                }
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!("{} not applied: {}", failed.len(), failed.join("; "))))
    }

    async fn one(&self, client: &Client, at: &Connection, document: &Document) -> Outcome<String> {
        let object = document.object.as_ref().map_err(Failure::new)?;
        let agent = agent_of(self.agent.as_deref(), object, at.is_at_agent())?;
        let key = object.key();
        let before = match client.object(&agent, &key).await {
            Ok(view) => Some(view),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error.into()),
        };
        let unchanged = before.as_ref().is_some_and(|b| b.object.same_intent(object));
        if unchanged && !object.is_secret() {
            return Ok(format!("{key} unchanged\n"));
        }
        if self.dry_run {
            let would = client.would_put_object(&agent, object).await?;
            let word = if would.created { "would be created" } else { "would be configured" };
            let text = diff_text(before.as_ref().map(|b| &b.object), Some(object));
            return Ok(format!("{key} {word}\n{text}"));
        }
        let written = client.put_object(&agent, object, Expect::Any).await?;
        let same = before.is_some_and(|b| b.rev == written.value.rev);
        let word = match (written.created, same) {
            (true, _) => "created",
            (false, true) => "unchanged",
            (false, false) => "configured",
        };
        Ok(format!("{key} {word}\n"))
    }
}

/// The agent that is meant; a label that says otherwise than the flag is an error.
pub(super) fn agent_of(flag: Option<&str>, object: &Object, at_agent: bool) -> Outcome<String> {
    match (flag, object.agent(), at_agent) {
        (Some(flag), Some(label), _) if flag != label => {
            let message =
                format!("--agent says {flag}, the label {} says {label}", Object::AGENT_LABEL);
            Err(Failure::usage(message))
        }
        (Some(name), ..) => Ok(name.to_owned()),
        (None, Some(label), false) => Ok(label.to_owned()),
        (None, _, true) => Ok(paths::THIS_AGENT.to_owned()),
        (None, None, false) => {
            let hint = format!("give --agent NAME, or label it {}: NAME", Object::AGENT_LABEL);
            Err(Failure::usage("no agent is named").hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_comes_from_flag_label_or_place() {
        let object = |label: Option<&str>| {
            let mut object = Object::default();
            if let Some(label) = label {
                object.metadata.labels.insert(Object::AGENT_LABEL.into(), label.into());
            }
            object
        };
        assert_eq!(agent_of(Some("a"), &object(None), false).unwrap(), "a");
        assert_eq!(agent_of(None, &object(Some("b")), false).unwrap(), "b");
        assert_eq!(agent_of(None, &object(Some("b")), true).unwrap(), "-");
        assert!(agent_of(Some("a"), &object(Some("b")), false).is_err());
        assert!(agent_of(None, &object(None), false).unwrap_err().hint.is_some());
    }
}
