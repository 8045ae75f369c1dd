//! `bowline pki`.

use bowline_client::api::{PkiRotate, PkiView};
use clap::{Args, Subcommand};

use super::Output;
use crate::connect::Connection;
use crate::failure::Outcome;
use crate::print::{self, Table};
use crate::quantity::Span;

#[derive(Args, Debug)]
pub(super) struct Pki {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Show the authorities
    Show {
        /// Print only the trusted authorities, as PEM
        #[arg(long)]
        bundle: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Bring in a new authority; the old ones stay trusted for a while
    Rotate {
        /// How long the old ones stay trusted
        #[arg(long, default_value = "7d")]
        overlap: Span,
        #[command(flatten)]
        output: Output,
    },
    /// Let the announced authority sign now, without waiting for the overlap
    Promote {
        /// Go on though agents that have not heard of it must then join anew
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        output: Output,
    },
    /// End the trust in the old authority now, if every agent has renewed
    Retire {
        /// Go on though agents that have not renewed must then join anew
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Take an announced authority back, as long as it does not sign
    Abandon {
        #[command(flatten)]
        output: Output,
    },
}

impl Pki {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let client = connection.client()?;
        let (pki, output) = match &self.verb {
            Verb::Show { bundle: true, .. } => return print::out(&client.pki().await?.bundle),
            Verb::Show { output, .. } => (client.pki().await?, output),
            Verb::Rotate { overlap, output } => {
                let rotate = PkiRotate { overlap_seconds: overlap.0.as_secs() };
                (client.rotate_pki(&rotate).await?, output)
            }
            Verb::Promote { force, output } => (client.promote_pki(*force).await?, output),
            Verb::Retire { force, output } => (client.retire_pki(*force).await?, output),
            Verb::Abandon { output } => (client.abandon_pki().await?, output),
        };
        connection.trust(&pki.bundle)?;
        show(&pki, *output)
    }
}

fn show(pki: &PkiView, output: Output) -> Outcome {
    if !output.output.is_table() {
        return print::value(pki, output.output);
    }
    let mut table = Table::new(vec!["AUTHORITY", "SIGNS", "AGENTS", "ENDS", "FINGERPRINT"]);
    for ca in &pki.authorities {
        table.push(vec![
            ca.subject.as_str().into(),
            if ca.signing { "yes" } else { "no" }.into(),
            ca.agents.to_string().into(),
            ca.not_after.to_string().into(),
            ca.fingerprint.as_str().into(),
        ]);
    }
    print::out(&table.render(print::colour()))?;
    let (names, ends) = (once_each(&pki.hub.names).join(", "), pki.hub.not_after);
    print::out(&format!("\nhub certificate for {names}, until {ends}\n"))
}

/// The names in their order, those that are there twice once: --san may repeat what is always in.
fn once_each(names: &[String]) -> Vec<&str> {
    let mut seen = std::collections::BTreeSet::new();
    names.iter().map(String::as_str).filter(|name| seen.insert(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_told_once() {
        let names = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(once_each(&names), ["b", "a"]);
    }
}
