//! The API as OpenAPI 3.1, made from the routes themselves and from examples of what they take and
//! give.

use std::collections::BTreeMap;

use axum::routing::get;
use bowline_client::api::{BASE, Problem};
use serde_json::{Map, Value, json};

use super::Routes;
use crate::problem::Code;

/// What a route is for.
#[derive(Clone, Debug)]
pub(crate) struct Doc {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    summary: &'static str,
    query: Vec<&'static str>,
    headers: Vec<&'static str>,
    takes: Option<(&'static str, Value)>,
    takes_media: &'static str,
    takes_bytes: bool,
    gives: Option<(&'static str, Value)>,
    media: &'static str,
    status: u16,
    creates: bool,
    open: bool,
}

impl Doc {
    fn new(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self {
            method,
            path,
            summary,
            query: vec![],
            headers: vec![],
            takes: None,
            takes_media: "application/json",
            takes_bytes: false,
            gives: None,
            media: "application/json",
            status: 200,
            creates: false,
            open: false,
        }
    }

    pub(super) fn get(path: &'static str, summary: &'static str) -> Self {
        Self::new("get", path, summary)
    }

    pub(super) fn put(path: &'static str, summary: &'static str) -> Self {
        Self::new("put", path, summary)
    }

    pub(super) fn post(path: &'static str, summary: &'static str) -> Self {
        Self::new("post", path, summary)
    }

    /// By an RFC 7386 merge patch.
    pub(super) fn patch(path: &'static str, summary: &'static str) -> Self {
        Self { takes_media: "application/merge-patch+json", ..Self::new("patch", path, summary) }
    }

    pub(super) fn delete(path: &'static str, summary: &'static str) -> Self {
        Self::new("delete", path, summary)
    }

    /// With these parameters in the query.
    pub(super) fn query(mut self, names: &[&'static str]) -> Self {
        self.query = names.to_vec();
        self
    }

    /// With these headers.
    pub(super) fn headers(mut self, names: &[&'static str]) -> Self {
        self.headers = names.to_vec();
        self
    }

    /// With a body like this.
    pub(super) fn takes(mut self, name: &'static str, example: &Value) -> Self {
        self.takes = Some((name, example.clone()));
        self
    }

    /// With any bytes as its body.
    pub(super) fn takes_bytes(mut self) -> Self {
        self.takes_bytes = true;
        self
    }

    /// With an answer like this.
    pub(super) fn gives(mut self, name: &'static str, example: &Value) -> Self {
        self.gives = Some((name, example.clone()));
        self
    }

    /// With an answer of this media type.
    pub(super) fn media(mut self, media: &'static str) -> Self {
        self.media = media;
        self
    }

    /// With an answer of this status.
    pub(super) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// With 201 as well, and the same answer, if it was not there.
    pub(super) fn creates(mut self) -> Self {
        self.creates = true;
        self
    }

    /// For everybody, with no token.
    pub(super) fn open(mut self) -> Self {
        self.open = true;
        self
    }

    fn operation(&self, schemas: &mut BTreeMap<String, Value>) -> Value {
        let mut schema = |named: &Option<(&'static str, Value)>| {
            let (name, example) = named.as_ref()?;
            schemas.entry((*name).to_owned()).or_insert_with(|| schema_of(example));
            let reference = json!({"$ref": format!("#/components/schemas/{name}")});
            Some(json!({"schema": reference, "example": example}))
        };
        let problem = json!({"$ref": "#/components/responses/Problem"});
        let done = match schema(&self.gives) {
            Some(content) => json!({"description": "done", "content": {self.media: content}}),
            None => json!({"description": "done"}),
        };
        let mut operation = json!({
            "summary": self.summary,
            "operationId": operation_id(self.method, self.path),
            "parameters": self.parameters(),
            "responses": {
                self.status.to_string(): &done,
                "default": problem,
            },
        });
        if self.creates {
            operation["responses"]["201"] = done;
        }
        if let Some(content) = schema(&self.takes) {
            operation["requestBody"] = json!({"content": {self.takes_media: content}});
        }
        if self.takes_bytes {
            operation["requestBody"] = json!({"content": {"application/octet-stream": {}}});
        }
        if self.open {
            operation["security"] = json!([]);
        }
        operation
    }

    fn parameters(&self) -> Vec<Value> {
        let in_path = self.path.split('/').filter_map(|s| s.strip_prefix('{')).map(|s| {
            let name = s.trim_end_matches('}').trim_start_matches('*');
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
        });
        let optional = |name: &&'static str, place: &str| json!({"name": name, "in": place, "schema": {"type": "string"}});
        let in_query = self.query.iter().map(|name| optional(name, "query"));
        let in_header = self.headers.iter().map(|name| optional(name, "header"));
        in_path.chain(in_query).chain(in_header).collect()
    }
}

pub(super) fn routes(routes: Routes) -> Routes {
    let doc = Doc::get("/openapi.json", "This description").open();
    // Made once: it does not change while the process runs.
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let text = || async {
        let text = TEXT.get_or_init(|| document().to_string());
        ([(http::header::CONTENT_TYPE, "application/json")], text.as_str())
    };
    routes.on(doc, get(text))
}

/// The description of the whole API.
pub fn document() -> Value {
    let mut schemas = BTreeMap::new();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for doc in super::docs() {
        let path = format!("{BASE}{}", doc.path.replace("{*", "{"));
        let operation = doc.operation(&mut schemas);
        paths.entry(path).or_default().insert(doc.method.into(), operation);
    }
    let problem = Code::Conflict.because("it is at rev 7").rev(Some(7));
    let mut problem = problem.hint("read it again, then write").0;
    problem.retry_after = Some(1);
    let problem = json!(problem);
    schemas.insert("Problem".into(), schema_of(&problem));
    let reference = json!({"$ref": "#/components/schemas/Problem"});
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bowline hub",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Every problem has a code with a page under docs/errors.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {"Problem": {
                "description": "what went wrong, as RFC 9457 says",
                "content": {Problem::MEDIA_TYPE: {"schema": reference, "example": problem}},
            }},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(['/', '{', '}', '*', '-', '.']).filter(|w| !w.is_empty());
    std::iter::once(method).chain(words).collect::<Vec<_>>().join("_")
}

/// The schema that an example fits. More fields are allowed, as later versions will have them.
fn schema_of(example: &Value) -> Value {
    match example {
        Value::Null => json!({}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(n) if n.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::String(text) if bowline_resources::parse_rfc3339(text).is_some() => {
            json!({"type": "string", "format": "date-time"})
        }
        Value::String(_) => json!({"type": "string"}),
        Value::Array(items) => {
            json!({"type": "array", "items": items.first().map_or(json!({}), schema_of)})
        }
        Value::Object(fields) => {
            let properties: Map<_, _> =
                fields.iter().map(|(name, value)| (name.clone(), schema_of(value))).collect();
            json!({"type": "object", "properties": properties})
        }
    }
}
