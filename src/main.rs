//! The `nomina` command.

fn main() {}
