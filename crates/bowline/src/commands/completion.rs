//! `bowline completion`.

use clap::Args;
use clap_complete::Shell;

use crate::failure::Outcome;
use crate::print;

#[derive(Args, Debug)]
pub(super) struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    pub(super) fn run(&self) -> Outcome {
        let mut script = vec![];
        clap_complete::generate(self.shell, &mut super::Cli::definition(), "bowline", &mut script);
        print::out(&String::from_utf8_lossy(&script))
    }
}
