//! How a session reads quotes and blocks, as its `sql_mode` says.

/// What of a `sql_mode` decides where a statement ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Double quotes are around names.
    pub ansi_quotes: bool,
    /// A backslash is a character like any other.
    pub no_backslash_escapes: bool,
    /// Programs are written as in Oracle.
    pub oracle: bool,
}

/// The bits of a `sql_mode` that is a number. `ANSI` and the modes of other products have the quotes too.
pub const BITS: [(u64, Modes); 3] = [
    (
        4 | 256 | 1024 | 2048 | 4096 | 262_144,
        Modes { ansi_quotes: true, no_backslash_escapes: false, oracle: false },
    ),
    (1 << 20, Modes { ansi_quotes: false, no_backslash_escapes: true, oracle: false }),
    (512, Modes { ansi_quotes: true, no_backslash_escapes: false, oracle: true }),
];

impl Modes {
    /// Those of a `sql_mode`.
    #[must_use]
    pub fn of(sql_mode: &str) -> Self {
        let mut modes = Self::default();
        for mode in sql_mode.split(',') {
            match mode.trim().to_ascii_uppercase().as_str() {
                "ANSI" | "ANSI_QUOTES" | "DB2" | "MAXDB" | "MSSQL" | "POSTGRESQL" => modes.ansi_quotes = true,
                "NO_BACKSLASH_ESCAPES" => modes.no_backslash_escapes = true,
                "ORACLE" => (modes.ansi_quotes, modes.oracle) = (true, true),
                _ => {}
            }
        }
        modes
    }

    /// These, and the other ones.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self {
            ansi_quotes: self.ansi_quotes || other.ansi_quotes,
            no_backslash_escapes: self.no_backslash_escapes || other.no_backslash_escapes,
            oracle: self.oracle || other.oracle,
        }
    }

    /// These without the other ones.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self {
            ansi_quotes: self.ansi_quotes && !other.ansi_quotes,
            no_backslash_escapes: self.no_backslash_escapes && !other.no_backslash_escapes,
            oracle: self.oracle && !other.oracle,
        }
    }
}
