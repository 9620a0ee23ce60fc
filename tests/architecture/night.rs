//! What runs at night alone is in the table of the docs, with what covers for it at each change.

use super::sources::root;

/// The text of a file of the project.
fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The tests of the cluster tier that the checks of a change pass by.
fn passed_by(text: &str) -> Vec<&str> {
    let table = text.split_once("const PASSED_BY").and_then(|(_, after)| after.split_once("\n];"));
    let lines = table.map(|(table, _)| table.lines()).into_iter().flatten();
    lines
        .filter_map(|line| line.trim_start().strip_prefix("(\"")?.split_once('"').map(|(title, _)| title))
        .collect()
}

/// Those of these tests that no row of a table is about.
fn without_a_row<'a>(titles: &[&'a str], page: &str) -> Vec<&'a str> {
    let has = |title: &str| {
        let cell = format!("`{title}`");
        page.lines().any(|line| {
            line.starts_with("| `") && line.split(" | ").next().is_some_and(|at| at.contains(&cell))
        })
    };
    titles.iter().copied().filter(|title| !has(title)).collect()
}

/// The lists of tests of the API tier that take turns on a control plane of their own, and so are in slices.
fn in_slices(text: &str) -> Vec<&str> {
    const GROUNDS: [&str; 3] = ["Ground::Elections", "Ground::Installations", "Ground::Removals"];
    let lists = text.lines().filter(|line| GROUNDS.iter().any(|ground| line.contains(ground)));
    lists.filter_map(|line| line.trim_start().split(", ").nth(1).filter(|list| list.contains("::"))).collect()
}

#[test]
fn each_list_in_slices_has_a_row_in_the_docs() {
    let (suite, page) = (read("tests/api/main.rs"), read("docs/development.md"));
    let lists = in_slices(&suite);
    assert!(lists.len() > 5, "{lists:?}");
    for list in lists {
        let module = list.split("::").next().unwrap();
        let named = [format!("`{list}`"), format!("`{module}`")];
        let has_row = page.lines().any(|line| {
            line.starts_with("| `api`: the tests of ") && named.iter().any(|name| line.contains(name))
        });
        assert!(has_row, "{list} has no row");
    }
}

#[test]
fn each_test_that_runs_at_night_alone_has_a_row_in_the_docs() {
    let (suite, page) = (read("tests/e2e/passed_by.rs"), read("docs/development.md"));
    let titles = passed_by(&suite);
    assert!(titles.len() > 20, "{titles:?}");
    assert_eq!(without_a_row(&titles, &page), [""; 0]);
    let parts = read("tools/nightly.sh");
    let parts: Vec<_> =
        parts.lines().filter_map(|line| line.strip_prefix("part_")?.split("()").next()).collect();
    assert!(parts.len() > 8, "{parts:?}");
    for part in parts {
        assert!(
            page.lines().any(|line| line.starts_with(&format!("| `{part}`"))),
            "the part {part} has no row"
        );
    }
}

#[test]
fn a_test_without_a_row_is_found() {
    let titles = passed_by(
        "const PASSED_BY: &[X] = &[\n    (\"chart::one\", 1),\n    (\"chart::two\", 2),\n];\n(\"no\", 3)",
    );
    assert_eq!(titles, ["chart::one", "chart::two"]);
    assert_eq!(without_a_row(&titles, "| `release`: `chart::one` | why | `chart::two` |"), ["chart::two"]);
}
