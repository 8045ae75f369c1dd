//! Takes objects away, and with them what they made only where their owner has ordered that.

use bowline_kube::{Delete, Deleted, Propagation};
use bowline_resources::{Desired, Object, ObjectKey, Owner, argocd};
use serde_json::{Value, json};

use super::there::{is_application, source_uid};
use super::work::Failure;
use super::{Applied, Kubernetes};

impl Kubernetes {
    pub(super) async fn delete(
        &self,
        key: &ObjectKey,
        ordered: Option<&Desired>,
    ) -> Result<(), Failure> {
        let (there, applied) = {
            let mut known = self.known.lock();
            known.lost.remove(key);
            (known.there.get(key).cloned(), known.applied.get(key).cloned())
        };
        let Some(mut there) = there else {
            self.known.lock().applied.remove(key);
            self.sink.gone(key);
            return Ok(());
        };
        let (owner, wanted) = self.sink.wanted(key);
        if owner == Owner::Hub && self.is_written_over(&there, wanted.as_deref()) {
            self.tell(key);
            return Ok(());
        }
        if owner == Owner::Agent || source_uid(&there).is_none() {
            return Err(Failure::Ours(
                "left alone: it was not made here, so it is not deleted".into(),
            ));
        }
        self.known.lock().ending.extend(there.metadata.uid.clone());
        let kind = self.kind(key).await?;
        if let Some(patch) = released(&there, ordered, applied.as_ref()) {
            let now = self.change(&kind, &there, patch).await?;
            self.note(key, now.clone());
            there = now.into();
        }
        // Whoever finalizes it must find what it owns still there.
        let propagation = match ordered.is_some() && !there.metadata.finalizers.is_empty() {
            true => Propagation::Foreground,
            false => Propagation::Background,
        };
        let how = Delete { uid: there.metadata.uid.clone(), resource_version: None, propagation };
        let (namespace, name) = (there.metadata.namespace.as_deref(), &there.metadata.name);
        match self.cluster.delete(&kind, namespace, name, how).await? {
            Deleted::Gone | Deleted::Missing => self.known.lock().forget(key, &there),
            Deleted::Going => self.known.lock().mark_going(key, &there),
        }
        self.tell(key);
        Ok(())
    }
}

/// The merge patch that takes off a copy the finalizers that its source had and gave up before it went.
/// A source that has any goes only when the agent has said that the copy is gone, or somebody took them
/// off to leave alone what was made from it: so of one that went without such an order, none is left.
/// Argo CD's own is for what the Application deployed, on which the source has the only word, whoever put
/// it on the copy.
fn released(there: &Object, ordered: Option<&Desired>, applied: Option<&Applied>) -> Option<Value> {
    let asked_for = |finalizer: &String| {
        ordered.is_some_and(|desired| desired.object.metadata.finalizers.contains(finalizer))
    };
    let from_source = |finalizer: &String| {
        let claimed = there.metadata.claims.as_ref().is_some_and(|c| c.has_finalizer(finalizer));
        let brought = applied.is_some_and(|applied| {
            applied.from == Owner::Hub
                && applied.desired.object.metadata.finalizers.contains(finalizer)
        });
        let cascade = is_application(there) && finalizer.starts_with(argocd::CASCADE);
        claimed || brought || cascade
    };
    let all = &there.metadata.finalizers;
    let stay: Vec<_> = all.iter().filter(|f| asked_for(f) || !from_source(f)).collect();
    (stay.len() < all.len()).then(|| json!({"metadata": {"finalizers": stay}}))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bowline_types::Wall;

    use super::*;

    const CASCADE: &str = argocd::CASCADE;

    fn app(finalizers: &[&str]) -> Object {
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "web", "namespace": "a1", "finalizers": finalizers}, "spec": {},
        });
        Object::from_value(app).unwrap()
    }

    fn stays(there: &Object, ordered: Option<&[&str]>, brought: Option<&[&str]>) -> Value {
        let desired = |finalizers: &[&str]| Desired::new(&app(finalizers), "u", Wall(0));
        let applied =
            brought.map(|b| Applied { desired: Arc::new(desired(b)), rev: 1, from: Owner::Hub });
        let ordered = ordered.map(desired);
        let patch = released(there, ordered.as_ref(), applied.as_ref());
        patch.map_or(Value::Null, |patch| patch["metadata"]["finalizers"].clone())
    }

    #[test]
    fn what_an_application_deployed_goes_only_by_its_owners_order() {
        let copy = app(&[CASCADE, "their.s/own"]);
        assert_eq!(stays(&copy, None, None), json!(["their.s/own"]));
        assert_eq!(stays(&copy, Some(&[CASCADE]), None), Value::Null);
        let other = Some(&["post-delete-finalizer.argocd.argoproj.io"][..]);
        assert_eq!(stays(&copy, other, None), json!(["their.s/own"]), "it was taken off before");
        let copy = app(&["resources-finalizer.argocd.argoproj.io/background"]);
        assert_eq!(stays(&copy, None, None), json!([]));
    }

    #[test]
    fn finalizers_that_came_from_the_source_are_given_up_with_it() {
        let copy = app(&["a.b/c", "their.s/own"]);
        assert_eq!(stays(&copy, None, None), Value::Null);
        assert_eq!(stays(&copy, None, Some(&["a.b/c"])), json!(["their.s/own"]));
        let mut claimed = copy;
        let fields = json!({"f:metadata": {"f:finalizers": {"v:\"a.b/c\"": {}}}});
        let managed = json!([{"manager": "bowline", "operation": "Apply", "fieldsV1": fields}]);
        let claims =
            bowline_resources::Claims::read(&managed, "bowline", bowline_resources::Hold::Whole);
        claimed.metadata.claims = claims.map(Box::new);
        assert_eq!(stays(&claimed, None, None), json!(["their.s/own"]), "after a restart");
        assert_eq!(stays(&claimed, Some(&["a.b/c"]), None), Value::Null);
    }
}
