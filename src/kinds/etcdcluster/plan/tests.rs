//! The plan, rule by rule and run to its end.

mod alarms;
mod certificates;
mod claims;
mod config;
mod crashes;
mod downgrades;
mod foreign;
mod inconsistent;
mod learners;
mod memory;
mod objects;
mod pods;
mod progress;
mod recoveries;
mod requests;
mod rules;
mod sequences;
mod serving;
mod walks;
mod world;
