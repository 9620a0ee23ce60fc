use super::*;

fn texts(text: &str) -> Vec<&str> {
    split(text).unwrap().iter().map(|one| &text[one.start..one.end]).collect()
}

#[test]
fn semicolons_inside_of_something_end_nothing() {
    let text = "-- a; b\nINSERT INTO t VALUES ('a;''b', \"c;d\"); /* ; /* ; */ */\n\
                CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $x$ BEGIN; END; $x$;\n\
                SELECT E'\\';' ;\n; ";
    assert_eq!(
        texts(text),
        [
            "INSERT INTO t VALUES ('a;''b', \"c;d\")",
            "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $x$ BEGIN; END; $x$",
            "SELECT E'\\';' ",
        ]
    );
}

#[test]
fn a_text_ends_where_the_server_ends_it() {
    for (text, count) in [
        ("SELECT E'a'\n'\\';'; SELECT 2", 2),
        ("SELECT E'a' -- b\n  '\\'; COMMIT; '", 1),
        ("SELECT E'a' '\\'; COMMIT", 2),
        ("SELECT 'a\\'; COMMIT", 2),
        ("SELECT e'\\\\'; SELECT U&'a\\'; SELECT n'\\'; SELECT b'1'", 4),
        ("-- a\rCOMMIT; SELECT 1", 2),
        ("SELECT a$b$c; SELECT $$;$$, $1, $a$;$b$;$a$; SELECT 1$a$;$a$", 3),
        ("SELECT 1+--;\n2; SELECT 3 */*;*/ 4", 2),
        (
            "CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO a VALUES (1); INSERT INTO b VALUES (2)); SELECT 1",
            2,
        ),
        ("SELECT ')'; SELECT 1); SELECT 2", 3),
        ("SET standard_conforming_strings = off; SELECT 'a\\';'; SELECT 2", 3),
        (
            "SET standard_conforming_strings TO 'off'; RESET standard_conforming_strings; SELECT 'a\\'; SELECT 2",
            4,
        ),
    ] {
        assert_eq!(texts(text).len(), count, "{text}");
    }
}

#[test]
fn the_body_of_a_routine_stays_whole() {
    for text in [
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END",
        "CREATE FUNCTION f() RETURNS date BEGIN ATOMIC SELECT begin FROM slot; SELECT s.end FROM slot s; END",
        "create or replace procedure p(begin int) begin atomic insert into a values ($1); end",
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC END",
    ] {
        assert_eq!(texts(&format!("{text}; SELECT 3")), [text, "SELECT 3"]);
    }
    for (text, count) in [
        ("CREATE TABLE begin (atomic int); SELECT 1", 2),
        ("CREATE FUNCTION begin() RETURNS int RETURN 1; SELECT 2", 2),
    ] {
        assert_eq!(texts(text).len(), count, "{text}");
    }
}

#[test]
fn what_is_for_psql_is_refused_with_its_line() {
    for (text, said) in [
        ("\\restrict abc\nSELECT 1", "\\restrict in line 1"),
        ("SELECT 1;\n\\connect shop", "\\connect in line 2"),
        ("\n\\copy a FROM 'b'", "\\copy in line 2"),
        ("SELECT 1;\n\\secret", "a backslash outside of quotes in line 2"),
        ("SELECT 1;\nCOPY a (b) FROM stdin;\nit's\n\\.\n", "COPY FROM STDIN in line 2"),
        ("COPY a TO STDOUT", "COPY TO STDOUT in line 1"),
        ("COPY (SELECT 1) TO STDOUT", "COPY TO STDOUT in line 1"),
    ] {
        let error = split(text).unwrap_err();
        assert!(error.contains(said) && !error.contains("secret"), "{text}: {error}");
    }
    for text in ["COPY stdin FROM '/a'", "COPY a FROM PROGRAM 'b'", "COPY (SELECT 1 FROM stdin) TO '/a'"] {
        assert_eq!(texts(text), [text]);
    }
}

#[test]
fn lines_and_words_are_those_of_the_statement() {
    let text = "\u{fc}berall();\r\n\n  create index concurrently \"x;y\" on t (a);";
    let statements = split(text).unwrap();
    assert_eq!((statements.len(), statements[1].line), (2, 3));
    assert!(statements[1].begins(&["CREATE", "INDEX"]) && statements[1].has("CONCURRENTLY"));
    assert_eq!(texts(text)[1], "create index concurrently \"x;y\" on t (a)");
    assert_eq!(split("-- nothing\n/* ; */ ;"), Ok(Vec::new()));
    assert_eq!(texts("\u{feff}COMMIT"), ["COMMIT"]);
}

#[test]
fn what_has_no_end_is_refused_without_its_text() {
    for text in [
        "SELECT 1;\nSELECT 'secret",
        "SELECT 1;\nSELECT $a$secret$b$",
        "SELECT 1;\n/* secret",
        "SELECT 1;\nSELECT \"secret",
        "SELECT 1;\nSELECT (secret; COMMIT",
        "SELECT 1;\nCREATE FUNCTION secret() RETURNS int BEGIN ATOMIC SELECT 1;",
    ] {
        let error = split(text).unwrap_err();
        assert!(error.contains("line 2") && !error.contains("secret"), "{text}: {error}");
    }
}
