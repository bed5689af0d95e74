//! The `nomina` command. Exit codes: 0 done, 1 failed while running, 2 wrong usage or configuration.

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;
use nomina::cli::Cli;

/// Instead of the system's: registrations in a cluster cost a fifth less, and what clients that leave have held goes back
/// to the system, where glibc keeps it in pieces.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to be told if standard error is closed.
            let _ = writeln!(io::stderr(), "nomina: {}", whole_message(&error));
            ExitCode::from(error.exit_code())
        }
    }
}

/// The error and what caused it, in one line.
fn whole_message(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message
}
