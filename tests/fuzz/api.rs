//! The random objects of the tests in the library, drawn from the schemas: they cannot be had from there.

#[path = "../../src/properties/arbitrary.rs"]
pub mod arbitrary;

use gatehouse::api::{Kind, Version, schema};
