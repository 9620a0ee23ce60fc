//! The thin binary: everything is in the library.

use std::process::ExitCode;

use clap::Parser;

/// What a burst of large reviews took is given back some seconds later, by a thread of the allocator's own.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // First of all: each TLS connection that our code or a library opens later takes what is installed here. It fails
    // only where one is installed already, and nothing has run yet.
    let _fresh = rustls::crypto::aws_lc_rs::default_provider().install_default();
    gatehouse::cli::run(gatehouse::cli::Cli::parse())
}
