//! Who may import whom.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::imports::Imports;
use super::sources::{Source, below, root};

/// The rooms below `src`, and the others that each may import. The longest name that a path begins with is its room.
///
/// `KIND` stands for the folder of each kind; a kind imports none of another.
const ROOMS: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("api/checksum", &[]),
    ("api/script", &["api/checksum"]),
    ("rbac", &[]),
    ("counted", &[]),
    ("properties", &["api", "kinds"]),
    ("runtime", &["rbac"]),
    ("certs", &["rbac", "runtime"]),
    ("certs/certificate", &[]),
    ("certs/mint", &["certs/certificate", "certs/rotate"]),
    ("certs/rotate", &["certs/certificate"]),
    ("certs/rotate/steps", &[]),
    ("controllers", &["api", "rbac", "runtime"]),
    ("controllers/manifest", &["api", "controllers/deviation"]),
    ("controllers/deviation", &["api"]),
    ("controllers/action", &["controllers"]),
    ("controllers/difference", &[]),
    ("kinds", &["api", "kinds/KIND/api"]),
    ("kinds/KIND", &["api", "certs", "controllers", "rbac", "runtime"]),
    ("kinds/KIND/api", &["api", "kinds/KIND/api/transaction", "kinds/KIND/sql"]),
    ("kinds/KIND/sql", &["kinds/KIND/api"]),
    ("kinds/KIND/api/transaction", &[]),
    ("kinds/KIND/etcd", &[]),
    ("kinds/KIND/agent", &[]),
    ("kinds/KIND/assignment", &["api", "kinds/KIND/api"]),
    ("kinds/KIND/backup", &["kinds/KIND/etcd", "runtime"]),
    ("kinds/KIND/result", &["kinds/KIND/api", "kinds/KIND/assignment"]),
    (
        "kinds/KIND/runner",
        &[
            "api/checksum",
            "api/script",
            "kinds/KIND/api",
            "kinds/KIND/assignment",
            "kinds/KIND/result",
            "kinds/KIND/sql",
            "runtime",
        ],
    ),
    ("kinds/KIND/names", &["controllers", "kinds/KIND/api", "kinds/KIND/observation"]),
    (
        "kinds/KIND/observation",
        &[
            "api",
            "controllers/action",
            "controllers/difference",
            "controllers/manifest",
            "kinds/KIND/agent",
            "kinds/KIND/api",
            "kinds/KIND/names",
            "kinds/KIND/result",
        ],
    ),
    (
        "kinds/KIND/spec",
        &["api", "kinds/KIND/api", "kinds/KIND/assignment", "kinds/KIND/names", "kinds/KIND/observation"],
    ),
    (
        "kinds/KIND/resources",
        &[
            "api",
            "certs/certificate",
            "certs/mint",
            "controllers",
            "kinds/KIND/agent",
            "kinds/KIND/api",
            "kinds/KIND/assignment",
            "kinds/KIND/names",
            "kinds/KIND/observation",
            "kinds/KIND/spec",
        ],
    ),
    (
        "kinds/KIND/actions",
        &["certs/rotate/steps", "controllers", "kinds/KIND/names", "kinds/KIND/observation"],
    ),
    (
        "kinds/KIND/plan",
        &[
            "api",
            "certs/rotate/steps",
            "controllers",
            "kinds/KIND/actions",
            "kinds/KIND/api",
            "kinds/KIND/names",
            "kinds/KIND/observation",
            "kinds/KIND/resources",
            "kinds/KIND/result",
            "kinds/KIND/spec",
        ],
    ),
    (
        "kinds/KIND/status",
        &[
            "api",
            "controllers",
            "kinds/KIND/actions",
            "kinds/KIND/api",
            "kinds/KIND/names",
            "kinds/KIND/observation",
            "kinds/KIND/plan",
            "kinds/KIND/resources",
            "kinds/KIND/spec",
        ],
    ),
    ("review", &["api", "kinds"]),
    ("server", &["api", "kinds", "review", "runtime"]),
    ("install", &["api", "certs", "controllers/deviation", "kinds", "rbac", "review", "runtime", "storage"]),
    ("storage", &["runtime"]),
    ("storage/observation", &["storage/plan/checkpoint", "storage/plan/condition"]),
    ("storage/plan/condition", &[]),
    ("storage/plan/tally", &[]),
    ("storage/plan", &["storage/observation"]),
    ("storage/plan/checkpoint", &["storage/plan/tally"]),
    ("cli", &["*"]),
    ("main", &["*"]),
];

/// What a file imports all the same, and why. What it does not import any more has to leave the list.
const UPWARD: &[(&str, &str, &str)] = &[];

/// Files that come back to themselves. One that does so no more has to leave the list.
const IN_CIRCLES: &[&str] = &[];

/// The folders of the kinds: one that has no row in the table yet keeps the borders all the same.
fn kinds() -> Vec<String> {
    let folders = fs::read_dir(root().join("src/kinds")).unwrap().map(Result::unwrap);
    folders.map(|folder| folder.file_name().into_string().unwrap()).collect()
}

/// The room of a file, and the kind that it is of.
fn room(path: &Path) -> (&'static str, Option<String>) {
    let below = path.strip_prefix("src").unwrap_or(path).with_extension("");
    let below = below.to_string_lossy();
    let kind = kinds().into_iter().find(|kind| below.split('/').any(|part| part == kind));
    let general =
        kind.as_ref().map_or_else(|| below.to_string(), |kind| below.replace(kind.as_str(), "KIND"));
    let is_in = |room: &str| general == room || general.starts_with(&format!("{room}/"));
    let rooms = ROOMS.iter().map(|(room, _)| *room).filter(|room| is_in(room));
    let room = rooms.max_by_key(|room| room.len()).unwrap_or_else(|| panic!("{below} is in no room"));
    (room, kind.filter(|_| room.contains("KIND")))
}

/// Whether what is imported from one room lies in another. A room of a kind lies in none that all kinds share.
fn lies_in(imported: &str, room: &str) -> bool {
    let is_of_kind = |room: &str| room.contains("KIND");
    imported == room || imported.starts_with(&format!("{room}/")) && is_of_kind(imported) == is_of_kind(room)
}

/// Rooms without a file, and what a room may import and does not.
fn unused(imports: &Imports) -> Vec<String> {
    let of_rooms = imports.files().filter(|path| !path.ends_with("src/lib.rs"));
    let files: BTreeSet<_> = of_rooms.map(|path| room(path).0).collect();
    let pairs: BTreeSet<_> = imports.pairs().map(|(from, to)| (room(from).0, room(to).0)).collect();
    let empty = ROOMS.iter().filter(|(room, _)| !files.contains(room));
    let empty = empty.map(|(room, _)| format!("{room}: has no file: no room"));
    let entries = ROOMS.iter().flat_map(|(room, may)| may.iter().map(move |entry| (*room, *entry)));
    let is_used = |(room, entry): &(&str, &str)| {
        *entry == "*" || pairs.iter().any(|(from, to)| from == room && lies_in(to, entry))
    };
    let idle = entries.filter(|entry| !is_used(entry));
    empty.chain(idle.map(|(room, entry)| format!("{room}: imports nothing of {entry}: no entry"))).collect()
}

/// Imports that run in the wrong direction, and exceptions that are none.
fn upward(imports: &Imports, exceptions: &[(&str, &str, &str)]) -> Vec<String> {
    let mut used = Vec::new();
    let mut broken = Vec::new();
    for (from, to) in imports.pairs() {
        let ((room, kind), (imported, of)) = (self::room(from), self::room(to));
        let may = ROOMS.iter().find(|(name, _)| *name == room).map_or(&[][..], |(_, may)| *may);
        let is_within = lies_in(imported, room);
        let is_of_another = kind.is_some() && of.is_some() && kind != of;
        if may == ["*"] || (!is_of_another && (is_within || may.iter().any(|room| lies_in(imported, room)))) {
            continue;
        }
        let excepted = |(path, room, _): &(&str, &str, &str)| from == Path::new(path) && imported == *room;
        match exceptions.iter().position(excepted) {
            Some(which) => used.push(which),
            None => broken.push(format!("{}: imports {} ({imported})", from.display(), to.display())),
        }
    }
    let unused = exceptions.iter().enumerate().filter(|(which, _)| !used.contains(which));
    let unused = unused.map(|(_, (path, room, _))| format!("{path}: imports {room} no more: no exception"));
    broken.into_iter().chain(unused).collect()
}

/// Circles of files that are not on the list, and files on it that are in none.
fn circles(imports: &Imports, known: &[&str]) -> Vec<String> {
    let circles = imports.circles();
    let is_known = |path: &&Path| known.iter().any(|known| *path == Path::new(known));
    let is_new = |circle: &&Vec<&Path>| !circle.iter().all(is_known);
    let new = circles.iter().filter(is_new).map(|circle| format!("a circle: {circle:?}"));
    let is_in_one = |known: &str| circles.iter().flatten().any(|path| *path == Path::new(known));
    let unused = known.iter().filter(|known| !is_in_one(known));
    new.chain(unused.map(|path| format!("{path}: is in no circle: no exception"))).collect()
}

#[test]
fn imports_run_in_one_direction() {
    let imports = Imports::of(&below(&["src"]));
    let broken = upward(&imports, UPWARD);
    assert!(broken.is_empty(), "{broken:#?}");
    let broken = circles(&imports, IN_CIRCLES);
    assert!(broken.is_empty(), "{broken:#?}");
    let unused = unused(&imports);
    assert!(unused.is_empty(), "{unused:#?}");
}

#[test]
fn a_room_that_may_import_what_it_does_not_is_told() {
    let files = [
        ("src/kinds/tdset/spec.rs", "use crate::api::Kind; use crate::kinds::tdset::api::v1::Replicas;"),
        ("src/kinds/tdset/api/v1.rs", "pub struct Replicas;"),
        ("src/api/mod.rs", "pub struct Kind;"),
    ];
    let told = unused(&Imports::of(&files.map(|(path, text)| Source::planted(path, text))));
    let of_spec: Vec<_> = told.iter().filter(|told| told.starts_with("kinds/KIND/spec: ")).collect();
    assert_eq!(
        of_spec,
        [
            "kinds/KIND/spec: imports nothing of kinds/KIND/assignment: no entry",
            "kinds/KIND/spec: imports nothing of kinds/KIND/names: no entry",
            "kinds/KIND/spec: imports nothing of kinds/KIND/observation: no entry",
        ]
    );
    assert!(told.contains(&"server: has no file: no room".to_owned()), "{told:#?}");
}

#[test]
fn an_import_in_the_wrong_direction_is_found() {
    let told = |files: &[(&str, &str)], exceptions: &[(&str, &str, &str)]| {
        let files: Vec<_> = files.iter().map(|(path, text)| Source::planted(path, text)).collect();
        upward(&Imports::of(&files), exceptions)
    };
    let lib = ("src/lib.rs", "pub mod api;");
    let one = (
        "src/kinds/tdset/observation/mod.rs",
        "use crate::controllers::object_metrics::ObjectMetrics; fn f() { ObjectMetrics::new() }",
    );
    let board = ("src/controllers/object_metrics.rs", "");
    let broken =
        "src/kinds/tdset/observation/mod.rs: imports src/controllers/object_metrics.rs (controllers)";
    assert_eq!(told(&[one, board], &[]), [broken]);
    assert_eq!(told(&[one, board], &[(one.0, "controllers", "planted")]), [""; 0]);
    let other = ("src/kinds/tdset/plan/mod.rs", "use crate::kinds::etcdcluster::plan::Plan;");
    let plan = ("src/kinds/etcdcluster/plan/mod.rs", "pub struct Plan;");
    assert_eq!(told(&[other, plan], &[]).len(), 1, "another kind");
    let through = ("src/api/mod.rs", "pub use crate::kinds::KINDS;");
    let kinds = ("src/kinds.rs", "use crate::api::KINDS;");
    assert_eq!(told(&[lib, through, kinds], &[]), ["src/api/mod.rs: imports src/kinds.rs (kinds)"]);
    assert_eq!(
        told(&[kinds, ("src/api/mod.rs", "")], &[("src/kinds.rs", "cli", "planted")]),
        ["src/kinds.rs: imports cli no more: no exception"]
    );
}

#[test]
fn a_circle_of_files_is_found_but_none_of_a_module_and_its_part() {
    let files = |there: &str, back: &str| {
        [
            Source::planted("src/api/a.rs", there),
            Source::planted("src/api/b.rs", back),
            Source::planted("src/api/mod.rs", "mod a; mod b; fn f() { a::g() } pub struct A;"),
        ]
    };
    let told = |there: &str, back: &str, known: &[&str]| circles(&Imports::of(&files(there, back)), known);
    let circle = told("use super::b::B;", "fn f() { super::a::g() }", &[]);
    assert_eq!(circle, [r#"a circle: ["src/api/a.rs", "src/api/b.rs"]"#]);
    assert_eq!(told("use super::b::B;", "use super::A;", &[]), [""; 0]);
    let known = ["src/api/a.rs", "src/api/b.rs"];
    assert_eq!(told("use super::b::B;", "use super::a::A;", &known), [""; 0]);
    assert_eq!(told("", "", &known[..1]), ["src/api/a.rs: is in no circle: no exception"]);
}
