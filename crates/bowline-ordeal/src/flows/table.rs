//! What came of each flow under each fault.

use std::collections::BTreeMap;

use super::fault::{Blow, Fault, Victim};
use super::flow::Flow;

/// Passed and failed, by flow and fault.
pub(crate) struct Table {
    flows: Vec<Flow>,
    faults: Vec<Fault>,
    cells: BTreeMap<(Flow, Fault), (u64, u64)>,
}

impl Table {
    pub(crate) fn new(flows: &[Flow], faults: &[Fault]) -> Self {
        Self { flows: flows.to_vec(), faults: faults.to_vec(), cells: BTreeMap::new() }
    }

    /// Counts one.
    pub(crate) fn note(&mut self, flow: Flow, fault: Fault, passed: bool) {
        let cell = self.cells.entry((flow, fault)).or_default();
        *(if passed { &mut cell.0 } else { &mut cell.1 }) += 1;
    }

    /// One line for each flow, one column for each fault.
    pub(crate) fn text(&self) -> String {
        let head: Vec<_> = self.faults.iter().map(|f| format!("{:>15}", short(*f))).collect();
        let mut lines = vec![format!("{:<22}{}", "passed/tried", head.concat())];
        for flow in &self.flows {
            let cells = self.faults.iter().map(|fault| {
                let (passed, failed) =
                    self.cells.get(&(*flow, *fault)).copied().unwrap_or_default();
                format!("{:>15}", format!("{passed}/{}", passed + failed))
            });
            lines.push(format!("{flow:<22}{}", cells.collect::<String>()));
        }
        lines.join("\n")
    }
}

/// A fault in a few letters.
fn short(fault: Fault) -> String {
    let victim = match fault.victim {
        Victim::Hub => "hub",
        Victim::Agent => "agent",
        Victim::Workload => "work",
        Victim::Plane => "plane",
    };
    let blow = match fault.blow {
        Blow::Restart => "restart",
        Blow::Partition => "part",
        Blow::Kill => "kill",
    };
    format!("{victim} {blow}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flow_and_every_fault_has_its_cell() {
        let (flows, faults) = (Flow::all(), Fault::all());
        let mut table = Table::new(&flows, &faults);
        table.note(flows[0], faults[11], true);
        table.note(flows[0], faults[11], false);
        let text = table.text();
        assert_eq!(text.lines().count(), flows.len() + 1);
        assert!(text.lines().nth(1).is_some_and(|l| l.ends_with("1/2")), "{text}");
    }
}
