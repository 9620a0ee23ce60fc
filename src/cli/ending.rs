//! How a command ends: its exit code, the same for every command, or its failure.

/// It worked.
pub const OK: u8 = 0;
/// It failed, or found faults.
pub const FAILED: u8 = 1;
/// The command line is wrong, or what it names could not be read.
pub const USAGE: u8 = 2;

/// A command's failure, for a person.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
