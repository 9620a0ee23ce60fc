//! What a test puts into an EtcdCluster by itself, and reads from it.

use std::collections::BTreeSet;

use futures::future::join_all;
use gatehouse::kinds::etcdcluster::etcd::{AlarmKind, Client, Error, Password, Refusal};
use kit::etcd::{Calls as _, Range};

use super::Etcd;

impl Etcd<'_> {
    /// Writes a key, until that is acknowledged, without a writer at work.
    #[track_caller]
    pub fn put(&self, key: &str, value: &str) {
        self.until(|_| self.try_put(key, value));
    }

    /// Writes a key once.
    pub fn try_put(&self, key: &str, value: &str) -> Result<(), String> {
        let voter = self.voters().into_iter().next().ok_or("no voter is ready")?;
        let put = self.runtime.block_on(voter.put(key.as_bytes(), value.as_bytes()));
        put.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Writes so many keys over and over, so many bytes each time, until there is no room for more.
    pub fn fill(&self, keys: usize, bytes: usize) {
        let voter = self.first(|voter| Some(voter.clone()));
        let value = vec![b'x'; bytes];
        let keys: Vec<_> = (0..keys).map(|number| format!("fill-{number}")).collect();
        let mut last = None;
        for _ in 0..1000 {
            let keys = keys.iter().cycle().take(32);
            let puts = keys.map(|key| voter.put(key.as_bytes(), &value));
            last = self.runtime.block_on(join_all(puts)).into_iter().find_map(Result::err);
            if last.as_ref().is_some_and(|error| error.refusal() == Some(Refusal::NoSpace)) {
                return;
            }
        }
        panic!("there is room for ever; the last error: {last:?}");
    }

    /// Writes keys of so many bytes each, until so many bytes of its database are in use.
    pub fn load(&self, bytes: usize, in_use: i64) {
        let value = vec![b'x'; bytes];
        let mut number = 0;
        self.until(|_| {
            let voter = self.voters().into_iter().next().ok_or("no voter is ready")?;
            for _ in 0..16 {
                let keys: Vec<_> = (number..number + 32).map(|key| format!("load-{key}")).collect();
                let puts = keys.iter().map(|key| voter.put(key.as_bytes(), &value));
                let refused = self.runtime.block_on(join_all(puts)).into_iter().find_map(Result::err);
                // The same keys again: what was written is written over.
                refused.map_or(Ok(()), |error| Err(error.to_string()))?;
                number += 32;
            }
            let status = self.runtime.block_on(voter.status()).map_err(|error| error.to_string())?;
            let used = status.db_size_in_use;
            if used >= in_use { Ok(()) } else { Err(format!("{used} of {in_use} bytes are in use")) }
        });
    }

    /// What all voters have up to a revision: one hash, for all have the same.
    #[track_caller]
    pub fn hash(&self, revision: i64) -> u32 {
        let hashes = self.until(|_| {
            let voters = self.voters();
            let asked = voters.iter().map(|voter| self.runtime.block_on(voter.hash_keys(revision)));
            let hashes = asked.map(|hash| Ok(hash?.hash)).collect::<Result<Vec<_>, Error>>();
            let hashes = hashes.map_err(|error| error.to_string())?;
            if hashes.is_empty() { Err("no voter is ready".to_owned()) } else { Ok(hashes) }
        });
        assert!(hashes.windows(2).all(|pair| pair[0] == pair[1]), "at {revision}: {hashes:x?}");
        hashes[0]
    }

    /// The id of the member that leads, as one of them says.
    #[track_caller]
    pub fn leader(&self) -> u64 {
        self.first(|voter| self.runtime.block_on(voter.status()).ok()).leader
    }

    /// The members of which etcd says that their data differ from others'.
    pub fn named_corrupt(&self) -> BTreeSet<u64> {
        let ask = |voter: &Client| self.runtime.block_on(voter.alarms()).ok();
        let alarms = self.voters().iter().find_map(ask).unwrap_or_default();
        let are_corrupt = alarms.into_iter().filter(|alarm| alarm.kind() == AlarmKind::Corrupt);
        are_corrupt.map(|alarm| alarm.member).collect()
    }

    /// How many members there are, as one of them remembers it.
    #[track_caller]
    pub fn remembered(&self) -> usize {
        self.first(|voter| self.runtime.block_on(voter.remembered_members()).ok()).members.len()
    }

    /// The first answer that there is of a voter.
    #[track_caller]
    fn first<T>(&self, ask: impl Fn(&Client) -> Option<T>) -> T {
        self.until(|_| self.voters().iter().find_map(&ask).ok_or_else(|| "no voter answers".to_owned()))
    }

    /// Whether that is the password of root, and if not, what etcd answers.
    pub fn takes(&self, password: &str) -> Result<(), String> {
        let voter = self.voters().into_iter().next().ok_or("no voter is ready")?;
        let password = Password::new(password.to_owned());
        let asked = self.runtime.block_on(voter.authenticate("root", &password));
        asked.map_err(|error| error.to_string())
    }

    /// That is not the password of root: etcd refuses it, at the first answer that there is.
    #[track_caller]
    pub fn refuses(&self, password: &str) {
        self.until(|_| match self.takes(password) {
            Ok(()) => panic!("it is the password"),
            Err(why) if why.contains("authentication failed") => Ok(()),
            Err(why) => Err(why),
        });
    }

    /// What a key holds, by the first answer that there is.
    #[track_caller]
    pub fn read(&self, key: &str) -> Option<String> {
        let range = Range { key: key.as_bytes().to_vec(), ..Default::default() };
        let found = self.until(|_| {
            let voter = self.voters().into_iter().next().ok_or("no voter is ready")?;
            self.runtime.block_on(voter.range(range.clone())).map_err(|error| error.to_string())
        });
        found.key_values.first().map(|found| String::from_utf8_lossy(&found.value).into_owned())
    }
}
