//! The command line: what was asked for, and the settings that were given with it.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, Parser, Subcommand};

use crate::{
    config::{self, Flag, Loaded, Sources},
    node, telemetry,
};

/// A clustered service registry that speaks gRPC, and HTTP v1 of the Nacos naming API.
#[derive(Debug, Parser)]
#[command(name = "nomina", version, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: Flags,
}

const AFTER_HELP: &str = "Every setting can also stand in the configuration file, or in the environment as NOMINA_<SECTION>__<NAME>.\n\
    `nomina config` prints the settings in effect and where each comes from.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node (this is also what happens without a command)
    Serve {
        #[command(flatten)]
        flags: Flags,
    },
    /// Print the settings in effect as TOML, each with its origin
    Config {
        /// Print the table of all settings instead, as Markdown
        #[arg(long)]
        markdown: bool,
        #[command(flatten)]
        flags: Flags,
    },
}

#[derive(Debug, Default, Args)]
struct Flags {
    /// The configuration file (TOML) [default: nomina.toml, if there is one] [env: NOMINA_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listener of the HTTP API (server.http)
    #[arg(long, value_name = "IP:PORT")]
    http: Option<String>,
    /// Listener of the gRPC API (server.grpc) [default: HTTP port + 1000]
    #[arg(long, value_name = "IP:PORT")]
    grpc: Option<String>,
    /// Directory of what survives a restart (server.data_dir)
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// What is logged (log.level)
    #[arg(long, value_name = "FILTER")]
    log_level: Option<String>,
    /// How it is logged: text or json (log.format)
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Any setting, by its dotted key; wins over all other flags; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A `--set` without a key or an equals sign.
    #[error("bad value for --set: `{0}`; allowed: KEY=VALUE, such as server.http=127.0.0.1:8848")]
    Set(String),
    /// The settings cannot be used.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// Logging cannot start.
    #[error("cannot start logging")]
    Telemetry(#[from] telemetry::Error),
    /// The runtime cannot start, or nothing can be written to standard output.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The node could not start, or failed.
    #[error(transparent)]
    Node(#[from] node::Error),
}

impl Error {
    /// The exit code: 2 if what the operator wrote is at fault, else 1.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Set(_) | Self::Config(_) => 2,
            Self::Telemetry(_) | Self::Io(_) | Self::Node(_) => 1,
        }
    }
}

impl Cli {
    /// Does what was asked for; returns when it is done, for `serve` when the node was told to stop.
    ///
    /// # Errors
    /// [`Error`]: whatever stopped it.
    pub fn run(self) -> Result<(), Error> {
        match self.command {
            None => serve(load(self.flags)?),
            Some(Command::Serve { flags }) => serve(load(self.flags.with(flags))?),
            Some(Command::Config { markdown: true, .. }) => print(&config::markdown()),
            Some(Command::Config { markdown: false, flags }) => print(&load(self.flags.with(flags))?.to_toml()),
        }
    }
}

impl Flags {
    /// These flags, given before the command, and `later` ones, given after it; the later win.
    fn with(self, later: Self) -> Self {
        let mut set = self.set;
        set.extend(later.set);
        Self {
            config: later.config.or(self.config),
            http: later.http.or(self.http),
            grpc: later.grpc.or(self.grpc),
            data_dir: later.data_dir.or(self.data_dir),
            log_level: later.log_level.or(self.log_level),
            log_format: later.log_format.or(self.log_format),
            set,
        }
    }
}

fn load(flags: Flags) -> Result<Loaded, Error> {
    let named = [
        ("--http", "server.http", flags.http),
        ("--grpc", "server.grpc", flags.grpc),
        ("--data-dir", "server.data_dir", flags.data_dir),
        ("--log-level", "log.level", flags.log_level),
        ("--log-format", "log.format", flags.log_format),
    ];
    let mut given: Vec<Flag> = named
        .into_iter()
        .filter_map(|(name, key, value)| Some(Flag { name, key: key.to_owned(), value: value? }))
        .collect();
    for text in flags.set {
        let Some((key, value)) = text.split_once('=') else { return Err(Error::Set(text)) };
        given.push(Flag { name: "--set", key: key.trim().to_owned(), value: value.trim().to_owned() });
    }
    Ok(config::load(&Sources::of_process(flags.config, given))?)
}

fn serve(loaded: Loaded) -> Result<(), Error> {
    let log = telemetry::start(&loaded.settings.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(node::run(loaded.settings, log))?)
}

/// Writes to standard output. A reader that went away (`| head`) has seen what it wanted.
fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_before_and_after_the_command_add_up() {
        let line = ["nomina", "--http", "a", "--set", "x=1", "serve", "--grpc", "b", "--http", "c", "--set", "y=2"];
        let cli = Cli::try_parse_from(line).expect("valid");
        let Some(Command::Serve { flags }) = cli.command else { unreachable!("serve was asked for") };
        let flags = cli.flags.with(flags);
        assert_eq!((flags.http.as_deref(), flags.grpc.as_deref()), (Some("c"), Some("b")));
        assert_eq!(flags.set, ["x=1", "y=2"]);
    }
}
