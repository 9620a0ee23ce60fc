use super::*;

fn listing(files: &[&str], folders: &[(&str, &[&str])]) -> Listing {
    let mut files: Vec<_> = files.iter().map(|name| (*name).to_owned()).collect();
    files.sort();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let folders = folders.iter().map(|(folder, scripts)| ((*folder).to_owned(), names(scripts)));
    Listing { files, folders: folders.collect() }
}

fn ids(files: &[&str]) -> Vec<String> {
    let scripts = listing(files, &[]).scripts(Engine::PostgreSQL).unwrap();
    scripts.found.into_iter().map(|found| found.id).collect()
}

#[track_caller]
fn refused(files: &[&str], parts: &[&str]) {
    let error = listing(files, &[]).scripts(Engine::PostgreSQL).unwrap_err();
    for part in parts {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn scripts_come_in_the_order_of_their_numbers() {
    assert_eq!(ids(&["1_a.sql", "10_c.sql", "2_b.sql"]), ["1_a", "2_b", "10_c"]);
    assert_eq!(
        ids(&["V10__c.sql", "V1__a.sql", "V1_2__y.sql", "V1.1__b.sql", "V2__d.sql"]),
        ["V1__a", "V1.1__b", "V1_2__y", "V2__d", "V10__c"]
    );
    let stamps = ["20260101120000_a.up.sql", "2026-01-15-100000_b.sql", "9_c.sql"];
    assert_eq!(ids(&stamps), ["9_c", "2026-01-15-100000_b", "20260101120000_a"]);
    assert_eq!(ids(&["001.sql", "001a.sql", "002.sql", "001b.sql"]), ["001", "001a", "001b", "002"]);
    let huge = "99999999999999999999999999999999_b.sql";
    assert_eq!(ids(&[huge, "100000000000000000000000000000000_c.sql"])[0], huge.trim_end_matches(".sql"));
    let instants = ["2026-01-15T10_b.sql", "2026-01-15T09_a.sql"];
    assert_eq!(ids(&instants), ["2026-01-15T09_a", "2026-01-15T10_b"]);
}

#[test]
fn without_any_number_names_decide_and_numbers_in_them_count_as_numbers() {
    assert_eq!(ids(&["init.sql", "v10.sql", "v2.sql"]), ["init", "v2", "v10"]);
    assert_eq!(ids(&["b.sql", "a.sql"]), ["a", "b"]);
}

#[test]
fn a_script_has_what_takes_it_back() {
    let listing =
        listing(&["1_a.up.sql", "1_a.down.sql", "2_b.sql", "2_b.down.sql", "3_scale_down.sql"], &[]);
    let found = listing.scripts(Engine::PostgreSQL).unwrap().found;
    let found: Vec<_> = found.iter().map(|one| (&*one.id, &*one.up, one.down.as_deref())).collect();
    assert_eq!(
        found,
        [
            ("1_a", "1_a.up.sql", Some("1_a.down.sql")),
            ("2_b", "2_b.sql", Some("2_b.down.sql")),
            ("3_scale_down", "3_scale_down.sql", None),
        ]
    );
}

#[test]
fn a_file_without_a_sure_place_is_refused_by_its_name() {
    refused(&["V1__a.sql", "U1__a.sql"], &["U1__a.sql", "V1__a.down.sql"]);
    refused(&["V1__a.sql", "R__v.sql"], &["R__v.sql", "repeatable"]);
    refused(&["V1__a.sql", "B1.2__v.sql"], &["B1.2__v.sql", "baseline"]);
    refused(&["1_a.sql", "01_b.sql"], &["1_a.sql", "01_b.sql", "the same number"]);
    refused(&["V1__a.sql", "1_b.sql"], &["V1__a.sql", "1_b.sql"]);
    refused(&["V1.0__a.sql", "V1__b.sql"], &["V1.0__a.sql"]);
    refused(&["1_a.sql", "1_a.up.sql"], &["1_a.sql", "1_a.up.sql"]);
    refused(&["1_a.sql", "schema.sql", "2_b.sql"], &["schema.sql", "number"]);
    refused(&["1_a.sql", "2_B.SQL"], &["2_B.SQL", "small letters"]);
    refused(&["1_a.sql", "2_b.down.sql"], &["2_b.down.sql", "2_b.up.sql"]);
    refused(&["a.sql", "a.rollback.sql"], &["a.rollback.sql", "a.down.sql"]);
    refused(&["up.sql", "down.sql"], &["down.sql"]);
    refused(&["down_1.sql", "up_1.sql"], &["down_1.sql", "up_1.down.sql"]);
    refused(&["1_a.sql", "1_a.sql.conf"], &["1_a.sql.conf"]);
}

#[test]
fn scripts_of_other_engines_are_refused_by_their_names() {
    refused(&["1_a.mysql.up.sql", "1_a.postgres.up.sql"], &["1_a.mysql.up.sql", "PostgreSQL"]);
    refused(&["1_a.sql", "2_b.cockroach.sql"], &["2_b.cockroach.sql"]);
    refused(&["postgres.sql", "sqlite.sql"], &["sqlite.sql"]);
    refused(&["schema-pg.sql", "schema-mysql.sql"], &["schema-mysql.sql"]);
    refused(&["1_a.sql", "1_a.sql.postgres"], &["1_a.sql.postgres"]);
    let sure = ["1_a.pg.up.sql", "2_from_mysql.sql", "3_a_sqlite.sql"];
    assert_eq!(ids(&sure), ["1_a.pg", "2_from_mysql", "3_a_sqlite"]);
}

#[test]
fn folders_are_left_out_unless_they_are_all_there_is() {
    let scripts =
        |files: &[&str], folders: &[(&str, &[&str])]| listing(files, folders).scripts(Engine::SQLite);
    let left_out = scripts(&["1_a.sql", "README.md"], &[("old", &["1_x.sql"]), ("meta", &[])]).unwrap();
    assert_eq!(left_out.skipped, ["README.md", "meta/", "old/"]);
    for (files, folders, parts) in [
        (&[][..], &[("20260101_a", &["migration.sql"][..])][..], &["20260101_a/migration.sql", "Prisma"][..]),
        (&["1_a.sql"], &[("2026-01-01-1_a", &["down.sql", "up.sql"])], &["2026-01-01-1_a/"]),
        (
            &[],
            &[("mysql", &["1_a.sql"]), ("sqlite", &["1_a.sql"])],
            &["mysql/, sqlite/", "name such a folder"],
        ),
        (&["README.md"], &[], &["no script is there", "README.md does not count", "NAME.down.sql"]),
        (&[], &[], &["no script is there"]),
    ] {
        let error = scripts(files, folders).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
