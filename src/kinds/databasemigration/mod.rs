//! DatabaseMigration: the schema of a database, changed by scripts that run once and in order.
//!
//! - [`assignment`]: what one run is asked to do. Pure.
//! - [`result`]: what one run reports. Pure.

pub mod assignment;
pub mod result;
