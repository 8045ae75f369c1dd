//! `bowline doctor`: what is wrong, in words.

use bowline_client::api::{Doctor as Report, Finding, Level, Status};
use clap::Args;

use super::Output;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::print;

/// Certificates and leases suffer from clocks that differ by more.
const CLOCK_MILLIS: u64 = 5_000;

#[derive(Args, Debug)]
pub(super) struct Doctor {
    #[command(flatten)]
    output: Output,
}

impl Doctor {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let client = connection.client()?;
        let status = client.status().await?;
        let mut report = client.doctor().await?;
        report.findings.push(clock(&status, print::now().millis()));
        report.findings.sort_by_key(|f| std::cmp::Reverse(f.level));
        if self.output.output.is_table() {
            print::out(&text(&status, &report))?;
        } else {
            print::value(&report, self.output.output)?;
        }
        match report.findings.iter().filter(|f| f.level == Level::Error).count() {
            0 => Ok(()),
            1 => Err(Failure::new("one thing needs somebody")),
            wrong => Err(Failure::new(format!("{wrong} things need somebody"))),
        }
    }
}

fn clock(status: &Status, here: u64) -> Finding {
    let apart = status.now.millis().abs_diff(here);
    let fine = apart <= CLOCK_MILLIS;
    Finding {
        level: if fine { Level::Ok } else { Level::Warning },
        about: "clock".into(),
        what: format!("this machine's clock and the {}'s are {apart} ms apart", status.role),
        hint: (!fine).then(|| "set both by NTP".to_owned()),
        code: None,
    }
}

fn text(status: &Status, report: &Report) -> String {
    let mut out = format!("{} {}, version {}\n", status.role, status.node, status.version);
    for finding in &report.findings {
        let mark = match finding.level {
            Level::Ok => "ok     ",
            Level::Warning => "warning",
            Level::Error => "error  ",
        };
        let code = finding.code.as_ref().map_or(String::new(), |c| format!(" ({c})"));
        out.push_str(&format!("{mark}  {}: {}{code}\n", finding.about, finding.what));
        if let Some(hint) = &finding.hint {
            out.push_str(&format!("         hint: {hint}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_differ_are_told() {
        let status: Status = serde_json::from_value(serde_json::json!({
            "role": "hub", "node": "hub", "version": "0.1.0", "protocol": 1, "ready": true,
            "started": "1970-01-01T00:00:00Z", "now": "1970-01-01T00:00:10Z",
        }))
        .unwrap();
        assert_eq!(clock(&status, 11_000).level, Level::Ok);
        let off = clock(&status, 30_000);
        assert_eq!(off.level, Level::Warning);
        let text = text(&status, &Report { findings: vec![off] });
        assert_eq!(
            text,
            "hub hub, version 0.1.0\n\
             warning  clock: this machine's clock and the hub's are 20000 ms apart\n         hint: set both by NTP\n"
        );
    }
}
