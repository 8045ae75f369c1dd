//! What people ask of an Application on the control plane, and what Argo CD on the agent's cluster does
//! about it: in either mode, and whoever's agent it is, it is the same.

use serde_json::{Value, json};

use crate::scene::Scene;

const REFRESH: &str = "argocd.argoproj.io/refresh";

/// Syncs the Application, ends that before its time, and refreshes it in both ways.
pub(crate) fn sync_terminate_and_refresh<A>(scene: &Scene<A>, app: &str) {
    let (here, there) = (scene.here(app), scene.there(app));
    scene.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2", "prune": true}}}));
    let copy = scene.site_shows(&here, "an operation", |o| !o["operation"].is_null());
    assert_eq!(copy["operation"]["sync"], json!({"revision": "v2", "prune": true}));
    scene.plane_shows(&there, "handed over", |o| o["operation"].is_null());
    // As Argo CD does when it takes the operation on.
    let running = json!({"operation": null, "status": {"operationState": {
        "phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "operation": copy["operation"],
    }}});
    scene.site.patch(&here, &running);
    let phase = |is: &'static str| move |o: &Value| o["status"]["operationState"]["phase"] == is;
    scene.plane_shows(&there, "it runs", phase("Running"));
    scene.plane.patch(&there, &json!({"status": {"operationState": {"phase": "Terminating"}}}));
    scene.site_shows(&here, "its end is asked for", phase("Terminating"));
    scene.site.patch(&here, &json!({"status": {"operationState": {"phase": "Failed"}}}));
    scene.plane_shows(&there, "it has ended", phase("Failed"));
    for how in ["normal", "hard"] {
        scene.plane.patch(&there, &json!({"metadata": {"annotations": {REFRESH: how}}}));
        let asked = |o: &Value| o["metadata"]["annotations"][REFRESH] == how;
        scene.site_shows(&here, "a refresh", asked);
        // As Argo CD does when it has looked.
        let seen = json!({"metadata": {"annotations": {REFRESH: null}},
            "status": {"sync": {"status": "Synced", "revision": how}}});
        scene.site.patch(&here, &seen);
        let done = |o: &Value| {
            o["status"]["sync"]["revision"] == how
                && o["metadata"]["annotations"][REFRESH].is_null()
        };
        scene.plane_shows(&there, "the refresh is done", done);
    }
}
