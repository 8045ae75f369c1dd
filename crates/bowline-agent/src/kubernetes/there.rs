//! What is there, as the reconciler sees it.

use std::sync::Arc;

use bowline_resources::{Desired, Hold, Live, Object, ObjectKey, Of, Owner, argocd, is_settled};

use super::{Known, Kubernetes, Mismatch};
use crate::applier::Held;

/// The uid of the object that a copy was made from.
pub(super) fn source_uid(object: &Object) -> Option<&str> {
    object.metadata.annotations.get(argocd::SOURCE_UID).map(String::as_str)
}

/// Whether a source was made from this very object: a mirror of it that became what is wanted.
pub(super) fn is_itself(object: &Object, source: &str) -> bool {
    object.metadata.uid.as_deref() == Some(source)
}

/// Whether it is a copy of the source of this uid, or that very object.
pub(super) fn is_made_from(object: &Object, uid: &str) -> bool {
    source_uid(object) == Some(uid) || is_itself(object, uid)
}

/// Whether it is neither a copy of ours nor the very object of this uid.
pub(super) fn is_somebody_elses(object: &Object, uid: &str) -> bool {
    source_uid(object).is_none() && !is_itself(object, uid)
}

/// Whether it was the cluster's own before a control plane wanted it, and is nothing that deploys: nobody
/// deleted what it was made from, whoever wants it now.
fn is_its_own_source(object: &Object) -> bool {
    !is_application(object) && source_uid(object).is_some_and(|source| is_itself(object, source))
}

/// Whether it is one of Argo CD's Applications.
pub(super) fn is_application(object: &Object) -> bool {
    object.group() == argocd::GROUP && object.kind == "Application"
}

/// Whether its deletion has begun.
pub(super) fn is_going(object: &Object) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

/// Its place in the history of its cluster, where that can be told.
pub(super) fn version(object: &Object) -> Option<u64> {
    object.metadata.rest.get("resourceVersion")?.as_str()?.parse().ok()
}

impl Kubernetes {
    /// Takes note of an object as the cluster tells it; an older telling changes nothing.
    pub(super) fn note(&self, key: &ObjectKey, object: Object) -> bool {
        let mut known = self.known.lock();
        if object.metadata.uid.as_ref().is_some_and(|uid| known.departed.has(uid)) {
            return false;
        }
        let newer = known.there.get(key).is_none_or(|old| {
            old.metadata.uid != object.metadata.uid
                || version(old).zip(version(&object)).is_none_or(|(old, new)| old < new)
        });
        if newer {
            known.there.insert(key.clone(), Arc::new(object));
        }
        newer
    }

    /// Tells the reconciler what is there under a key, and has it look.
    pub(super) fn tell(&self, key: &ObjectKey) {
        let telling = self.telling.lock();
        let (owner, wanted) = self.sink.wanted(key);
        let held = self.held(&self.known.lock(), key, owner, wanted.as_deref());
        match held {
            Some(held) => self.sink.put(held),
            None => self.sink.gone(key),
        }
        drop(telling);
        self.sink.news(key);
        if owner == Owner::Agent {
            self.to_take_in(key);
        }
    }

    /// What the cluster itself says of an object may differ from what the shelf says.
    pub(super) fn to_take_in(&self, key: &ObjectKey) {
        self.intake.lock().keys.insert(key.clone());
        self.wake.notify_one();
    }

    fn held(
        &self,
        known: &Known,
        key: &ObjectKey,
        owner: Owner,
        wanted: Option<&Desired>,
    ) -> Option<Held> {
        let object = known.there.get(key)?;
        let applied = known.applied.get(key).filter(|a| a.from == owner);
        // What the agent's cluster itself owns is there on its own word; before that word is on the
        // shelf it would look like something that nobody wants.
        let uid = match owner {
            Owner::Agent => {
                let own = |uid: &String| wanted.is_some_and(|wanted| wanted.uid == *uid);
                object.metadata.uid.clone().filter(own)?
            }
            Owner::Hub => self.made_from(object, wanted)?,
        };
        let of_this = applied.filter(|a| a.desired.uid == uid);
        let rev = of_this.map_or(0, |a| a.rev);
        let settled = of_this.filter(|a| match owner {
            Owner::Agent => true,
            Owner::Hub => is_settled(&self.site.manifest(&a.desired), object, Hold::of(key)),
        });
        let seen = settled.map_or_else(|| (**object).clone(), |a| a.desired.object.clone());
        let live =
            Live { key: key.clone(), of: Of { uid, rev }, object: seen, going: is_going(object) };
        Some(Held { live, from: owner })
    }

    /// The uid of the source of an object that is ours; none if it is not, or is to be taken over.
    fn made_from(&self, object: &Object, wanted: Option<&Desired>) -> Option<String> {
        let source = source_uid(object)?;
        (!self.is_written_over(object, wanted)).then(|| source.to_owned())
    }

    /// Whether an object was made from another source of its name than the one that is wanted, and is to
    /// be made that as it stands.
    pub(super) fn is_written_over(&self, object: &Object, wanted: Option<&Desired>) -> bool {
        let (Some(source), Some(wanted)) = (source_uid(object), wanted) else { return false };
        source != wanted.uid
            && (is_itself(object, &wanted.uid)
                || is_its_own_source(object)
                || is_from_another_plane(object, &wanted.object)
                || self.mismatch_of(object, &wanted.object) == Mismatch::Upsert)
    }

    /// Whoever wants the new object has the first word, the copy's former source the second.
    fn mismatch_of(&self, copy: &Object, wanted: &Object) -> Mismatch {
        let said = [wanted, copy].into_iter().find_map(mismatch_policy);
        said.unwrap_or(self.options.mismatch)
    }
}

/// What an object says of itself; a word that nobody knows says nothing.
fn mismatch_policy(object: &Object) -> Option<Mismatch> {
    match object.metadata.annotations.get(argocd::MISMATCH_POLICY)?.as_str() {
        "recreate" => Some(Mismatch::Recreate),
        "upsert" => Some(Mismatch::Upsert),
        _ => None,
    }
}

/// Whether another control plane wants an object than the one that its copy is from. One that was built
/// anew has the same objects under other uids: nobody deleted them. Of a copy that does not say
/// where it is from that cannot be told, and what it deployed is worth more than certainty.
fn is_from_another_plane(copy: &Object, wanted: &Object) -> bool {
    let plane = |object: &Object| object.metadata.annotations.get(argocd::PRINCIPAL_UID).cloned();
    plane(wanted).is_some_and(|uid| plane(copy).as_ref() != Some(&uid))
}
