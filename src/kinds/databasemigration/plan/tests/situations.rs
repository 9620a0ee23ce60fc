//! What users see of a DatabaseMigration that needs attention.

use super::*;
use crate::controllers::action::RefusedWrite;
use crate::controllers::situations::{self, Situation};
use crate::kinds::databasemigration::assignment::checksum;
use crate::kinds::databasemigration::metrics::Line;
use crate::kinds::databasemigration::runner::{edited, unknown};

fn situation(name: &'static str, cluster: &Cluster, plan: &Plan) -> Situation {
    let mut object = json!(cluster.object);
    object["metadata"]["name"] = name.into();
    object["status"] = json!(plan.status);
    let page = situations::page("gatehouse_databasemigration", name, Line::of(&plan.status));
    let events = cluster.events.iter().rev().find(|event| event.warning).cloned().into_iter().collect();
    Situation { object, events, page, condition: "Ready", series: "gatehouse_databasemigration_problem" }
}

fn ended(name: &'static str, change: impl FnOnce(&mut RunResult)) -> Situation {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    let plan = cluster.end_as(change);
    situation(name, &cluster, &plan)
}

fn blocked_by(blocked: result::Blocked) -> impl FnOnce(&mut RunResult) {
    move |result| {
        result.outcome = result::Outcome::Blocked;
        result.blocked = Some(blocked);
    }
}

fn wrong_password(result: &mut RunResult) {
    result.outcome = result::Outcome::Failed;
    (result.server, result.plan, result.applied_count) = (None, None, None);
    let said = "password authentication failed for user \"[redacted]\"";
    result.last_error = Some(result::LastError {
        id: None,
        statement: None,
        sql_state: Some("28P01".to_owned()),
        class: Class::Authentication,
        message: format!("failed to connect to PostgreSQL at pg:5432: {said}"),
    });
}

/// A run that reads the history finds one of two scripts applied.
fn reads_one() -> Ending {
    Ending::Said(Box::new(said(result::Outcome::Planned, 1, &["002"])))
}

fn in_a_ring() -> (Cluster, Plan) {
    let mut cluster = Cluster::new(&json!({"spec": {"requires": [{"name": "base"}]}}));
    cluster.observed.ring =
        ["ring-of-requirements", "base", "ring-of-requirements"].map(str::to_owned).to_vec();
    let waiting = Required { is_waiting: true, applies: true, ..Required::default() };
    cluster.observed.required.insert("base".to_owned(), waiting);
    let plan = cluster.settle();
    (cluster, plan)
}

fn lacking() -> (Cluster, Plan) {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.end_as(|_| ());
    cluster.later(25.hours());
    cluster.settle();
    let plan = cluster.end(reads_one());
    (cluster, plan)
}

/// All of them.
pub fn all() -> Vec<Situation> {
    let mut approval = Cluster::new(&json!({"spec": {"approval": {"required": true}}}));
    approval.settle();
    let awaiting = approval.end_as(|result| *result = said(result::Outcome::Planned, 0, &["001", "002"]));
    let mut missing = Cluster::new(&json!({}));
    missing.observed.sources.clear();
    let not_found = missing.settle();
    let mut refused = Cluster::new(&json!({}));
    let why = "jobs.batch \"shop\" is forbidden: exceeded quota: count/jobs.batch=0";
    refused.observed.refused =
        Some(RefusedWrite { action: "databasemigration.create-job".to_owned(), why: why.to_owned() });
    let write_refused = refused.step(0);
    let mut forbidden = Cluster::new(&json!({}));
    let why = "failed to create jobs default/right-missing: Forbidden (403): User \
               \"system:serviceaccount:gatehouse-system:gatehouse\" cannot create resource \"jobs\" in API group \
               \"batch\" in the namespace \"default\"";
    forbidden.observed.refused =
        Some(RefusedWrite { action: "databasemigration.create-job".to_owned(), why: why.to_owned() });
    let right_missing = forbidden.step(0);
    let mut second = super::series::cluster();
    second.observed.peers = vec![super::series::older()];
    let other_migration = second.settle();
    let mut not_started = Cluster::new(&json!({}));
    not_started.settle();
    let waits = not_started.waits(
        "its container is not made after 30 s, as where what it mounts is missing (Secret db with the keys username, \
         password): see kubectl describe pod shop-1-x",
    );
    let mut late = Cluster::new(&json!({}));
    late.settle();
    late.end(Ending::Late(None));
    let too_late = late.end(reads_one());
    let (ring, in_a_ring) = in_a_ring();
    let (lacking, lacks) = lacking();
    let mut reverting = super::deletion::applied(&json!({}));
    reverting.edit(&json!({"metadata": {"deletionTimestamp": "2026-11-24T12:00:00Z"}}));
    reverting.settle();
    let not_taken_back = reverting.end_as(failure(Class::Constraint));
    vec![
        ended("script-failed", failure(Class::Constraint)),
        ended("in-doubt", |result| {
            result.outcome = result::Outcome::InDoubt;
            result.in_doubt =
                Some(result::InDoubt { id: "002".to_owned(), statement: 1, run: Some("r".to_owned()) });
        }),
        ended("edited-script", blocked_by(edited("001", &checksum(b"as applied"), &checksum(b"as edited")))),
        ended("diverged", blocked_by(unknown("001", &checksum(b"as applied")))),
        ended("wrong-password", wrong_password),
        situation("not-started", &not_started, &waits),
        situation("too-late", &late, &too_late),
        situation("not-taken-back", &reverting, &not_taken_back),
        situation("awaiting-approval", &approval, &awaiting),
        situation("script-missing", &missing, &not_found),
        situation("second-of-a-series", &second, &other_migration),
        situation("ring-of-requirements", &ring, &in_a_ring),
        situation("scripts-missing", &lacking, &lacks),
        situation("write-refused", &refused, &write_refused),
        situation("right-missing", &forbidden, &right_missing),
    ]
}
