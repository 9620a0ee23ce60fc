use super::*;
use crate::kinds::databasemigration::sql::split;

/// The effect of the last statement of a text, in short.
fn shown(engine: Engine, text: &str) -> String {
    let statements = split(engine, text).unwrap();
    let all = effects(engine, text, &statements, Modes::default());
    let object = |sign: &Sign| {
        let Object { what, schema, table, name } = &sign.object;
        let places = [schema, table].into_iter().flatten().cloned();
        let place: Vec<_> = places.chain([name.clone()]).collect();
        format!("{}{what:?} {}", if sign.appears { '+' } else { '-' }, place.join("."))
    };
    match all.last().unwrap() {
        None => "none".to_owned(),
        Some(Effect::Rows { is_short, into }) => {
            let length = if *is_short { "short " } else { "" };
            let into = into.as_ref().map(|into| {
                let schema = into.schema.as_ref().map(|schema| format!("{schema}.")).unwrap_or_default();
                format!(" into {schema}{}", into.name)
            });
            format!("{length}rows{}", into.unwrap_or_default())
        }
        Some(Effect::Repeatable) => "repeatable".to_owned(),
        Some(Effect::Objects(signs)) => signs.iter().map(object).collect::<Vec<_>>().join(", "),
    }
}

#[track_caller]
fn each(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(shown(Engine::MariaDB, text), *expected, "{text}");
    }
}

#[test]
fn a_change_of_rows_is_in_the_transaction_of_its_row() {
    each(&[
        ("INSERT INTO a VALUES (1)", "short rows into a"),
        ("INSERT LOW_PRIORITY IGNORE INTO `shop` . `a` (b) VALUES (1)", "short rows into shop.a"),
        ("REPLACE a SET b = 1", "short rows into a"),
        ("INSERT INTO a SELECT 1", "rows into a"),
        ("INSERT INTO a TABLE b", "rows into a"),
        ("INSERT INTO a VALUES (NEXT VALUE FOR s)", "none"),
        ("INSERT INTO a VALUES (NEXTVAL(s))", "none"),
        ("INSERT INTO a VALUES (s.nextval)", "none"),
        ("SET @a = (SELECT NEXT VALUE FOR s)", "none"),
        ("SELECT NEXT VALUE FOR s INTO @a", "none"),
        ("DO SETVAL(s, 7)", "none"),
        ("INSERT INTO a (next) VALUES (1)", "short rows into a"),
        ("ANALYZE UPDATE a SET b = b + 1", "none"),
        ("ANALYZE LOCAL TABLE a", "repeatable"),
        ("SET @a = `f`()", "none"),
        ("SET @a = shop.count(1)", "none"),
        ("UPDATE a SET b = 1", "rows"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "rows"),
        ("SELECT 1 INTO OUTFILE '/tmp/a'", "none"),
        ("LOAD DATA INFILE 'a' INTO TABLE b", "none"),
        ("CALL p()", "none"),
        ("CALL p(); INSERT INTO a VALUES (1)", "short rows into a"),
    ]);
}

#[test]
fn a_definition_is_known_by_its_object() {
    each(&[
        ("CREATE TABLE a (b int, c int AS (b + 1))", "+Table a"),
        ("CREATE TABLE `shop`.`a b` (b int)", "+Table shop.a b"),
        ("CREATE TABLE a LIKE b", "+Table a"),
        ("CREATE TABLE a AS SELECT 1", "none"),
        ("CREATE TABLE IF NOT EXISTS a (b int)", "repeatable"),
        ("CREATE TABLE IF NOT EXISTS a SELECT 1", "none"),
        ("CREATE OR REPLACE TABLE a (b int)", "none"),
        ("CREATE VIEW v AS SELECT 1", "+Table v"),
        ("CREATE ALGORITHM = MERGE DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW v AS SELECT 1", "+Table v"),
        ("CREATE DEFINER = CURRENT_USER() PROCEDURE p() SELECT 1", "+Procedure p"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "repeatable"),
        ("CREATE OR REPLACE PROCEDURE p() SELECT 1", "repeatable"),
        ("CREATE AGGREGATE FUNCTION f(x int) RETURNS int RETURN 1", "+Function f"),
        ("CREATE DEFINER=root@localhost TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET @x = 1", "+Trigger t"),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM a", "none"),
        ("CREATE EVENT IF NOT EXISTS e ON SCHEDULE AT CURRENT_TIMESTAMP DO DELETE FROM a", "none"),
        ("DROP EVENT e", "-Event e"),
        ("CREATE SEQUENCE s", "+Table s"),
        ("CREATE UNIQUE INDEX i USING BTREE ON a (b)", "+Index a.i"),
        ("CREATE DATABASE d", "+Database d.d"),
        ("CREATE USER u", "none"),
        ("CREATE USER IF NOT EXISTS u", "repeatable"),
        ("DROP TABLE a", "-Table a"),
        ("DROP TABLE IF EXISTS a, b", "repeatable"),
        ("DROP TABLE a, b", "none"),
        ("DROP INDEX i ON a", "-Index a.i"),
        ("DROP TRIGGER shop.t", "-Trigger shop.t"),
        ("RENAME TABLE a TO b", "-Table a, +Table b"),
        ("RENAME TABLE a TO c, b TO a", "none"),
        ("TRUNCATE TABLE a", "none"),
    ]);
}

#[test]
fn a_table_is_altered_in_ways_that_show() {
    each(&[
        ("ALTER TABLE a ADD b int", "+Column a.b"),
        ("ALTER TABLE a ADD COLUMN (b int, c varchar(3))", "+Column a.b, +Column a.c"),
        ("ALTER TABLE a ADD COLUMN (b int, KEY k (b))", "none"),
        ("ALTER TABLE a ADD COLUMN IF NOT EXISTS b int", "repeatable"),
        ("ALTER TABLE a ADD b int AFTER c, ADD KEY k (b), DROP x", "+Column a.b, +Index a.k, -Column a.x"),
        ("ALTER TABLE a ADD b int, ADD UNIQUE (b)", "+Column a.b"),
        ("ALTER TABLE a DROP INDEX b, ADD UNIQUE (b)", "none"),
        ("ALTER TABLE a ADD CONSTRAINT f FOREIGN KEY (b) REFERENCES c (d)", "+Constraint a.f"),
        ("ALTER TABLE a ADD CONSTRAINT u UNIQUE KEY (b)", "+Index a.u"),
        ("ALTER TABLE a ADD CONSTRAINT u UNIQUE KEY k (b)", "none"),
        (
            "ALTER TABLE a CHANGE IF EXISTS b c int, CHANGE IF EXISTS c b int",
            "-Column a.b, +Column a.c, -Column a.c, +Column a.b",
        ),
        ("ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES c (d)", "none"),
        ("ALTER TABLE a ADD PRIMARY KEY (b)", "+Index a.PRIMARY"),
        ("ALTER TABLE a DROP FOREIGN KEY f, DROP KEY k", "-Constraint a.f, -Index a.k"),
        ("ALTER TABLE a CHANGE b c int", "-Column a.b, +Column a.c"),
        ("ALTER TABLE a CHANGE b b bigint, MODIFY c text", "repeatable"),
        ("ALTER TABLE a RENAME COLUMN b TO c", "-Column a.b, +Column a.c"),
        ("ALTER TABLE a RENAME KEY b TO c", "-Index a.b, +Index a.c"),
        ("ALTER TABLE shop.a RENAME TO b", "-Table shop.a, +Table shop.b"),
        ("ALTER TABLE a RENAME b, ADD c int", "none"),
        ("ALTER TABLE a ENGINE=InnoDB DEFAULT CHARSET=utf8mb4, ALGORITHM=COPY", "repeatable"),
        ("ALTER TABLE a ALTER b SET DEFAULT 1", "repeatable"),
        ("ALTER TABLE a DROP b, ADD PARTITION (PARTITION p VALUES LESS THAN (3))", "none"),
        ("ALTER TABLE a DISCARD TABLESPACE", "none"),
        ("ALTER VIEW v AS SELECT 1", "repeatable"),
        ("ALTER EVENT e RENAME TO f", "none"),
    ]);
}

#[test]
fn a_temporary_table_and_another_database_hide_what_a_name_means() {
    each(&[
        ("CREATE TEMPORARY TABLE a (b int); DROP TABLE a", "none"),
        ("DROP TABLE a; CREATE TEMPORARY TABLE a (b int)", "none"),
        ("USE other; DROP TABLE a", "none"),
        ("USE other; DROP TABLE shop.a", "-Table shop.a"),
        ("CALL p(); DROP TABLE a", "none"),
        ("CALL p(); SET @a = 1", "repeatable"),
        ("SET NAMES utf8mb4", "repeatable"),
        ("SET GLOBAL max_connections = 3", "none"),
    ]);
}
