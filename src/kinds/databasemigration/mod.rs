//! DatabaseMigration: the schema of a database, changed by scripts that run once and in order.
//!
//! - [`assignment`]: what one run is asked to do. Pure.
//! - [`result`]: what one run reports. Pure.
//! - [`runner`]: what carries that out, in a Job beside the database.

pub mod assignment;
pub mod result;
pub mod runner;
