//! Looks in MySQL and MariaDB whether a statement took effect.
//!
//! Guarantees: the look changes nothing; an answer is given only if all objects of the statement agree.
//! Assumes: the user of the run sees the objects that its scripts make. Else the look finds no effect, the statement runs
//! again, and the server refuses it.

use super::connection::{Connection, Value};
use super::failure::Failure;
use super::scripts::Text;
use crate::kinds::databasemigration::sql::mysql::effect::{Effect, Object, Sign, What, effects};

/// Which side of a statement the database is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The statement has not taken effect.
    Before,
    /// The statement may have taken effect, and may run again.
    Either,
    /// The statement has taken effect.
    After,
}

/// The effects of the statements of a text, in their order.
pub(super) fn foreseen(connection: &Connection, text: &Text) -> Vec<Option<Effect>> {
    effects(connection.engine(), &text.all, &text.statements, text.modes)
}

/// The side of a statement on which the database is, if the history says that this can be found out. A number behind the last
/// statement has no effect.
pub(super) async fn side(
    connection: &mut Connection,
    text: &Text,
    statement: u32,
) -> Result<Option<Side>, Failure> {
    let all = foreseen(connection, text);
    let place = usize::try_from(statement).unwrap_or_default().saturating_sub(1);
    match all.get(place) {
        Some(Some(Effect::Objects(signs))) => look(connection, signs).await,
        // The row of the history and the rows that a statement changes are committed together.
        Some(Some(Effect::Rows { .. })) | None => Ok(Some(Side::Before)),
        Some(Some(Effect::Repeatable)) => Ok(Some(Side::Either)),
        Some(None) => Ok(None),
    }
}

/// The side on which all of these objects are.
pub(super) async fn look(connection: &mut Connection, signs: &[Sign]) -> Result<Option<Side>, Failure> {
    let mut sides = Vec::new();
    for sign in signs {
        let is_there = exists(connection, &sign.object).await?;
        sides.push(if is_there == sign.appears { Side::After } else { Side::Before });
    }
    let first = sides.first().copied();
    Ok(first.filter(|first| sides.iter().all(|side| side == first)))
}

/// Whether an insert into this table uses up generated ids, which a rollback does not give back. A view counts as yes,
/// because its table is not looked up.
pub(super) async fn numbers_rows(connection: &mut Connection, into: &Object) -> Result<bool, Failure> {
    let sql = "SELECT '1' FROM information_schema.columns WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? \
               AND (extra LIKE '%auto_increment%' OR column_default LIKE '%nextval(%') \
               UNION ALL SELECT '1' FROM information_schema.views \
               WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? LIMIT 1";
    let (schema, name) = (Value::from(into.schema.as_deref()), Value::from(&*into.name));
    Ok(!connection.rows(sql, &[schema, name, schema, name]).await?.is_empty())
}

async fn exists(connection: &mut Connection, object: &Object) -> Result<bool, Failure> {
    let (view, schema, name, kind) = match object.what {
        What::Table => ("tables", "table_schema", "table_name", None),
        What::Column => ("columns", "table_schema", "column_name", None),
        What::Index => ("statistics", "table_schema", "index_name", None),
        What::Constraint => ("table_constraints", "constraint_schema", "constraint_name", None),
        What::Procedure => ("routines", "routine_schema", "routine_name", Some("PROCEDURE")),
        What::Function => ("routines", "routine_schema", "routine_name", Some("FUNCTION")),
        What::Package => ("routines", "routine_schema", "routine_name", Some("PACKAGE")),
        What::PackageBody => ("routines", "routine_schema", "routine_name", Some("PACKAGE BODY")),
        What::Trigger => ("triggers", "trigger_schema", "trigger_name", None),
        What::Event => ("events", "event_schema", "event_name", None),
        What::Database => ("schemata", "schema_name", "schema_name", None),
    };
    let table = if object.table.is_some() { " AND table_name = ?" } else { "" };
    let kind_is = if kind.is_some() { " AND routine_type = ?" } else { "" };
    let sql = format!(
        "SELECT '1' FROM information_schema.{view} WHERE {schema} = COALESCE(?, DATABASE()) AND {name} = ?{table}{kind_is} LIMIT 1"
    );
    let values = [
        Some(object.schema.as_deref()),
        Some(Some(&*object.name)),
        object.table.as_deref().map(Some),
        kind.map(Some),
    ];
    let values: Vec<_> = values.into_iter().flatten().map(Value::from).collect();
    Ok(!connection.rows(&sql, &values).await?.is_empty())
}
