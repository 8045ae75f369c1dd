//! `bowline shelf`.

use clap::{Args, Subcommand};

use super::Output;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::print;

#[derive(Args, Debug)]
pub(super) struct Shelf {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List shelves and copies
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Take back what peers still hold of a stopped shelf
    Adopt {
        /// owner/name
        shelf: String,
    },
    /// Leave what peers hold of a stopped shelf, and go on from what is here
    Discard {
        /// owner/name
        shelf: String,
    },
    /// Let an agent delete what it holds since too many objects are absent from a shelf
    Approve {
        /// owner/name, such as hub/desired@alpha
        shelf: String,
    },
}

impl Verb {
    /// The one shelf that it is about.
    fn shelf(&self) -> Option<&str> {
        match self {
            Self::List { .. } => None,
            Self::Adopt { shelf } | Self::Discard { shelf } | Self::Approve { shelf } => {
                Some(shelf)
            }
        }
    }
}

impl Shelf {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        if let Some(shelf) = self.verb.shelf().filter(|s| !s.contains('/')) {
            let hint = "write OWNER/NAME, such as hub/kv; see `bowline shelf list`";
            return Err(Failure::usage(format!("{shelf:?} names no shelf")).hint(hint));
        }
        let client = connection.client()?;
        let view = match &self.verb {
            Verb::List { output } => {
                let items = client.shelves().await?.items;
                let wide = output.output.is_wide();
                return print::list(&items, output.output, || print::shelves(&items, wide));
            }
            Verb::Adopt { shelf } => client.adopt_shelf(shelf).await?,
            Verb::Discard { shelf } => client.discard_shelf(shelf).await?,
            Verb::Approve { shelf } => {
                let approved = client.approve_shelf(shelf).await?.approved;
                return print::out(&format!("{approved} objects absent from {shelf} are let go\n"));
            }
        };
        print::out(&format!("shelf {} is {}\n", view.id, view.state))
    }
}
