//! What the API server wrote down about gatehouse's requests.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// A request that has been answered.
#[derive(Clone, Debug)]
pub struct Line(Value);

impl Line {
    /// All that gatehouse asked for so far, oldest first.
    pub fn read(log: &Path) -> Vec<Self> {
        Self::read_of("gatehouse", log)
    }

    /// All that this ServiceAccount of gatehouse's namespace asked for so far, oldest first.
    pub fn read_of(account: &str, log: &Path) -> Vec<Self> {
        let text = fs::read_to_string(log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let user = format!("system:serviceaccount:gatehouse-system:{account}");
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).map(Self);
        lines.filter(|line| line.0["user"]["username"] == *user).collect()
    }

    /// The line as it was written.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.0
    }

    /// The Pod that asked.
    pub fn pod(&self) -> &str {
        let extra = &self.0["user"]["extra"];
        extra["authentication.kubernetes.io/pod-name"][0].as_str().unwrap_or_default()
    }

    /// Such as `patch deployments`, or `patch tdsets/status`.
    pub fn what(&self) -> String {
        format!("{} {}", self.0["verb"].as_str().unwrap_or_default(), self.resource())
    }

    /// Such as `deployments`, or `tdsets/status`.
    pub fn resource(&self) -> String {
        let about = &self.0["objectRef"];
        let subresource = about["subresource"].as_str().map(|name| format!("/{name}")).unwrap_or_default();
        format!("{}{subresource}", about["resource"].as_str().unwrap_or_default())
    }

    /// Whether it asks for an object of that namespace and name.
    pub fn is_about(&self, namespace: &str, name: &str) -> bool {
        self.0["objectRef"]["namespace"] == *namespace && self.0["objectRef"]["name"] == *name
    }

    /// The HTTP status of the answer.
    pub fn code(&self) -> u64 {
        self.0["responseStatus"]["code"].as_u64().unwrap_or_default()
    }

    /// Whether it was refused for want of a right. Admission forbids for other reasons, with the same status.
    pub fn lacked_the_right(&self) -> bool {
        self.0["annotations"]["authorization.k8s.io/decision"] == "forbid"
    }

    /// When it was received, in RFC 3339 with microseconds: text that sorts by time.
    pub fn received(&self) -> &str {
        self.0["requestReceivedTimestamp"].as_str().unwrap_or_default()
    }

    /// Whether it asks for an object of that namespace, or for all of a kind there.
    pub fn is_in(&self, namespace: &str) -> bool {
        self.0["objectRef"]["namespace"] == *namespace
    }

    /// Whether it asks for a change.
    pub fn is_write(&self) -> bool {
        const VERBS: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
        VERBS.iter().any(|verb| self.0["verb"] == **verb)
    }

    /// Whether it is work on the objects of users, which only one replica may do.
    pub fn is_work(&self) -> bool {
        const WORKED: [&str; 3] = ["deployments", "services", "tdsets"];
        self.is_write() && WORKED.iter().any(|what| self.0["objectRef"]["resource"] == **what)
    }
}
