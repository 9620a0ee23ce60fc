//! Storage version migration: the objects of a definition, ours or any other, are written in its storage version, so that
//! older versions can be removed from it.
//!
//! ```text
//!  begin ─▶ pass 1 ─▶ pass 2 …        each pass: pages of metadata ─▶ patches that change nothing, some at a time
//!    │                   └ until one finds nothing to write
//!    └ a minute after the definition was written        end ─▶ status.storedVersions
//! ```
//!
//! Guarantees: no write of another client is lost, for a patch names the state that it was made for and changes nothing;
//! `storedVersions` is reduced only in the definition that the migration began with, whose spec has not changed, after a
//! pass over all objects in which each could be written; a migration that ends early is taken up where it stood.
//! Assumes: one minute after a definition was written all API servers write in the version that it says.
//! Never: holds more objects than two pages; looks into etcd: that an object was stored in another version shows by its
//! being written.

pub mod keep;
mod migrate;
pub mod numbers;
pub mod observation;
pub mod plan;
pub mod requests;

pub use migrate::{Error, Event, Migration, Options, Outcome, Silent, Watch, say_settled};
