//! What is made of an object, byte by byte: it must not change by itself.
//!
//! A pod template with other bytes restarts every member of every EtcdCluster, and every pod of every TDSet, when
//! gatehouse is upgraded. So `NAME.yaml` has an object, and `NAME.json` beside it all that is built of it.
//!
//! `UPDATE_EXPECTED=1 cargo test --test golden` replaces the latter, but not where `CI` is set. Read the difference
//! before it is committed: a release note has to say what it restarts.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gatehouse::api::Version as Served;
use gatehouse::certs::certificate::Certificate;
use gatehouse::controllers::api_write::ApiWrite;
use gatehouse::controllers::manifest::Manifest;
use gatehouse::kinds;
use gatehouse::kinds::databasemigration::api::v1::DatabaseMigration;
use gatehouse::kinds::databasemigration::assignment::{self, Assignment};
use gatehouse::kinds::databasemigration::observation as seen;
use gatehouse::kinds::databasemigration::resources as migration;
use gatehouse::kinds::databasemigration::spec::Spec as MigrationSpec;
use gatehouse::kinds::etcdcluster::api::v1::EtcdCluster;
use gatehouse::kinds::etcdcluster::names;
use gatehouse::kinds::etcdcluster::observation::{
    ConfigEntry, MemberId, Ordinal, Purpose, Template, Uid, Version,
};
use gatehouse::kinds::etcdcluster::resources as etcd;
use gatehouse::kinds::etcdcluster::resources::certificates::trust;
use gatehouse::kinds::etcdcluster::spec::Spec;
use gatehouse::kinds::tdset::api::v1::TDSet;
use gatehouse::kinds::tdset::observation::{Bounds, FoundDeployment};
use gatehouse::kinds::tdset::resources as tdset;
use gatehouse::kinds::tdset::spec::Spec as TDSetSpec;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::{Value, json};

/// The image of the program in pods.
const IMAGE: &str = "gatehouse.dev/gatehouse:0.1.0";

/// The checksum of the text of [`full_assignment`]: another one runs every DatabaseMigration again.
const ASSIGNMENT: &str = "sha256:6ce6c38c1ef699041ba245f3ef93b635ead34a62bb10ef6ca8eb3dda1aa4e000";

/// The hash of its plan: another one takes each approval away.
const PLAN_HASH: &str = "28b81e04808cc984cbf76a96a1db4cf63d11e0cf318311dad7c68c3297a4682f";

/// Whom members trust, where they speak TLS.
const AUTHORITY: &[u8] = include_bytes!("../../src/kinds/etcdcluster/resources/certificates/authority.pem");

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(kind)
}

/// The objects of a kind, by the names of their files.
fn objects(kind: &str) -> BTreeMap<String, Value> {
    let files = fs::read_dir(folder(kind)).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let read = |path: PathBuf| {
        let object = serde_saphyr::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), object)
    };
    files.map(read).collect()
}

/// An unknown field would change nothing of what is built.
#[track_caller]
fn is_known(kind: &str, name: &str, object: &Value) {
    let schema = kinds::find_plural(kind).unwrap().schemas().of(Served::V1);
    assert_eq!((schema.unknown_fields(object), schema.faults(object, 10)), (vec![], vec![]), "{kind}/{name}");
}

#[track_caller]
fn is_as_before(kind: &str, name: &str, built: &Value) {
    let built = serde_json::to_string_pretty(built).unwrap() + "\n";
    kit::expected(&folder(kind).join(format!("{name}.json")), &built, |_| true);
}

fn all<const COUNT: usize>(manifests: [(&str, Option<Manifest>); COUNT]) -> Value {
    manifests.into_iter().map(|(name, made)| (name.to_owned(), json!(made.map(|made| made.object)))).collect()
}

/// The entries of the first three members, each with another purpose.
fn entries(template: Template) -> BTreeMap<Ordinal, ConfigEntry> {
    let entry = |purpose, member, pod: Option<&str>| ConfigEntry {
        purpose,
        member,
        volume: Uid("7d0c3b1e-volume".to_owned()),
        template,
        pod: pod.map(|pod| Uid(pod.to_owned())),
        raft_index: (purpose == Purpose::Force).then_some(1234),
        skips_check: false,
    };
    let member = Some(MemberId(0x91bc_3c39_8fb3_c146));
    BTreeMap::from([
        (Ordinal(0), entry(Purpose::Run, member, None)),
        (Ordinal(1), entry(Purpose::Join, member, Some("a7f1-pod"))),
        (Ordinal(2), entry(Purpose::Force, member, Some("b802-pod"))),
        (Ordinal(3), entry(Purpose::Seed, None, Some("c913-pod"))),
        (Ordinal(4), entry(Purpose::Retired, member, None)),
        (Ordinal(5), entry(Purpose::SetAside, member, None)),
    ])
}

fn made_of_cluster(cluster: &EtcdCluster) -> Value {
    let authorities = Certificate::read_all(AUTHORITY);
    let (spec, status) = (&Spec::resolve(cluster, &[]), cluster.status.as_ref());
    let trust = spec.tls.is_some().then(|| trust(&authorities, &authorities).unwrap());
    let template = spec.desired(trust).template;
    let data = etcd::config::data(spec, &entries(template), &[Ordinal(0), Ordinal(1), Ordinal(2)]);
    let [headless, client] = etcd::services::manifests(spec);
    let leaves = etcd::certificates::leaves(spec);
    let leaf = |leaf: &etcd::certificates::Leaf| json!([leaf.secret, leaf.common_name, leaf.names]);
    let before_upgrade = etcd::backup::job(spec, status, Version::new(7, 3), IMAGE);
    json!({
        "template": names::template_text(&template),
        "revision without trust": format!("{:016x}", spec.revision(None)),
        "objects": all([
            ("headless service", Some(headless)),
            ("client service", Some(client)),
            ("stateful set", Some(etcd::stateful_set::manifest(spec, &template, spec.replicas, IMAGE, false))),
            ("config map", Some(etcd::config::manifest(spec, &data))),
            ("disruption budget", Some(etcd::budget::manifest(spec, 2))),
            ("cron job", etcd::backup::cron_job(spec, status, false, IMAGE)),
            ("job before an upgrade", before_upgrade.map(|job| Manifest::of(&job))),
        ]),
        "secrets": {
            "authority": names::authority(spec.name()),
            "authority's name": etcd::certificates::authority_name(spec),
            "leaves": leaves.iter().flatten().map(leaf).collect::<Vec<_>>(),
            "mounted": spec.secrets().map(|secrets| json!(secrets.mounts())),
            "shown by the operator": spec.secrets().map(|secrets| &secrets.client),
            "root": spec.root_secret,
        },
    })
}

fn made_of_tdset(object: &TDSet) -> Value {
    let spec = TDSetSpec::resolve(object, Vec::new());
    let create = spec.create().unwrap();
    let deployment = tdset::deployment::deployment(&spec, create);
    let live: FoundDeployment = serde_json::from_value(deployment.object.clone()).unwrap();
    all([
        ("deployment", Some(deployment.clone())),
        ("new deployment", Some(tdset::deployment::with_count(deployment, 4))),
        ("count", Some(tdset::deployment::count(&live, 4))),
        ("service", tdset::service::service(&spec, create)),
        ("bounds", tdset::autoscaler::bounds(&Bounds::of(&autoscaler()), 3, Some(9)).and_then(merged)),
    ])
}

fn made_of_migration(object: &DatabaseMigration) -> Value {
    let spec = MigrationSpec::resolve(object, Vec::new());
    let mut observed = seen::Observed::default();
    for name in spec.config_maps() {
        let keys =
            ["001.sql", "002.sql", "002.down.sql"].map(|key| (key.to_owned(), key.as_bytes().to_vec()));
        observed.sources.insert(name.to_owned(), keys.into());
    }
    let texts = migration::assignment::texts(&spec, &observed).unwrap();
    let planned = |purpose| migration::Planned {
        key: migration::assignment::key(&spec, &texts, purpose, None),
        number: 7,
        attempt: 2,
        purpose,
        resolve: None,
        approved: migration::assignment::hash_of_plan(&spec, &texts),
    };
    let (plan, apply) = (planned(seen::Purpose::Plan), planned(seen::Purpose::Apply));
    all([
        ("config map", Some(migration::snapshot::manifest(&spec, &texts, &apply))),
        ("job", Some(migration::job::manifest(&spec, &texts, &apply, IMAGE))),
        ("job that plans", Some(migration::job::manifest(&spec, &texts, &plan, IMAGE))),
    ])
}

/// What is merged into an object.
fn merged(write: ApiWrite) -> Option<Manifest> {
    if let ApiWrite::Merge(merge) = write { Some(merge.manifest) } else { None }
}

/// The autoscaler of a user.
fn autoscaler() -> HorizontalPodAutoscaler {
    let object = json!({
        "metadata": {"name": "shop", "namespace": "shop", "uid": "2c4d6e8f"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "shop"}, "minReplicas": 1, "maxReplicas": 5},
    });
    serde_json::from_value(object).unwrap()
}

#[test]
fn what_is_made_of_an_etcdcluster_stays_the_same() {
    let objects = objects("etcdclusters");
    assert!(objects.len() >= 6, "{:?}", objects.keys());
    for (name, object) in objects {
        is_known("etcdclusters", &name, &object);
        let cluster: EtcdCluster = serde_json::from_value(object).unwrap();
        is_as_before("etcdclusters", &name, &made_of_cluster(&cluster));
    }
}

#[test]
fn what_is_made_of_a_tdset_stays_the_same() {
    let objects = objects("tdsets");
    assert!(objects.len() >= 2, "{:?}", objects.keys());
    for (name, object) in objects {
        is_known("tdsets", &name, &object);
        let object: TDSet = serde_json::from_value(object).unwrap();
        is_as_before("tdsets", &name, &made_of_tdset(&object));
    }
}

#[test]
fn what_is_made_of_a_databasemigration_stays_the_same() {
    let objects = objects("databasemigrations");
    assert!(objects.len() >= 3, "{:?}", objects.keys());
    for (name, object) in objects {
        is_known("databasemigrations", &name, &object);
        let object: DatabaseMigration = serde_json::from_value(object).unwrap();
        is_as_before("databasemigrations", &name, &made_of_migration(&object));
    }
}

/// An assignment in which each field is given.
fn full_assignment() -> Value {
    let checksum = format!("sha256:{}", "0123456789abcdef".repeat(4));
    json!({
        "version": 1,
        "database": {"engine": "MariaDB", "host": "db.shop.svc", "port": 3307, "name": "/database/a.db",
            "file": "claim/a.db", "tls": "VerifyCA"},
        "history": {"schema": "admin", "table": "history", "series": "orders"},
        "object": {"namespace": "shop", "name": "orders", "uid": "8a0b"},
        "run": {"uid": "8a0b.7", "attempt": 2},
        "mode": "Revert",
        "scripts": [
            {"id": "001", "kind": "Data", "up": {"file": "000.up.sql", "secret": true},
                "down": {"file": "000.down.sql"}, "checksum": checksum, "planned": checksum,
                "plannedDown": checksum, "transaction": "None", "idempotent": true,
                "timeouts": {"statement": "1m", "lock": "500ms"}},
            {"id": "002", "kind": "Schema", "up": {"file": "001.up.sql"}, "transaction": "Required",
                "idempotent": false, "timeouts": {}},
            {"id": "003", "kind": "Check", "up": {"file": "002.up.sql"}, "transaction": "Required",
                "idempotent": false, "timeouts": {}},
        ],
        "baseline": "001",
        "existingTables": "Refuse",
        "outOfOrder": "Allow",
        "onFailure": "RevertThisRun",
        "acceptChecksums": {"001": checksum},
        "resolve": {"id": "001", "as": "applied"},
        "lockWait": "90s",
        "approvedPlanHash": "e".repeat(64),
    })
}

#[test]
fn an_assignment_and_the_hash_of_its_plan_stay_the_same() {
    let written = serde_json::to_string(&full_assignment()).unwrap();
    let read = Assignment::read(&written).unwrap();
    assert_eq!(json!(read), full_assignment());
    let text = serde_json::to_string(&read).unwrap();
    assert_eq!(assignment::checksum(text.as_bytes()), ASSIGNMENT);
    let scripts = read.scripts.iter().map(|script| assignment::Planned {
        id: &script.id,
        kind: script.kind,
        transaction: script.transaction,
        checksum: &script.id,
        down: script.down.as_ref().map(|down| down.file.as_str()),
    });
    assert_eq!(assignment::plan_hash(&read, scripts), PLAN_HASH);
}
