//! Configuration and command line, through the real binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Output},
};

use nomina::data_dir::DataDir;
use tempfile::TempDir;

/// A directory to run the binary in, with nothing of this process's environment.
struct Place {
    dir: TempDir,
    env: Vec<(&'static str, String)>,
}

impl Place {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap(), env: Vec::new() }
    }

    fn env(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.path().join(name), text).unwrap();
        self
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_nomina"))
            .args(args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.path())
            .output()
            .unwrap()
    }

    /// Standard output of a run that must succeed.
    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Standard error of a run that must end with `code`, and has one line that holds all `parts`.
    #[track_caller]
    fn fails(&self, code: i32, args: &[&str], parts: &[&str]) -> String {
        let output = self.run(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{args:?}");
        let last = stderr.lines().last().unwrap_or_default();
        for part in parts {
            assert!(last.contains(part), "{args:?}: {part:?} is not in: {stderr}");
        }
        stderr
    }
}

/// The line of `nomina config` that sets `name`.
#[track_caller]
fn line<'a>(printed: &'a str, name: &str) -> &'a str {
    printed.lines().find(|line| line.starts_with(&format!("{name} = "))).expect(printed)
}

#[test]
fn each_source_beats_the_one_below() {
    let place = Place::new();
    assert_eq!(line(&place.ok(&["config"]), "level"), "level = \"info\"  # default");
    let place = place.file("nomina.toml", "[log]\nlevel = 'error'");
    assert_eq!(line(&place.ok(&["config"]), "level"), "level = \"error\"  # file nomina.toml");
    let place = place.file("other.toml", "[log]\nlevel = 'off'");
    assert_eq!(line(&place.ok(&["config", "--config", "other.toml"]), "level"), "level = \"off\"  # file other.toml");
    let place = place.env("NOMINA_LOG__LEVEL", "warn");
    let printed = place.ok(&["config"]);
    assert_eq!(line(&printed, "level"), "level = \"warn\"  # environment variable NOMINA_LOG__LEVEL");
    let printed = place.ok(&["config", "--log-level", "debug"]);
    assert_eq!(line(&printed, "level"), "level = \"debug\"  # flag --log-level");
    let printed = place.ok(&["--log-level", "debug", "config", "--set", "log.level=trace"]);
    assert_eq!(line(&printed, "level"), "level = \"trace\"  # flag --set");
}

#[test]
fn flags_that_are_not_given_erase_nothing() {
    let place = Place::new().file(
        "nomina.toml",
        "[server]\nhttp = '127.0.0.1:1'\ngrpc = '127.0.0.1:2'\ndata_dir = 'd'\n[log]\nlevel = 'warn'\nformat = 'json'",
    );
    let printed = place.ok(&["config", "--http", "127.0.0.1:3"]);
    assert_eq!(line(&printed, "http"), "http = \"127.0.0.1:3\"  # flag --http");
    for name in ["grpc", "data_dir", "level", "format"] {
        assert!(line(&printed, name).ends_with("# file nomina.toml"), "{printed}");
    }
}

#[test]
fn what_config_prints_is_a_configuration_file() {
    let place = Place::new().env("NOMINA_SERVER__HTTP", "127.0.0.1:7000");
    let printed = place.ok(&["config", "--data-dir", "a # b", "--set", "server.drain_timeout=90s"]);
    let values: toml::Table = toml::from_str(&printed).unwrap();
    assert_eq!(values["server"]["data_dir"].as_str(), Some("a # b"));
    assert_eq!(values["server"]["grpc"].as_str(), Some("127.0.0.1:8000"));
    let again = Place::new().file("nomina.toml", &printed).ok(&["config"]);
    assert_eq!(toml::from_str::<toml::Table>(&again).unwrap(), values);
}

#[test]
fn the_file_can_be_named_in_the_environment_and_the_flag_wins() {
    let place = Place::new()
        .file("a.toml", "[log]\nlevel = 'warn'")
        .file("b.toml", "[log]\nlevel = 'error'")
        .env("NOMINA_CONFIG", "a.toml");
    assert_eq!(line(&place.ok(&["config"]), "level"), "level = \"warn\"  # file a.toml");
    assert_eq!(line(&place.ok(&["config", "--config", "b.toml"]), "level"), "level = \"error\"  # file b.toml");
}

#[test]
fn unknown_settings_stop_the_start() {
    let place = Place::new().file("nomina.toml", "[server]\nhtpp = '127.0.0.1:1'");
    place.fails(2, &["serve"], &["`server.htpp`", "file nomina.toml", "server.http"]);
    let place = Place::new().env("NOMINA_SERVER_HTTP", "127.0.0.1:1");
    place.fails(2, &[], &["NOMINA_SERVER_HTTP", "did you mean", "NOMINA_SERVER__HTTP"]);
    Place::new().fails(2, &["--set", "a.b=1"], &["`a.b`", "flag --set", "server.…"]);
    Place::new().fails(2, &["--no-such-flag"], &[]);
    Place::new().fails(2, &["no-such-command"], &[]);
}

#[test]
fn bad_values_stop_the_start() {
    let place = Place::new().file("nomina.toml", "[server]\nhttp = 'localhost'");
    place.fails(2, &[], &["`server.http`", "\"localhost\"", "file nomina.toml", "allowed: IP:PORT"]);
    let place = Place::new().env("NOMINA_LOG__FORMAT", "xml");
    place.fails(2, &[], &["`log.format`", "\"xml\"", "NOMINA_LOG__FORMAT", "\"text\" or \"json\""]);
    Place::new().fails(2, &["--log-level", "inof"], &["`log.level`", "\"inof\"", "flag --log-level", "trace"]);
    Place::new().fails(2, &["--http", "127.0.0.1:65535"], &["`server.http`", "127.0.0.1:65535", "flag --http"]);
    Place::new().file("nomina.toml", "[log").fails(2, &[], &["nomina.toml", "line 1", "not valid TOML"]);
}

#[test]
fn durations_need_a_unit() {
    for value in ["15", "\"15\""] {
        let place = Place::new().file("nomina.toml", &format!("[server]\ndrain_timeout = {value}"));
        place.fails(2, &[], &["`server.drain_timeout`", value, "nomina.toml", "needs a unit", "\"500ms\""]);
    }
    let place = Place::new().env("NOMINA_SERVER__DRAIN_TIMEOUT", "15");
    place.fails(2, &[], &["`server.drain_timeout`", "NOMINA_SERVER__DRAIN_TIMEOUT", "needs a unit"]);
}

#[test]
fn a_named_file_must_exist() {
    Place::new().fails(2, &["--config", "none.toml"], &["cannot read", "none.toml", "No such file"]);
    Place::new().env("NOMINA_CONFIG", "none.toml").fails(2, &[], &["cannot read", "none.toml"]);
    Place::new().fails(2, &["--config", "."], &["cannot read", "directory"]);
}

#[test]
fn an_open_listener_needs_a_decision() {
    let place = Place::new();
    for args in [["--http", "0.0.0.0:0"], ["--grpc", "[::]:0"]] {
        place.fails(2, &args, &["auth.mode", args[1], "NOMINA_AUTH__MODE=off", "--set auth.mode=off"]);
        place.ok(&["config", args[0], args[1], "--set", "auth.mode=off"]);
    }
    let place = Place::new().env("NOMINA_AUTH__MODE", "off");
    place.ok(&["config", "--http", "0.0.0.0:0"]);
}

#[test]
fn what_is_not_available_is_refused() {
    Place::new().fails(2, &["--set", "auth.mode=on"], &["`auth.mode`", "not available in this version"]);
}

#[test]
fn a_cluster_without_a_secret_or_without_this_node_does_not_start() {
    let place = Place::new().env("NOMINA_CLUSTER__MEMBERS", "[\"127.0.0.10:8848\"]");
    place.fails(2, &[], &["`cluster.advertise`", "127.0.0.1:8848, is not among cluster.members: 127.0.0.10:8848"]);
    let place = place.env("NOMINA_CLUSTER__ADVERTISE", "127.0.0.10.:8848");
    place.fails(2, &[], &["`cluster.secret`", "at least 32 bytes"]);
    let place = place.env("NOMINA_CLUSTER__SECRET", "0123456789abcdef0123456789abcdef");
    let printed = place.ok(&["config"]);
    assert!(line(&printed, "members").starts_with("members = [\"127.0.0.10:8848\"]  # environment"), "{printed}");
    assert!(!printed.contains("0123456789abcdef"));
}

#[test]
fn secrets_are_never_printed() {
    let place = Place::new().env("NOMINA_CLUSTER__SECRET", "47110815");
    let printed = place.ok(&["config"]);
    assert_eq!(line(&printed, "secret"), "secret = \"********\"  # environment variable NOMINA_CLUSTER__SECRET");
    let error = Place::new().env("NOMINA_CLUSTER__SECRET", "47110815\n").fails(2, &[], &["`cluster.secret`", "****"]);
    assert!(!error.contains("4711"), "{error}");
    for value in ["47110815", "4711 0815", "'4711", "{ a = 47110815 }"] {
        let place = Place::new().file("nomina.toml", &format!("[cluster]\nsecret = {value}"));
        let error = place.fails(2, &[], &["nomina.toml"]);
        assert!(!error.contains("4711"), "{error}");
    }
    assert_eq!(line(&Place::new().ok(&["config"]), "secret"), "secret = \"\"  # default");
}

#[test]
fn set_takes_toml_values_and_bare_text() {
    let args = ["config", "--set", "log.level=\"warn\"", "--set", "server.data_dir=a=b", "--set", "cluster.members=[]"];
    let printed = Place::new().ok(&args);
    assert_eq!(line(&printed, "level"), "level = \"warn\"  # flag --set");
    assert_eq!(line(&printed, "data_dir"), "data_dir = \"a=b\"  # flag --set");
    assert_eq!(line(&printed, "members"), "members = []  # flag --set");
    Place::new().fails(2, &["--set", "log.level"], &["--set", "`log.level`", "KEY=VALUE"]);
}

#[test]
fn version_and_help() {
    assert_eq!(Place::new().ok(&["--version"]), format!("nomina {}\n", env!("CARGO_PKG_VERSION")));
    assert!(Place::new().ok(&["--help"]).contains("NOMINA_<SECTION>__<NAME>"));
}

#[test]
fn markdown_is_the_table_of_the_library() {
    let place = Place::new().file("nomina.toml", "not even TOML");
    assert_eq!(place.ok(&["config", "--markdown"]), nomina::config::markdown());
}

#[test]
fn a_data_directory_in_use_is_refused() {
    let place = Place::new();
    let held = DataDir::open(&place.path().join("data")).unwrap();
    let holder = format!("process {}", std::process::id());
    let directory = held.path().display().to_string();
    place.fails(1, &["--http", "127.0.0.1:0"], &["server.data_dir", &directory, &holder]);
}

#[test]
fn a_port_in_use_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let place = Place::new();
    place.fails(1, &["--http", "127.0.0.1:0", "--grpc", &address], &["server.grpc", &address, "in use"]);
    let args = ["--http", &address, "--grpc", "127.0.0.1:0", "--set", "server.peer=127.0.0.1:0"];
    place.fails(1, &args, &["server.http", &address, "in use"]);
}
