//! The built-in controller: no cluster, yet every state that an operator can meet.
//!
//! Objects become Healthy after a short while. Annotations provoke the rest:
//!
//! | annotation | effect |
//! |---|---|
//! | `simulated.bowline.io/health: Degraded` | where it ends instead of Healthy |
//! | `simulated.bowline.io/delay: 2s` | how long it is Progressing, and how long a sync takes |
//! | `simulated.bowline.io/fail-sync: "true"` | what is wanted cannot be applied |

use bowline_types::{Rev, Wall};
use serde_json::json;

use crate::{
    Desired, Health, Observed, Of, Operation, OperationRequest, OperationState, Phase, Sync,
};

const HEALTH: &str = "simulated.bowline.io/health";
const DELAY: &str = "simulated.bowline.io/delay";
const FAIL_SYNC: &str = "simulated.bowline.io/fail-sync";
const USUAL_DELAY: u64 = 1000;

/// What the controller calls itself in reports.
pub const NAME: &str = "simulated";

/// What to report now, and when to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The report.
    pub observed: Observed,
    /// When something will happen by itself.
    pub again: Option<Wall>,
}

/// Looks at an object: `before` is the last report, if there was one.
pub fn look(desired: &Desired, rev: Rev, before: Option<&Observed>, now: Wall) -> Look {
    let of = Of { uid: desired.uid.clone(), rev };
    let mut observed = match before.filter(|b| b.of.uid == of.uid) {
        Some(before) => before.clone(),
        None => Observed::new(of.clone(), now),
    };
    let is_news = before.is_none_or(|b| b.of != of);
    if desired.deleting {
        return Look { observed: gone(of, observed, now), again: None };
    }
    if is_news {
        observed.of = of;
        apply(desired, &mut observed, now);
    }
    let again = go_on(desired, &mut observed, now);
    if before.is_none_or(|b| !b.same_news(&observed)) {
        observed.reported = now;
    }
    Look { observed, again }
}

/// Takes an operation on; an error says why not.
pub fn operate(
    desired: &Desired,
    rev: Rev,
    before: Option<&Observed>,
    request: &OperationRequest,
    now: Wall,
) -> Result<Look, String> {
    if request.uid.as_ref().is_some_and(|uid| *uid != desired.uid) {
        return Err("the object was deleted and made anew since".into());
    }
    if desired.deleting {
        return Err("the object is being deleted".into());
    }
    let mut observed = look(desired, rev, before, now).observed;
    if observed.operation.as_ref().is_some_and(|o| o.id == request.id) {
        return Ok(look(desired, rev, Some(&observed), now));
    }
    let running = observed.operation.as_ref().filter(|o| o.is_running());
    observed.operation = Some(match (request.operation, running) {
        (Operation::Sync, Some(other)) => {
            return Err(format!("operation {} is still running; terminate it first", other.id));
        }
        (Operation::Refresh, Some(_)) => return Ok(look(desired, rev, Some(&observed), now)),
        (Operation::Terminate, None) => return Err("no operation is running".into()),
        (Operation::Terminate, Some(other)) => {
            let by = format!("terminated by {}", request.by);
            other.clone().end(Phase::Terminated, by, now)
        }
        (Operation::Refresh, None) => {
            OperationState::begin(request, now).end(Phase::Succeeded, "looked again", now)
        }
        (Operation::Sync, None) => {
            turn(&mut observed, Health::Progressing, now);
            OperationState::begin(request, now)
        }
    });
    observed.reported = now;
    Ok(look(desired, rev, Some(&observed), now))
}

fn gone(of: Of, before: Observed, now: Wall) -> Observed {
    if before.gone && before.of == of {
        return before;
    }
    let mut observed = Observed::new(of, now);
    (observed.sync, observed.health, observed.gone) = (Sync::Synced, Health::Missing, true);
    observed.message = "deleted".into();
    observed
}

/// A new state of the object is applied at once; it then takes a while to become healthy.
fn apply(desired: &Desired, observed: &mut Observed, now: Wall) {
    observed.gone = false;
    if fails_to_sync(desired) {
        observed.sync = Sync::OutOfSync;
        observed.message = format!("sync fails: {FAIL_SYNC} is set");
        if observed.health == Health::Unknown {
            turn(observed, Health::Missing, now);
        }
        return;
    }
    observed.sync = Sync::Synced;
    turn(observed, Health::Progressing, now);
    observed.message = "applied".into();
}

/// Ends what has run its time.
fn go_on(desired: &Desired, observed: &mut Observed, now: Wall) -> Option<Wall> {
    let delay = delay_of(desired);
    if let Some(running) = observed.operation.take_if(|o| o.is_running()) {
        let due = due(running.started, delay, now);
        if let Some(due) = due {
            observed.operation = Some(running);
            return Some(due);
        }
        observed.operation = Some(if fails_to_sync(desired) {
            observed.sync = Sync::OutOfSync;
            turn(observed, Health::Missing, now);
            running.end(Phase::Failed, format!("{FAIL_SYNC} is set"), now)
        } else {
            observed.sync = Sync::Synced;
            settle(desired, observed, now);
            running.end(Phase::Succeeded, "synced", now)
        });
        return None;
    }
    if observed.health != Health::Progressing {
        return None;
    }
    let due = due(observed.since, delay, now);
    if due.is_none() {
        settle(desired, observed, now);
    }
    due
}

/// When `delay` after `start` is, if that is still to come. A clock that was set back does not make
/// anything wait longer.
fn due(start: Wall, delay: u64, now: Wall) -> Option<Wall> {
    let end = start.0.saturating_add(delay);
    (start <= now && now.0 < end).then_some(Wall(end))
}

fn settle(desired: &Desired, observed: &mut Observed, now: Wall) {
    let health =
        annotation(desired, HEALTH).and_then(|h| h.parse().ok()).unwrap_or(Health::Healthy);
    // Asked to stay on its way, it must not be settled again and again.
    turn(observed, health, now);
    observed.message = match health {
        Health::Healthy => "running".into(),
        other => format!("{HEALTH} asks for {other}"),
    };
    observed.status = json!({
        "controller": NAME,
        "observedGeneration": desired.object.metadata.generation,
    });
}

fn turn(observed: &mut Observed, health: Health, now: Wall) {
    if observed.health != health {
        observed.health = health;
    }
    observed.since = now;
}

fn fails_to_sync(desired: &Desired) -> bool {
    annotation(desired, FAIL_SYNC).is_some_and(|v| v != "false")
}

fn delay_of(desired: &Desired) -> u64 {
    annotation(desired, DELAY).and_then(millis).unwrap_or(USUAL_DELAY)
}

fn annotation<'a>(desired: &'a Desired, name: &str) -> Option<&'a str> {
    desired.object.metadata.annotations.get(name).map(String::as_str)
}

/// `500ms`, `2s`, `1m`.
fn millis(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..split].parse().ok()?;
    match &text[split..] {
        "ms" => Some(number),
        "s" => number.checked_mul(1000),
        "m" => number.checked_mul(60_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
