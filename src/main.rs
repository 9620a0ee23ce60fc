//! The thin binary: everything is in the library.

use std::process::ExitCode;

use clap::Parser;

/// glibc keeps what a burst of large reviews took; this one gives it back, and serves small pieces more quickly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // First of all: whoever opens a TLS connection later, ours or a library, takes what is installed here. It fails
    // only where one is installed already, and nothing has run yet.
    let _fresh = rustls::crypto::aws_lc_rs::default_provider().install_default();
    gatehouse::cli::run(gatehouse::cli::Cli::parse())
}
