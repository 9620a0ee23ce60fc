//! The model of etcd, held against what real etcd did: sequences that were run on 3.5, 3.6 and 3.7 are kept under
//! tests/traces/etcd, and each answer in them has to be one that the model allows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gatehouse::kinds::etcdcluster::etcd::Refusal;

use crate::mutants::{Kind, Mistake};
use kit::membership::Cluster;
use kit::membership::belief::Rules;
use kit::membership::trace::{Step, Trace};

fn kept() -> Vec<(PathBuf, Trace)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/etcd");
    let entries = std::fs::read_dir(folder).expect("traces").map(|entry| entry.expect("a trace").path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "ndjson")).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), Trace::read(&path))).collect()
}

/// The first line that a model does not allow.
fn refuted(traces: &[(PathBuf, Trace)], rules: &Rules) -> Option<String> {
    traces.iter().find_map(|(path, trace)| {
        let unexplained = trace.replay(rules).err()?;
        Some(format!("{}: {unexplained}", path.display()))
    })
}

#[test]
fn what_real_etcd_did_is_what_the_model_allows() {
    let traces = kept();
    let steps: usize = traces.iter().map(|(_, trace)| trace.lines.len()).sum();
    println!("{} sequences, {steps} steps", traces.len());
    for minor in ["3.5.", "3.6.", "3.7."] {
        assert!(traces.iter().any(|(_, trace)| trace.release.starts_with(minor)), "none of {minor}");
    }
    assert_eq!(refuted(&traces, &Cluster::outcomes), None);
    for (path, trace) in traces {
        assert_eq!(
            trace.text(),
            std::fs::read_to_string(&path).expect("a trace"),
            "{} was altered",
            path.display()
        );
    }
}

/// A model that allows everything is never wrong.
#[test]
fn mostly_one_answer_alone_is_allowed() {
    let (mut asked, mut alone) = (0, 0);
    for (_, trace) in kept() {
        let mut belief = trace.start(&Cluster::outcomes);
        for line in &trace.lines {
            if let Some((member, call)) = line.step.call() {
                asked += 1;
                alone += usize::from(belief.allowed(member, call).len() == 1);
            }
            line.explain(&mut belief).expect("what the model allows");
        }
    }
    println!("of {asked} answers, {alone} were the only one allowed");
    assert!(alone * 3 > asked * 2);
}

/// A model that is never contradicted because nothing was asked shows nothing.
#[test]
fn every_kind_of_call_was_done_and_refused_for_each_reason() {
    let mut seen = BTreeSet::new();
    for line in kept().iter().flat_map(|(_, trace)| &trace.lines) {
        let kind = match line.step {
            Step::Add { .. } => "add",
            Step::Promote { .. } => "promote",
            Step::Remove { .. } => "remove",
            Step::MoveLeader { .. } => "move",
            Step::Write { .. } => "write",
            Step::List { .. } => "list",
            _ => continue,
        };
        let answer = serde_json::to_value(line.answer).expect("it can be written");
        seen.insert((kind, answer.as_str().unwrap_or_default().to_owned()));
    }
    let wanted = [
        ("add", "Done"),
        ("add", "Unhealthy"),
        ("add", "PeerUrlExists"),
        ("add", "TooManyLearners"),
        ("add", "NotSupportedForLearner"),
        ("promote", "Done"),
        ("promote", "LearnerNotReady"),
        ("promote", "MemberNotLearner"),
        ("promote", "MemberNotFound"),
        ("remove", "Done"),
        ("remove", "Unhealthy"),
        ("remove", "NotEnoughStartedMembers"),
        ("remove", "MemberNotFound"),
        ("move", "Done"),
        ("move", "NotLeader"),
        ("move", "BadLeaderTransferee"),
        ("move", "Unsure"),
        ("write", "Done"),
        ("write", "NotSupportedForLearner"),
        ("write", "Unsure"),
        ("list", "Done"),
        ("list", "Unsure"),
    ];
    let missing: Vec<_> =
        wanted.into_iter().filter(|(kind, word)| !seen.contains(&(*kind, (*word).to_owned()))).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}, but: {seen:?}");
}

#[test]
fn wrong_models_are_refuted_by_what_real_etcd_did() {
    let traces = kept();
    let mistakes = [
        // It lets a voter go that the quorum needs.
        Mistake::Forgets(Kind::Remove, Refusal::Unhealthy),
        Mistake::Forgets(Kind::Remove, Refusal::NotEnoughStartedMembers),
        // It promotes a learner that has nothing yet.
        Mistake::Forgets(Kind::Promote, Refusal::LearnerNotReady),
        Mistake::Forgets(Kind::Add, Refusal::Unhealthy),
        Mistake::Forgets(Kind::Add, Refusal::TooManyLearners),
        Mistake::Forgets(Kind::Add, Refusal::PeerUrlExists),
        Mistake::Forgets(Kind::MoveLeader, Refusal::BadLeaderTransferee),
        Mistake::AddsOnlyIfAllRun,
        Mistake::PromotesOnlyWhoRuns,
        Mistake::RemovesOnlyIfOthersRun,
        Mistake::AddsVoters,
        Mistake::KeepsTheRemoved,
        Mistake::AnyoneMovesTheLeader,
        Mistake::HearsOfOthers,
        Mistake::NeedsNoQuorum,
        Mistake::AgreesWithTheNew,
    ];
    let believed: Vec<_> = mistakes
        .into_iter()
        .filter(|mistake| {
            let refuted = refuted(&traces, &mistake.rules());
            println!("{mistake:?}: {}", refuted.as_deref().unwrap_or("nothing speaks against it"));
            refuted.is_none()
        })
        .collect();
    assert!(believed.is_empty(), "nothing speaks against {believed:?}");
}
