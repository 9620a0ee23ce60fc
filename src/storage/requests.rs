//! Requests to the API server.
//!
//! Guarantees: each request has a limit; objects come and go as metadata alone, whatever they hold; a refusal keeps what
//! the API server asks to be waited for.
//! Never: repeats a request. A client that does so by itself would hide from [`super::plan::pace`] that the API server
//! has no time.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use hyper::{Method, Request};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use kube::client::Body;
use kube::core::Status;
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::observation::{Definition, ObjectMeta};
use super::plan::object::{Answer, Patch};
use crate::runtime::call::LIMIT;
use crate::runtime::clock;

/// How long a page may take: the API server converts what it lists, object by object, and ends a request after so long.
const PAGE_LIMIT: Duration = Duration::from_mins(1);

/// As whom objects are patched.
const MANAGER: &str = super::plan::managed_fields::MANAGER;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Some objects, and where the next ones begin.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Page {
    /// What the API server says about the page.
    #[serde(default)]
    pub metadata: PageMeta,
    /// The objects. Of a kind without any, the API server gives the metadata as null (Go's nil slice).
    #[serde(default, deserialize_with = "null_as_none")]
    pub items: Vec<Item>,
}

fn null_as_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Item>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// What the API server says about a page.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageMeta {
    /// Where the next page begins; empty after the last one.
    #[serde(rename = "continue")]
    pub next: String,
    /// About how many objects follow.
    pub remaining_item_count: Option<u64>,
}

/// An object as its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Item {
    /// The metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
}

/// The way to the API server.
#[derive(Clone)]
pub struct Requests {
    client: Client,
}

impl Requests {
    /// Asks the API server of that configuration.
    ///
    /// # Errors
    /// The configuration makes no client.
    pub fn new(mut config: Config) -> kube::Result<Self> {
        config.default_retry = false;
        Ok(Self { client: Client::try_from(config)? })
    }

    /// Asks by a client that there is. What it repeats by itself is not seen here: for few requests.
    #[must_use]
    pub const fn through(client: Client) -> Self {
        Self { client }
    }

    /// The definition of that name.
    pub async fn definition(&self, name: &str) -> Answer<Definition> {
        let path = format!("{DEFINITIONS}/{name}");
        and_then(self.exchange(Method::GET, &path, JSON, None, LIMIT).await, definition)
    }

    /// All definitions.
    pub async fn definitions(&self) -> Answer<Vec<Definition>> {
        let answer = self.ask::<Value>(Method::GET, DEFINITIONS, JSON, None, PAGE_LIMIT).await;
        and_then(answer, |mut list| {
            let Value::Array(items) = list["items"].take() else { return Err("no list".to_owned()) };
            let read = items.into_iter().map(Definition::read).collect::<serde_json::Result<_>>();
            read.map_err(|error| error.to_string())
        })
    }

    /// At most so many objects of a definition, from there on.
    pub async fn page(&self, definition: &Definition, size: u32, next: &str) -> Answer<Page> {
        let path = format!("{}?limit={size}&continue={}", collection(definition, None), escaped(next));
        self.ask(Method::GET, &path, METADATA_LIST, None, PAGE_LIMIT).await
    }

    /// An object in that version, as etcd has it: the API server has it converted, unless it is stored in that version.
    pub async fn converted(
        &self,
        definition: &Definition,
        object: &ObjectMeta,
        version: &str,
    ) -> Answer<Item> {
        let place = collection_of(definition, version, object.namespace.as_deref());
        self.ask(Method::GET, &format!("{place}/{}", object.name), METADATA, None, LIMIT).await
    }

    /// Patches an object: by its status where it has one, which rules and webhooks for the object itself do not check.
    /// What takes managed fields away goes to the object itself: of a patch of a status the API server ignores them.
    pub async fn patch(
        &self,
        definition: &Definition,
        object: &ObjectMeta,
        patch: &Patch,
        is_dry: bool,
    ) -> Answer<ObjectMeta> {
        let by_status = !patch.cleans && definition.asked_version().is_some_and(|version| version.has_status);
        let place = collection(definition, object.namespace.as_deref());
        let uri = format!(
            "{place}/{}{}?fieldManager={MANAGER}{}",
            object.name,
            if by_status { "/status" } else { "" },
            if is_dry { "&dryRun=All" } else { "" }
        );
        let answer = self.ask::<Item>(Method::PATCH, &uri, METADATA, Some(&patch.body), LIMIT).await;
        and_then(answer, |item| Ok(item.metadata))
    }

    /// Merges into a definition, or into its status; what it is after that.
    pub async fn patch_definition(&self, name: &str, body: &Value, is_status: bool) -> Answer<Definition> {
        let part = if is_status { "/status" } else { "" };
        let path = format!("{DEFINITIONS}/{name}{part}?fieldManager={MANAGER}");
        and_then(self.exchange(Method::PATCH, &path, JSON, Some(body), LIMIT).await, definition)
    }

    /// Whether the user that this is may do that.
    pub async fn may(&self, right: &Right<'_>) -> Answer<bool> {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((right.resource, ""));
        let attributes = json!({"verb": right.verb, "group": right.group, "resource": resource,
            "subresource": subresource, "name": right.name});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes}});
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let answer = self.ask::<Value>(Method::POST, path, JSON, Some(&review), LIMIT).await;
        and_then(answer, |review| Ok(review["status"]["allowed"] == true))
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<&Value>,
        limit: Duration,
    ) -> Answer<T> {
        and_then(self.exchange(method, path, accept, body, limit).await, |(_, bytes)| parsed(&bytes))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<&Value>,
        limit: Duration,
    ) -> Answer<(HeaderMap, Bytes)> {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { JSON };
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header(ACCEPT, accept);
        let request = match request.header(CONTENT_TYPE, content).body(Body::from(bytes)) {
            Ok(request) => request,
            Err(error) => return Answer::Nothing(format!("no path: {path}: {error}")),
        };
        let exchange = async {
            let response = self.client.send(request).await.map_err(|error| error.to_string())?;
            let (head, body) = response.into_parts();
            let bytes = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
            Ok::<_, String>((head, bytes))
        };
        let (head, bytes) = match tokio::time::timeout(limit, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => return Answer::Unreached(why),
            Err(_) => return Answer::Nothing(format!("no answer within {} s", limit.as_secs())),
        };
        if head.status.is_success() {
            return Answer::Done((head.headers, bytes));
        }
        let wait = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let text = || Status::failure(String::from_utf8_lossy(&bytes).trim(), "");
        let status: Status = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        let status = status.with_code(head.status.as_u16());
        Answer::Refused(Box::new(status), wait.map(Duration::from_secs))
    }
}

/// Something that a user may or may not do.
#[derive(Clone, Copy, Debug)]
pub struct Right<'a> {
    /// Such as `patch`.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// Plural, with a subresource where one is meant.
    pub resource: &'a str,
    /// The object; empty for all.
    pub name: &'a str,
}

fn parsed<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

/// The definition of an answer, with the time by the clock of the API server.
fn definition((headers, bytes): (HeaderMap, Bytes)) -> Result<Definition, String> {
    let read = Definition::read(parsed(&bytes)?).map_err(|error| error.to_string())?;
    Ok(Definition { read_at: date(&headers), ..read })
}

/// When an answer was given (RFC 9110, 6.6.1). Go's HTTP server says so in each.
fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = DateTimeParser::new().parse_timestamp(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(clock::shifted(date))
}

fn and_then<T, U>(answer: Answer<T>, read: impl FnOnce(T) -> Result<U, String>) -> Answer<U> {
    match answer {
        Answer::Done(found) => match read(found) {
            Ok(read) => Answer::Done(read),
            Err(why) => Answer::Nothing(format!("an answer that cannot be read: {why}")),
        },
        Answer::Refused(status, wait) => Answer::Refused(status, wait),
        Answer::Nothing(why) => Answer::Nothing(why),
        Answer::Unreached(why) => Answer::Unreached(why),
    }
}

/// Where the objects of a definition are; without a namespace, those of all namespaces.
fn collection(definition: &Definition, namespace: Option<&str>) -> String {
    collection_of(definition, definition.asked_version().map_or("", |version| &version.name), namespace)
}

fn collection_of(definition: &Definition, version: &str, namespace: Option<&str>) -> String {
    let place = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    format!("/apis/{}/{version}/{place}{}", definition.group, definition.plural)
}

/// A token in a query: it is base64, and may have `=` and `+`.
fn escaped(token: &str) -> String {
    token.replace('%', "%25").replace('+', "%2B").replace('=', "%3D").replace('&', "%26")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_an_answer_is_that_of_the_api_server() {
        let headers = |text: &'static str| HeaderMap::from_iter([(DATE, text.parse().unwrap())]);
        let told = date(&headers("Tue, 15 Nov 1994 08:12:31 GMT"));
        assert_eq!(told, Some("1994-11-15T08:12:31Z".parse().unwrap()));
        assert_eq!(date(&headers("today")), None);
        assert_eq!(date(&HeaderMap::new()), None);
    }

    /// What kube-apiserver 1.36 answered for a kind without objects.
    const EMPTY: &str = r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"270"},"items":null}"#;

    #[test]
    fn a_kind_without_objects_is_an_empty_page() {
        for text in [EMPTY, r#"{"metadata":{},"items":[]}"#, r#"{"metadata":{}}"#] {
            let page: Page = serde_json::from_str(text).unwrap();
            assert_eq!((page.items.len(), page.metadata.next.as_str()), (0, ""), "{text}");
        }
        assert!(serde_json::from_str::<Page>(r#"{"items":{}}"#).is_err());
    }
}
