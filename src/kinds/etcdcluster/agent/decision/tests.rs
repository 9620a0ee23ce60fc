//! Every purpose on every state of a volume, for the pod that is named and for another.

use super::*;

const OWN: PodIdentity<'static> =
    PodIdentity { pod: "pod", template: "3.6.16-1", cluster: "cluster", is_in_memory: false };

fn entry(purpose: Purpose, pod: Option<&str>) -> Entry {
    Entry {
        purpose,
        member: Some("a1".to_owned()),
        volume: "claim".to_owned(),
        template: "3.6.16-1".to_owned(),
        pod: pod.map(ToOwned::to_owned),
        raft_index: None,
        skips_check: false,
    }
}

fn marked(stage: Stage, data: Data) -> Volume {
    let marker = Marker {
        volume: "claim".to_owned(),
        cluster: "cluster".to_owned(),
        member: None,
        pod: "before".to_owned(),
        stage,
        forced: None,
    };
    Volume { marker: Some(marker), data }
}

fn altered(stage: Stage, data: Data, alter: impl Fn(&mut Marker)) -> Volume {
    let mut volume = marked(stage, data);
    volume.marker.iter_mut().for_each(alter);
    volume
}

fn empty() -> Volume {
    Volume { marker: None, data: Data::Empty }
}

/// The states of a volume, by what follows for those who may begin (Seed, Join) and those who go on (Run, Force).
fn states() -> Vec<(&'static str, Volume, &'static str, &'static str)> {
    let other_member = |marker: &mut Marker| marker.member = Some("b2".to_owned());
    vec![
        ("never used", empty(), "begin", "DataLost"),
        ("begun", marked(Stage::Begun, Data::Empty), "begin", "DataLost"),
        ("begun, with a folder", marked(Stage::Begun, Data::Folder), "begin", "DataLost"),
        ("started in vain", marked(Stage::Started, Data::Folder), "begin", "DataLost"),
        ("started, folder gone", marked(Stage::Started, Data::Empty), "DataLost", "DataLost"),
        ("started and written", marked(Stage::Started, Data::Log), "start", "start"),
        ("written", marked(Stage::Written, Data::Log), "start", "start"),
        ("written, log gone", marked(Stage::Written, Data::Folder), "DataLost", "DataLost"),
        ("written, all gone but the marker", marked(Stage::Written, Data::Empty), "DataLost", "DataLost"),
        (
            "a folder without a marker",
            Volume { marker: None, data: Data::Folder },
            "DataForeign",
            "DataForeign",
        ),
        ("data without a marker", Volume { marker: None, data: Data::Log }, "DataForeign", "DataForeign"),
        (
            "of another volume",
            altered(Stage::Written, Data::Log, |marker| marker.volume = "other".to_owned()),
            "DataForeign",
            "DataForeign",
        ),
        (
            "of another cluster, emptied",
            altered(Stage::Written, Data::Empty, |marker| marker.cluster = "other".to_owned()),
            "DataForeign",
            "DataForeign",
        ),
        ("of another member", altered(Stage::Written, Data::Log, other_member), "DataForeign", "DataForeign"),
        (
            "begun by another member that never wrote",
            altered(Stage::Started, Data::Folder, other_member),
            "begin",
            "DataLost",
        ),
    ]
}

/// A decision in a word: `begin` on what may be empty, `start` on a log.
fn word(decision: &Decision, volume: &Volume) -> String {
    match decision {
        Decision::Wait(why) => format!("{why:?}"),
        Decision::Start(_) if volume.data == Data::Log => "start".to_owned(),
        Decision::Start(_) => "begin".to_owned(),
        Decision::Refuse(cause, _) => cause.to_string(),
    }
}

const PURPOSES: [Purpose; 6] =
    [Purpose::Seed, Purpose::Join, Purpose::Run, Purpose::Force, Purpose::Retired, Purpose::SetAside];

#[test]
fn every_purpose_on_every_volume_in_every_pod() {
    for (state, volume, beginner, veteran) in states() {
        for purpose in PURPOSES {
            for pod in [Some("pod"), Some("other"), None] {
                let wanted = match purpose {
                    Purpose::Retired | Purpose::SetAside => "Stopped",
                    Purpose::Force if veteran == "start" && pod != Some("pod") => "NotNamed",
                    Purpose::Run | Purpose::Force => veteran,
                    Purpose::Seed | Purpose::Join if beginner == "begin" && pod != Some("pod") => "OtherPod",
                    Purpose::Seed | Purpose::Join => beginner,
                };
                let decision = decide(Moment::First, &OWN, Some(&entry(purpose, pod)), &volume);
                assert_eq!(word(&decision, &volume), wanted, "{state}: {purpose:?}, begun by {pod:?}");
            }
        }
    }
}

#[test]
fn etcds_container_decides_alike_but_for_a_volume_that_has_lost_its_marker() {
    for (state, volume, ..) in states() {
        for purpose in PURPOSES {
            let entry = entry(purpose, Some("pod"));
            let [first, each] =
                [Moment::First, Moment::Each].map(|moment| decide(moment, &OWN, Some(&entry), &volume));
            if volume == empty() && matches!(purpose, Purpose::Seed | Purpose::Join) {
                assert_eq!(word(&each, &volume), "DataLost", "{state}: {purpose:?}");
            } else {
                assert_eq!(each, first, "{state}: {purpose:?}");
            }
        }
    }
}

#[test]
fn who_is_not_spoken_to_waits_whatever_is_on_the_volume() {
    let other = Entry { template: "3.5.9-1".to_owned(), ..entry(Purpose::Run, None) };
    for (state, volume, ..) in states() {
        let decided = |entry| decide(Moment::First, &OWN, entry, &volume);
        assert_eq!(decided(None), Decision::Wait(Why::NoEntry), "{state}");
        assert_eq!(decided(Some(&other)), Decision::Wait(Why::OtherTemplate), "{state}");
    }
}

#[test]
fn data_in_memory_begin_with_the_pod_whose_they_are() {
    let own = PodIdentity { is_in_memory: true, ..OWN };
    let told = |volume: &str, purpose| Entry { volume: volume.to_owned(), ..entry(purpose, Some("pod")) };
    let decided = |entry: &Entry| word(&decide(Moment::First, &own, Some(entry), &empty()), &empty());
    assert_eq!(decided(&told("pod", Purpose::Join)), "begin");
    assert_eq!(decided(&told("before", Purpose::Join)), "OtherPod");
    assert_eq!(decided(&told("before", Purpose::Run)), "DataLost");
}

#[test]
fn a_mark_never_says_less_than_before() {
    let marked_by = |entry: &Entry, volume: &Volume| match decide(Moment::First, &OWN, Some(entry), volume) {
        Decision::Start(marker) => marker,
        other => panic!("{other:?}"),
    };
    let join = entry(Purpose::Join, Some("pod"));
    let fresh = marked_by(&join, &empty());
    let expected = Marker {
        volume: "claim".to_owned(),
        cluster: "cluster".to_owned(),
        member: Some("a1".to_owned()),
        pod: "pod".to_owned(),
        stage: Stage::Begun,
        forced: None,
    };
    assert_eq!(fresh, expected);
    let in_vain = marked_by(&join, &marked(Stage::Started, Data::Folder));
    assert_eq!((in_vain.stage, in_vain.pod.as_str()), (Stage::Started, "before"));
    let named = altered(Stage::Started, Data::Log, |marker| marker.member = Some("a1".to_owned()));
    let nameless = Entry { member: None, ..entry(Purpose::Run, None) };
    let written = marked_by(&nameless, &named);
    assert_eq!((written.stage, written.member.as_deref()), (Stage::Written, Some("a1")));
}

#[test]
fn a_mark_is_read_as_it_was_written() {
    let Volume { marker: Some(marker), .. } = marked(Stage::Written, Data::Log) else { unreachable!() };
    let text = serde_json::to_string(&marker).unwrap();
    assert_eq!(text, r#"{"volume":"claim","cluster":"cluster","pod":"before","stage":"Written"}"#);
    assert_eq!(serde_json::from_str::<Marker>(&text).unwrap(), marker);
}
