//! Locks of MySQL and MariaDB that a session has by name.

use super::super::super::result::Class;
use super::super::failure::Failure;
use super::{Connection, Value};

/// How many seconds a session may take to get a lock that another one lets go: for an instant a third one may try.
const UNTIL_PASSED: i64 = 5;

/// The names of the two locks of the server that make up one of ours. A session takes the first one, and then the second
/// one. So the lock can pass to another session: the session that has the second one gets the first one, too.
pub(in super::super) type LockNames = [String; 2];

/// Whether the session has got a lock, in that time.
pub(in super::super) async fn got(
    connection: &mut Connection,
    name: &str,
    seconds: i64,
) -> Result<bool, Failure> {
    let sql = "SELECT CAST(GET_LOCK(?, ?) AS CHAR)";
    let answer = connection.rows(sql, &[Value::Text(name), Value::Number(seconds)]).await?;
    Ok(answer.first().and_then(|row| row.first()?.as_deref()) == Some("1"))
}

/// Lets a lock go.
pub(in super::super) async fn let_go(connection: &mut Connection, name: &str) -> Result<(), Failure> {
    let sql = "SELECT CAST(RELEASE_LOCK(?) AS CHAR)";
    connection.rows(sql, &[Value::Text(name)]).await.map(|_| ())
}

/// Passes a lock on from one session to another, so that nobody gets it in between.
pub(super) async fn pass(
    names: &LockNames,
    from: &mut Connection,
    to: &mut Connection,
) -> Result<(), Failure> {
    for name in names.iter().rev() {
        // A session that broke off has nothing to let go.
        let _gone = let_go(from, name).await;
        if !got(to, name, UNTIL_PASSED).await? {
            let message = "the lock could not be passed on to another session";
            return Err(Failure::new(Class::Busy, message));
        }
    }
    Ok(())
}
