//! What is written about the API is true.

use std::path::Path;

use bowline_hub::{Code, Hub, HubOptions, openapi};

use crate::raw;
use crate::stage::Stage;

#[test]
fn every_code_has_its_page_and_every_page_its_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    for code in Code::ALL {
        let page = folder.join(format!("{}.md", code.as_str()));
        let text = std::fs::read_to_string(&page).unwrap_or_else(|_| panic!("{page:?}"));
        let title = format!("# {}: {}\n", code.as_str(), code.title());
        assert!(text.starts_with(&title), "{page:?}");
        assert!(text.contains("## What to do\n"), "{page:?}");
    }
    for page in std::fs::read_dir(&folder).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        if let Some(code) = name.strip_suffix(".md").filter(|n| n.starts_with("BL-0")) {
            let number: u32 = code["BL-".len()..].parse().unwrap();
            let ours = number < 400;
            assert!(!ours || Code::ALL.iter().any(|c| c.as_str() == code), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_opened_has_a_code() {
    let dir = tempfile::tempdir().unwrap();
    let why = |error: bowline_hub::Error| error.to_string();
    std::fs::create_dir(dir.path().join("store")).unwrap();
    std::fs::write(dir.path().join("store/bowline.db"), "no database, but long enough").unwrap();
    let damaged = Hub::start(HubOptions::new(dir.path())).await.map_err(why).unwrap_err();
    assert!(damaged.starts_with(Code::StoreUnusable.as_str()), "{damaged}");
    let stage = Stage::new().await;
    let locked = Hub::start(HubOptions::new(stage.dir.path())).await.map_err(why).unwrap_err();
    assert!(locked.starts_with(Code::StoreUnusable.as_str()), "{locked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_of_the_description_is_served() {
    let stage = Stage::new().await;
    let (status, text) = raw::call(&stage.hub, "none", "GET", "/openapi.json", b"").await;
    assert_eq!(status, 200);
    let served: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(served, openapi::document());
    assert_eq!(served["openapi"], "3.1.0");
    let mut routes = 0;
    for (path, methods) in served["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1").unwrap().replace(['{', '}'], "");
        for method in methods.as_object().unwrap().keys() {
            let upper = method.to_uppercase();
            // Nobody's token: a route that is there says 401, one that is not 404 or 405.
            let (status, body) = raw::call(&stage.hub, "none", &upper, &path, b"{}").await;
            let open = path == "/openapi.json";
            assert_eq!(status, if open { 200 } else { 401 }, "{upper} {path}: {body}");
            routes += 1;
        }
    }
    assert!(routes >= 35, "{routes}");
}

#[test]
fn the_description_tells_bodies_answers_and_headers_as_they_are() {
    let document = openapi::document();
    let one = "/api/v1/agents/{agent}/objects/{group}/{kind}/{namespace}/{name}";
    let one = &document["paths"][one];
    let patch = one["patch"]["requestBody"]["content"].as_object().unwrap();
    assert_eq!(patch.keys().collect::<Vec<_>>(), ["application/merge-patch+json"]);
    let answers = &one["put"]["responses"];
    assert!(answers["200"].is_object());
    assert_eq!(answers["200"], answers["201"]);
    assert!(one["patch"]["responses"]["201"].is_null());
    let headers = |method: &str| {
        let parameters = one[method]["parameters"].as_array().unwrap().iter();
        let headers = parameters.filter(|p| p["in"] == "header");
        headers.map(|p| p["name"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(headers("put"), ["If-Match", "If-None-Match"]);
    assert_eq!(headers("patch"), ["If-Match"]);
    assert_eq!(headers("delete"), ["If-Match"]);
    let problem = &document["components"]["responses"]["Problem"]["content"];
    let example = &problem["application/problem+json"]["example"];
    assert_eq!(example["code"], Code::Conflict.as_str());
    assert_eq!(example["status"], Code::Conflict.status());
    assert_eq!(example["title"], Code::Conflict.title());
}
