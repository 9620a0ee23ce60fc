//! Kinds of requests: a verb and a resource.

use std::fmt;

use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};

/// Such as `get pods`, `apply services` or `patch etcdclusters/status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    verb: &'static str,
    resource: String,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.verb, self.resource)
    }
}

impl Kind {
    /// That of a request; none, where it is about no resource.
    pub fn of<B>(request: &Request<B>) -> Option<Self> {
        let mut path = request.uri().path().trim_matches('/').split('/');
        match path.next() {
            Some("api") => path.nth(0)?,
            Some("apis") => path.nth(1)?,
            _ => return None,
        };
        let mut rest: Vec<_> = path.collect();
        if rest.len() > 2 && rest[0] == "namespaces" {
            rest.drain(..2);
        }
        let mut rest = rest.into_iter();
        let (resource, name, part) = (rest.next()?, rest.next(), rest.next());
        let resource = part.map_or_else(|| resource.to_owned(), |part| format!("{resource}/{part}"));
        let content = request.headers().get(CONTENT_TYPE).map(hyper::header::HeaderValue::as_bytes);
        let watches =
            request.uri().query().is_some_and(|query| query.split('&').any(|word| word == "watch=true"));
        let verb = match *request.method() {
            Method::GET if watches => "watch",
            Method::GET if name.is_some() => "get",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH if content == Some(b"application/apply-patch+yaml") => "apply",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => return None,
        };
        Some(Self { verb, resource })
    }

    /// Whether it changes something.
    pub fn is_write(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb)
    }

    /// Whether it is about who leads.
    pub fn is_of_elections(&self) -> bool {
        self.resource == "leases"
    }

    /// Whether it is answered for as long as it is listened to.
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(method: Method, uri: &str, content: &str) -> Option<String> {
        let request = Request::builder().method(method).uri(uri).header(CONTENT_TYPE, content).body(());
        Kind::of(&request.unwrap()).map(|kind| kind.to_string())
    }

    #[test]
    fn a_kind_is_a_verb_and_a_resource() {
        for (method, uri, expected) in [
            (Method::GET, "/api/v1/namespaces/a/pods/b", "get pods"),
            (Method::GET, "/api/v1/namespaces/a/pods?&labelSelector=x", "list pods"),
            (Method::GET, "/api/v1/pods?&watch=true&resourceVersion=1", "watch pods"),
            (Method::GET, "/api/v1/persistentvolumes/b", "get persistentvolumes"),
            (Method::GET, "/api/v1/namespaces/a", "get namespaces"),
            (Method::POST, "/api/v1/namespaces/a/configmaps?", "create configmaps"),
            (Method::PUT, "/apis/apps/v1/namespaces/a/statefulsets/b", "update statefulsets"),
            (Method::DELETE, "/api/v1/namespaces/a/pods/b", "delete pods"),
            (
                Method::PATCH,
                "/apis/gatehouse.dev/v1/namespaces/a/etcdclusters/b/status?",
                "patch etcdclusters/status",
            ),
        ] {
            assert_eq!(kind(method, uri, "application/json").as_deref(), Some(expected), "{uri}");
        }
        let apply = kind(Method::PATCH, "/api/v1/namespaces/a/services/b", "application/apply-patch+yaml");
        assert_eq!(apply.as_deref(), Some("apply services"));
        assert_eq!(kind(Method::GET, "/version", ""), None);
    }
}
