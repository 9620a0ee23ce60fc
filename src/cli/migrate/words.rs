//! Words of a DatabaseMigration as values of options.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::kinds::databasemigration::assignment::{Engine, OutOfOrder, TlsMode};

impl ValueEnum for Engine {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::PostgreSQL, Self::MySQL, Self::MariaDB, Self::SQLite]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.as_str());
        Some(match self {
            Self::PostgreSQL => value.help("PostgreSQL, from 12 on").aliases(["postgresql", "postgres"]),
            Self::MySQL => value.help("MySQL, from 8.0 on").alias("mysql"),
            Self::MariaDB => value.help("MariaDB, from 10.6 on").alias("mariadb"),
            Self::SQLite => value.help("A file of SQLite 3").alias("sqlite"),
        })
    }
}

impl ValueEnum for TlsMode {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Disable, Self::Require, Self::VerifyCA, Self::VerifyFull]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (word, alias, help) = match self {
            Self::Disable => ("Disable", "disable", "Not at all"),
            Self::Require => ("Require", "require", "Encrypted, whatever certificate the server has"),
            Self::VerifyCA => ("VerifyCA", "verify-ca", "The server's certificate is of the given authority"),
            Self::VerifyFull => {
                ("VerifyFull", "verify-full", "The same, and it is for the name that was dialled")
            }
        };
        Some(PossibleValue::new(word).alias(alias).help(help))
    }
}

impl ValueEnum for OutOfOrder {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Reject, Self::Allow]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (word, alias, help) = match self {
            Self::Reject => ("Reject", "reject", "No"),
            Self::Allow => ("Allow", "allow", "Yes"),
        };
        Some(PossibleValue::new(word).alias(alias).help(help))
    }
}
