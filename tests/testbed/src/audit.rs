//! The audit log of the API server: what gatehouse asks of it, one line of JSON for each request.

/// Verb, object and answer of every request of a ServiceAccount in gatehouse's namespace, and of no other user.
pub(crate) const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [\"system:serviceaccounts:gatehouse-system\"]
- level: None
";
