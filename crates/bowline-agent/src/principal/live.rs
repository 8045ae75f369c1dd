//! Answers to requests for what is live: resources and Redis. This agent has neither yet; whoever asks
//! is told so and does not wait.

use bowline_argocd::{Event, Kind, Target, uuid};
use serde_json::{Value, json};

/// What an HTTP server says that knows the request and cannot do it.
const NOT_IMPLEMENTED: u16 = 501;

/// The answer to a request, if one is expected on the stream of events.
pub(super) fn answer(request: &Event) -> Option<Event> {
    let asked: Value = serde_json::from_slice(&request.payload).ok()?;
    let id = asked["uuid"].as_str()?.to_owned();
    let (kind, body) = match request.target {
        Target::Resource => (Kind::Response, json!({"uuid": id, "status": NOT_IMPLEMENTED})),
        Target::Redis => {
            let body = redis(&asked["body"])?;
            let connection = asked["connectionUuid"].clone();
            (Kind::RedisResponse, json!({"uuid": id, "connectionUuid": connection, "body": body}))
        }
        _ => return None,
    };
    let payload = body.to_string();
    Some(Event::new(kind, request.target.clone(), uuid(rand::random()), id, payload))
}

/// A cache that never has anything, and never has news.
fn redis(body: &Value) -> Option<Value> {
    if body.get("get").is_some() {
        return Some(json!({"get": {"bytes": null, "cacheHit": false, "error": ""}}));
    }
    if body.get("subscribe").is_some() {
        return Some(json!({"subscribeResponse": {"error": ""}}));
    }
    body.get("ping").map(|_| json!({"pong": {}}))
}

#[cfg(test)]
mod tests {
    use bowline_argocd::Method;

    use super::*;

    fn ask(kind: Kind, target: Target, body: &Value) -> Event {
        Event::new(kind, target, "r", "e", body.to_string())
    }

    #[test]
    fn a_request_for_a_resource_is_answered_by_its_own_id() {
        let body = json!({"uuid": "u1", "name": "web", "resource": "pods"});
        let answer = answer(&ask(Kind::Http(Method::Get), Target::Resource, &body)).unwrap();
        assert_eq!((answer.kind, answer.event_id.as_str()), (Kind::Response, "u1"));
        assert_ne!(answer.resource_id, "r");
        let said: Value = serde_json::from_slice(&answer.payload).unwrap();
        assert_eq!(said, json!({"uuid": "u1", "status": 501}));
    }

    #[test]
    fn redis_is_a_cache_without_content() {
        let said = |body: Value| {
            let body = json!({"uuid": "u1", "connectionUuid": "c", "body": body});
            let answer = answer(&ask(Kind::RedisRequest, Target::Redis, &body))?;
            serde_json::from_slice::<Value>(&answer.payload).ok()
        };
        let got = said(json!({"get": {"key": "k"}})).unwrap();
        assert_eq!(got["body"]["get"]["cacheHit"], false);
        assert_eq!(got["connectionUuid"], "c");
        assert_eq!(said(json!({"ping": {}})).unwrap()["body"], json!({"pong": {}}));
        assert_eq!(said(json!({"explode": {}})), None);
    }

    #[test]
    fn what_goes_by_a_stream_of_its_own_has_no_answer_here() {
        let body = json!({"uuid": "u1"});
        assert_eq!(answer(&ask(Kind::Http(Method::Get), Target::ContainerLog, &body)), None);
    }
}
