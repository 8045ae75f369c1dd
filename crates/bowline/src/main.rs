//! The one binary. Everything it does is in the library beside it.

use std::process::ExitCode;

/// A hub holds millions of small records that come and go: see docs/dependencies.md.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    bowline::run(std::env::args_os())
}
