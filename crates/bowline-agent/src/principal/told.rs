//! What the principal has been told of an object, and what it must be told next.

use bowline_argocd::{Need, Place, Resource};
use bowline_resources::{Mode, ObjectKey};
use bowline_types::Rev;

use super::speech::Speech;

/// What the principal was last told of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// How it is doing, by the report at this rev.
    Status(Rev),
    /// That the managed object of this uid is gone.
    Gone(String),
    /// What this agent wants, and how it is doing.
    Shown { uid: String, wanted: Rev, seen: Rev },
}

/// What there is to tell of an object now.
pub(super) fn told_of(
    speech: &Speech<'_>,
    key: &ObjectKey,
    place: &Place,
    mode: Mode,
) -> Option<Told> {
    let is_app = place.resource == Resource::Application;
    let seen = speech.state.observed.get(key);
    match mode {
        Mode::Managed => {
            let seen = seen.filter(|_| is_app)?;
            let wanted = speech.state.hub.get(key)?;
            match seen.observed.gone {
                false => Some(Told::Status(seen.rev)),
                true => wanted
                    .desired
                    .is_gone_by(&seen.observed)
                    .then(|| Told::Gone(wanted.desired.uid.clone())),
            }
        }
        Mode::Autonomous => {
            let own = speech.state.own.get(key)?;
            let seen = seen.filter(|_| is_app).map_or(0, |seen| seen.rev);
            Some(Told::Shown { uid: own.desired.uid.clone(), wanted: own.rev, seen })
        }
    }
}

/// What must be said so that who was told the one knows the other.
pub(super) fn needs(before: Option<&Told>, now: Option<&Told>) -> Vec<Need> {
    let delete = |uid: &String| Need::Delete { uid: uid.clone() };
    match (before, now) {
        (_, Some(Told::Status(_))) => vec![Need::StatusUpdate],
        (_, Some(Told::Gone(uid))) => vec![delete(uid)],
        (Some(Told::Shown { uid: old, .. }), Some(Told::Shown { uid, .. })) if old == uid => {
            vec![Need::SpecUpdate]
        }
        (Some(Told::Shown { uid, .. }), Some(_)) => vec![delete(uid), Need::Create],
        (_, Some(Told::Shown { .. })) => vec![Need::Create],
        (Some(Told::Shown { uid, .. }), None) => vec![delete(uid)],
        (_, None) => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(uid: &str, wanted: Rev) -> Told {
        Told::Shown { uid: uid.into(), wanted, seen: 0 }
    }

    #[test]
    fn an_object_is_shown_updated_replaced_and_taken_away() {
        let delete = |uid: &str| Need::Delete { uid: uid.into() };
        assert_eq!(needs(None, Some(&shown("u", 1))), [Need::Create]);
        assert_eq!(needs(Some(&shown("u", 1)), Some(&shown("u", 2))), [Need::SpecUpdate]);
        let replaced = needs(Some(&shown("u", 1)), Some(&shown("v", 2)));
        assert_eq!(replaced, [delete("u"), Need::Create]);
        assert_eq!(needs(Some(&shown("u", 1)), None), [delete("u")]);
    }

    #[test]
    fn of_what_the_principal_owns_it_hears_how_it_is_doing_and_that_it_is_gone() {
        assert_eq!(needs(None, Some(&Told::Status(1))), [Need::StatusUpdate]);
        let gone = Told::Gone("u".into());
        let delete = Need::Delete { uid: "u".into() };
        assert_eq!(needs(Some(&Told::Status(1)), Some(&gone)), [delete]);
        assert_eq!(needs(Some(&Told::Status(1)), None), []);
    }
}
