//! What a member that does not start says of its own data: etcd compares them with the others' first, and ends where they
//! differ. Pure.
//!
//! Guarantees: only what etcd itself says when it ends over that is read, never what it quotes of clients.
//! Source: `corruptionChecker.InitialCheck` in `server/etcdserver/corrupt.go` of etcd 3.5.33, 3.6.16 and 3.7.3.

use crate::kinds::etcdcluster::etcd::log::Line;
use crate::kinds::etcdcluster::observation::{MemberId, OwnPrint};

/// What etcd ends with.
const ENDS: &str = "found data inconsistency with peers";

/// What it says before that of each member whose data differ from its own.
const DIFFERS: &str = "found different hash values from remote peer";

/// Whether etcd has ended because its data differ from another member's.
#[must_use]
pub fn is_of_peers(log: &str) -> bool {
    lines(log).any(|line| ends(&line))
}

/// The hash of its data that a member compared before it ended over that; none where it ended over something else, or the
/// end of the log has no hash.
#[must_use]
pub fn print(log: &str) -> Option<OwnPrint> {
    let compared = lines(log).filter(|line| line.message == DIFFERS).last()?;
    is_of_peers(log).then(|| read(&compared)).flatten()
}

fn lines(log: &str) -> impl Iterator<Item = Line> {
    log.lines().filter_map(Line::read)
}

fn ends(line: &Line) -> bool {
    let is_last = matches!(line.level.as_str(), "fatal" | "panic");
    is_last && (line.message.contains(ENDS) || line.text("error").contains(ENDS))
}

fn read(line: &Line) -> Option<OwnPrint> {
    Some(OwnPrint {
        member: MemberId(u64::from_str_radix(line.text("local-member-id"), 16).ok()?),
        revision: u64::try_from(line.number("local-member-revision")?).ok()?,
        compact_revision: line.number("local-member-compact-revision")?,
        hash: u32::try_from(line.number("local-member-hash")?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPARED: &str = r#"{"level":"warn","caller":"etcdserver/corrupt.go:118","msg":"found different hash values from remote peer","local-member-id":"a1b2","local-member-revision":48213,"local-member-compact-revision":40000,"local-member-hash":4294967295,"remote-peer-id":"c3","remote-peer-hash":7}"#;
    const ENDED: &str =
        r#"{"level":"fatal","msg":"discovery failed","error":"a1b2 found data inconsistency with peers"}"#;

    fn own() -> OwnPrint {
        OwnPrint { member: MemberId(0xa1b2), revision: 48213, compact_revision: 40000, hash: u32::MAX }
    }

    #[test]
    fn the_hash_is_read_where_etcd_ended_over_it() {
        let both = format!("{COMPARED}\n{ENDED}\n");
        assert_eq!((print(&both), is_of_peers(&both)), (Some(own()), true));
        // It compared, and ended over something else.
        let other = r#"{"level":"fatal","msg":"discovery failed","error":"walpb: crc mismatch"}"#;
        let log = format!("{COMPARED}\n{other}");
        assert_eq!((print(&log), is_of_peers(&log)), (None, false));
        // The end of the log begins after it.
        assert_eq!((print(ENDED), is_of_peers(ENDED)), (None, true));
        let console = "2026-11-25T15:49:31.120Z\twarn\tetcdserver/corrupt.go:118\tfound different hash values from remote \
                       peer\t{\"local-member-id\": \"a1b2\", \"local-member-revision\": 48213, \
                       \"local-member-compact-revision\": 40000, \"local-member-hash\": 4294967295}";
        assert_eq!(print(&format!("{console}\n{ENDED}")), Some(own()));
    }

    #[test]
    fn what_a_client_sends_is_no_hash() {
        let quoted =
            format!(r#"{{"level":"warn","msg":"slow","request":{:?}}}"#, format!("\n{COMPARED}\n{ENDED}"));
        assert_eq!((print(&quoted), is_of_peers(&quoted)), (None, false));
        let warned = ENDED.replace("fatal", "warn");
        assert_eq!(print(&format!("{COMPARED}\n{warned}")), None);
    }
}
