//! Locks of MySQL and MariaDB that a session has by name.

use super::super::super::result::Class;
use super::super::failure::Failure;
use super::{Connection, Value};

/// How many seconds a session may take to get a lock that another one lets go: for an instant a third one may try.
const UNTIL_PASSED: i64 = 5;

/// Two locks that are one of ours: who wants it takes the first one, and then the second one. So it can pass from one
/// session to another: who has the second one gets the first one, too.
pub(in super::super) type LockNames = [String; 2];

/// What a session has of our lock.
#[derive(Debug)]
pub(in super::super) enum Held {
    /// Nothing: it was not asked for, or the engine has another one.
    Nothing,
    /// All of it, which has to be passed on to the next session.
    Both(LockNames),
    /// Not all of it any more: passing it on failed half way, so that another run may have it.
    Lost,
}

/// Whether the session has got a lock, in that time.
pub(in super::super) async fn got(
    connection: &mut Connection,
    half: &str,
    seconds: i64,
) -> Result<bool, Failure> {
    let sql = "SELECT CAST(GET_LOCK(?, ?) AS CHAR)";
    let answer = connection.rows(sql, &[Value::Text(half), Value::Number(seconds)]).await?;
    Ok(answer.first().and_then(|row| row.first()?.as_deref()) == Some("1"))
}

/// Lets a lock go.
pub(in super::super) async fn let_go(connection: &mut Connection, half: &str) -> Result<(), Failure> {
    let sql = "SELECT CAST(RELEASE_LOCK(?) AS CHAR)";
    connection.rows(sql, &[Value::Text(half)]).await.map(|_| ())
}

/// Passes a lock on from one session to another, so that no other session gets it in between. After a failure neither
/// has all of it.
pub(super) async fn pass(
    lock_names: &LockNames,
    from: &mut Connection,
    to: &mut Connection,
) -> Result<(), Failure> {
    for half in lock_names.iter().rev() {
        // A session that broke off has nothing to let go.
        let _gone = let_go(from, half).await;
        let why = match got(to, half, UNTIL_PASSED).await {
            Ok(true) => continue,
            Ok(false) => "another session has it".to_owned(),
            Err(failure) => failure.message,
        };
        let message = format!("the lock could not be passed on to another session: {why}");
        return Err(Failure::new(Class::Busy, message));
    }
    Ok(())
}
