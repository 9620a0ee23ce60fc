//! Kubeconfigs, written as JSON, which is YAML too.

use std::{path::Path, process::Command};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{Error, files::write_private};

/// The cluster that a kubeconfig points to, in the words of its `cluster` field.
#[derive(Debug, Clone)]
pub(crate) struct Cluster(Value);

/// Who a kubeconfig speaks as, in the words of its `user` field.
#[derive(Debug, Clone)]
pub(crate) struct User(Value);

impl Cluster {
    pub(crate) fn new(server: &str, ca_pem: &str) -> Self {
        Self(json!({"server": server, "certificate-authority-data": STANDARD.encode(ca_pem)}))
    }

    pub(crate) fn server(&self) -> &str {
        self.0["server"].as_str().unwrap_or_default()
    }
}

impl User {
    pub(crate) fn with_token(token: &str) -> Self {
        Self(json!({"token": token}))
    }

    /// The same credentials, speaking as another user.
    pub(crate) fn impersonating(&self, user: &str, groups: &[&str]) -> Self {
        let mut value = self.0.clone();
        value["as"] = json!(user);
        if !groups.is_empty() {
            value["as-groups"] = json!(groups);
        }
        Self(value)
    }
}

/// Reads the one cluster and user of what `kubectl config view --minify --flatten --raw -o json` said.
pub(crate) fn parse(text: &str) -> Result<(Cluster, User), serde_json::Error> {
    let mut value: Value = serde_json::from_str(text)?;
    Ok((Cluster(value["clusters"][0]["cluster"].take()), User(value["users"][0]["user"].take())))
}

pub(crate) fn write(path: &Path, cluster: &Cluster, user: &User) -> Result<(), Error> {
    let value = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "testbed",
        "clusters": [{"name": "testbed", "cluster": cluster.0}],
        "users": [{"name": "testbed", "user": user.0}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
    });
    write_private(path, &format!("{value:#}\n"))
}

/// kubectl with this kubeconfig, its cache in `folder`, and without the settings of the user who runs the tests.
pub(crate) fn kubectl(program: &Path, kubeconfig: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("KUBECONFIG", kubeconfig)
        .env("KUBECACHEDIR", folder.join("kubectl-cache"))
        .env("KUBERC", "off");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let user = User::with_token("secret").impersonating("jane", &["a", "b"]);
        write(&path, &Cluster::new("https://127.0.0.1:1", "pem"), &user).unwrap();
        let (cluster, user) = parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(cluster.server(), "https://127.0.0.1:1");
        assert_eq!(user.0, json!({"token": "secret", "as": "jane", "as-groups": ["a", "b"]}));
    }
}
