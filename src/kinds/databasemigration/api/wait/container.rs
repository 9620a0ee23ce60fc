//! The init container, and the volumes that it needs.

use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, PersistentVolumeClaimVolumeSource, SecretKeySelector, SecurityContext,
    Volume,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::Awaited;
use crate::api::pod::{PROGRAM, PullPolicy, USER, mount, seccomp_profile, unprivileged_container, volume};
use crate::kinds::databasemigration::api::pod;
use crate::kinds::databasemigration::api::v1::CredentialsSecret;

/// The name of the container. No pod gets a second one.
const NAME: &str = "wait-for-migration";

/// The volume with the certificates, and where it is mounted.
const TLS: (&str, &str) = ("wait-for-migration-tls", "/etc/gatehouse/wait/tls");

/// The volume with a database that is a file, and where it is mounted.
const DATABASE: (&str, &str) = ("wait-for-migration-database", "/database");

/// Who may read the certificates: the group of the container is not that of the pod's volumes.
const MODE: i32 = 0o444;

/// The operations that add to `pod` what it takes to wait.
pub(super) fn added(pod: &Value, awaited: &Awaited, image: &str) -> Vec<Value> {
    let none = Vec::new();
    let others = pod["spec"]["initContainers"].as_array().unwrap_or(&none);
    if others.iter().any(|other| other["name"] == NAME) {
        return Vec::new();
    }
    let volumes = volumes(awaited);
    // A container that goes on beside the others holds none of them up.
    let place = others.iter().take_while(|other| other["restartPolicy"] == "Always").count();
    let container = container(awaited, &volumes, image);
    let mut operations = vec![insertion(others.is_empty(), "initContainers", &place.to_string(), &container)];
    let mut has_none = pod["spec"]["volumes"].as_array().is_none_or(Vec::is_empty);
    for (volume, _) in &volumes {
        operations.push(insertion(has_none, "volumes", "-", volume));
        has_none = false;
    }
    operations
}

/// Puts an item into a list of the pod's spec, or makes the list.
fn insertion(is_first: bool, list: &str, place: &str, item: &impl Serialize) -> Value {
    if is_first {
        json!({"op": "add", "path": format!("/spec/{list}"), "value": [item]})
    } else {
        json!({"op": "add", "path": format!("/spec/{list}/{place}"), "value": item})
    }
}

fn container(awaited: &Awaited, volumes: &[(Volume, &str)], image: &str) -> Container {
    let mounts = volumes.iter().map(|(volume, path)| mount(&volume.name, path, *path == TLS.1));
    let mounts: Vec<_> = mounts.collect();
    let credentials = awaited.database.credentials_secret.as_ref();
    Container {
        name: NAME.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some(PullPolicy::IfNotPresent.as_str().to_owned()),
        command: Some([PROGRAM, "migrate", "wait"].map(str::to_owned).to_vec()),
        args: Some(arguments(awaited, volumes)),
        env: credentials.map(variables),
        resources: Some(pod::resources()),
        security_context: Some(SecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            seccomp_profile: Some(seccomp_profile()),
            ..unprivileged_container()
        }),
        volume_mounts: (!mounts.is_empty()).then_some(mounts),
        ..Container::default()
    }
}

/// The options of `gatehouse migrate wait`.
fn arguments(awaited: &Awaited, volumes: &[(Volume, &str)]) -> Vec<String> {
    let Awaited { database, history, script, timeout } = awaited;
    let file = database.file.as_ref().map(|file| format!("{}/{}", DATABASE.1, file.path));
    let mode = database.tls.as_ref().and_then(|tls| tls.mode);
    let has_certificates = volumes.iter().any(|(_, path)| *path == TLS.1);
    let options = [
        ("engine", Some(database.engine.as_str().to_owned())),
        ("host", database.host.clone()),
        ("port", database.port.map(|port| port.to_string())),
        ("database", file.or_else(|| database.name.clone())),
        ("tls-mode", mode.map(|mode| format!("{mode:?}"))),
        ("tls", has_certificates.then(|| TLS.1.to_owned())),
        ("history-schema", history.schema.clone()),
        ("history-table", history.table.clone()),
        ("series", history.series.clone()),
        ("min-id", Some(script.clone())),
        ("timeout", timeout.as_ref().map(|timeout| timeout.as_str().to_owned())),
    ];
    // A kubelet replaces $(NAME), and takes $$ for a dollar.
    let option = |(name, value): (&str, Option<String>)| {
        value.map(|value| format!("--{name}={}", value.replace('$', "$$")))
    };
    options.into_iter().filter_map(option).collect()
}

fn variables(secret: &CredentialsSecret) -> Vec<EnvVar> {
    let variable = |name: &str, key: Option<&String>, absent: &str| EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret.name.clone(),
                key: key.map_or_else(|| absent.to_owned(), Clone::clone),
                optional: None,
            }),
            ..EnvVarSource::default()
        }),
    };
    vec![
        variable("GATEHOUSE_DATABASE_USERNAME", secret.username_key.as_ref(), "username"),
        variable("GATEHOUSE_DATABASE_PASSWORD", secret.password_key.as_ref(), "password"),
    ]
}

/// The volumes, and where each is mounted.
fn volumes(awaited: &Awaited) -> Vec<(Volume, &'static str)> {
    let certificates = pod::certificates(&awaited.database);
    let tls = (!certificates.is_empty())
        .then(|| (Volume { projected: Some(pod::projected(certificates, MODE)), ..volume(TLS.0) }, TLS.1));
    let file = awaited.database.file.as_ref().map(|file| {
        let claim =
            PersistentVolumeClaimVolumeSource { claim_name: file.claim_name.clone(), read_only: None };
        (Volume { persistent_volume_claim: Some(claim), ..volume(DATABASE.0) }, DATABASE.1)
    });
    tls.into_iter().chain(file).collect()
}
