use std::fs;

use tempfile::TempDir;

use super::*;

/// Loads with a file of this text and these variables and flags; no other source is looked at.
fn load_with(toml: &str, env: &[(&str, &str)], flags: &[(&'static str, &str, &str)]) -> Result<Loaded, Error> {
    let temp = TempDir::new().expect("a directory");
    let file = temp.path().join("test.toml");
    fs::write(&file, toml).expect("written");
    load(&Sources {
        file: Some(file),
        env: env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect(),
        flags: flags
            .iter()
            .map(|&(name, key, value)| Flag { name, key: key.to_owned(), value: value.to_owned() })
            .collect(),
    })
}

fn error_of(toml: &str, env: &[(&str, &str)]) -> String {
    load_with(toml, env, &[]).expect_err("must be refused").to_string()
}

#[track_caller]
fn assert_says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Every leaf of a dictionary: dotted key and value as TOML.
fn leaves(values: &figment::value::Dict, above: &str, found: &mut Vec<(String, Option<String>)>) {
    for (name, value) in values {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            Value::Dict(_, inner) => leaves(inner, &key, found),
            _ => found.push((key, print::toml(value))),
        }
    }
}

#[test]
fn tables_and_defaults_say_the_same() {
    let mut serialised = Vec::new();
    leaves(&dictionary(&Settings::default()).expect("serialises"), "", &mut serialised);
    let mut listed: Vec<_> = all().map(|entry| (entry.key(), Some(entry.setting.default.to_owned()))).collect();
    listed.sort();
    assert_eq!(serialised, listed);
}

#[test]
fn every_key_can_be_a_variable() {
    for entry in all() {
        let key = entry.key();
        assert!(key.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.')), "{key}");
        assert!(!key.contains("__") && !key.contains("_.") && !key.contains("._"), "{key}");
    }
}

#[test]
fn the_defaults_stand_alone() {
    let loaded = load_with("", &[], &[]).expect("valid");
    let defaults = Settings::default();
    assert_eq!(loaded.settings.server, defaults.server);
    assert_eq!(loaded.settings.cluster, defaults.cluster);
    assert_eq!(loaded.settings.auth, defaults.auth);
    assert_eq!(loaded.settings.log, defaults.log);
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() {
    let toml = "[log]\nlevel = 'error'\nformat = 'json'\n[server]\ndata_dir = 'f'\ndrain_timeout = '3s'";
    let env = [("NOMINA_LOG__LEVEL", "warn"), ("NOMINA_SERVER__DATA_DIR", "e")];
    let flags = [("--log-level", "log.level", "debug"), ("--set", "log.level", "trace")];
    let loaded = load_with(toml, &env, &flags).expect("valid");
    let settings = &loaded.settings;
    assert_eq!(settings.log.level, "trace");
    assert_eq!(settings.server.data_dir, PathBuf::from("e"));
    assert_eq!(settings.log.format, crate::telemetry::LogFormat::Json);
    assert_eq!(settings.server.drain_timeout, std::time::Duration::from_secs(3));
    assert_eq!(loaded.origin("log.level"), Some(&Origin::Flag("--set")));
    assert_eq!(loaded.origin("server.data_dir"), Some(&Origin::Env("NOMINA_SERVER__DATA_DIR".to_owned())));
    assert!(matches!(loaded.origin("log.format"), Some(Origin::File(path)) if path.ends_with("test.toml")));
    assert_eq!(loaded.origin("cluster.secret"), Some(&Origin::Default));
    assert_eq!(loaded.origin("no.such"), None);
}

#[test]
fn ports_and_name_follow_http_unless_written_down() {
    let loaded = load_with("[server]\nhttp = '[::1]:7000'\npeer = '127.0.0.1:5'", &[], &[]).expect("valid");
    assert_eq!(loaded.settings.server.grpc, address("[::1]:8000"));
    assert_eq!(loaded.settings.server.peer, address("127.0.0.1:5"));
    assert_eq!(loaded.settings.cluster.advertise, "[::1]:7000");
    assert_eq!(loaded.settings.push.udp, address("[::1]:0"));
    assert_eq!(loaded.origin("server.grpc"), Some(&Origin::Derived("port of server.http + 1000")));
}

#[test]
fn port_zero_is_followed_by_port_zero() {
    let loaded = load_with("", &[("NOMINA_SERVER__HTTP", "127.0.0.1:0")], &[]).expect("valid");
    assert_eq!(loaded.settings.server.grpc, address("127.0.0.1:0"));
}

#[test]
fn an_http_port_without_room_above_is_refused_unless_the_others_are_written_down() {
    let error = error_of("", &[("NOMINA_SERVER__HTTP", "127.0.0.1:65000")]);
    assert_says(&error, &["`server.http`", "127.0.0.1:65000", "NOMINA_SERVER__HTTP", "no port 66000", "64534"]);
    assert_says(&error_of("[server]\nhttp = '127.0.0.1:64535'", &[]), &["`server.peer`", "no port 65536"]);
    load_with("[server]\nhttp = '127.0.0.1:65000'\ngrpc = '127.0.0.1:1'\npeer = '127.0.0.1:2'", &[], &[])
        .expect("valid");
}

#[test]
fn unknown_keys_are_named_with_their_origin_and_what_is_allowed() {
    let unknown_in_file = error_of("[server]\nhtpp = 1", &[]);
    assert_says(&unknown_in_file, &["`server.htpp`", "test.toml", "allowed: server.http, server.grpc"]);
    assert_says(&error_of("[sever]\nhttp = 1", &[]), &["`sever`", "allowed: server.…"]);
    assert_says(&error_of("server = 1", &[]), &["`server`", "server.http"]);
    assert_says(&error_of("'server.http' = 'x'", &[]), &["`server.http`", "test.toml"]);
    assert_says(&error_of("", &[("NOMINA_SERVER_HTTP", "x")]), &["NOMINA_SERVER_HTTP", "did you mean `server.http`"]);
    assert_says(&error_of("", &[("NOMINA_SERVER__PORT", "x")]), &["`server.port`", "NOMINA_SERVER__PORT"]);
    assert_says(&error_of("", &[("NOMINA_server__http", "x")]), &["NOMINA_server__http", "upper case"]);
    let error = load_with("", &[], &[("--set", "registry", "x")]).expect_err("unknown").to_string();
    assert_says(&error, &["`registry`", "flag --set"]);
}

#[test]
fn variables_that_are_not_settings_are_left_alone() {
    let env = [("NOMINA_CONFIG", "/no/such/file"), ("NOMINA_SERVICE_HOST", "10.0.0.1"), ("OTHER_SERVER__HTTP", "x")];
    load_with("", &env, &[]).expect("valid");
}

#[test]
fn the_file_can_be_named_in_the_environment() {
    let sources = Sources { env: vec![("NOMINA_CONFIG".into(), "/no/such/file.toml".into())], ..Sources::default() };
    assert_says(&load(&sources).expect_err("missing").to_string(), &["/no/such/file.toml"]);
}

#[test]
fn bad_values_are_named_with_their_origin_and_what_is_allowed() {
    for (toml, parts) in [
        ("[server]\nhttp = 'localhost:1'", ["`server.http`", "\"localhost:1\"", "IP:PORT"]),
        ("[server]\nhttp = 8848", ["`server.http`", "8848", "IP:PORT"]),
        ("[server.http]\nport = 8848", ["`server.http`", "8848", "IP:PORT"]),
        ("[server]\ndrain_timeout = 15", ["`server.drain_timeout`", "15 ", "needs a unit"]),
        ("[server]\ndrain_timeout = '15'", ["`server.drain_timeout`", "\"15\"", "needs a unit"]),
        ("[server]\ndrain_timeout = '15 years'", ["`server.drain_timeout`", "\"15 years\"", "\"500ms\""]),
        ("[server]\ndrain_timeout = '2h'", ["`server.drain_timeout`", "\"2h\"", "longer than an hour"]),
        ("[server]\ndata_dir = ''", ["`server.data_dir`", "\"\"", "not empty"]),
        ("[server]\ndata_dir = 7", ["`server.data_dir`", "7", "a path"]),
        ("[auth]\nmode = 'maybe'", ["`auth.mode`", "\"maybe\"", "\"off\""]),
        ("[auth]\nmode = 0", ["`auth.mode`", "0", "\"off\""]),
        ("[log]\nformat = 1", ["`log.format`", "1", "\"json\""]),
        ("[log]\nlevel = 'inof'", ["`log.level`", "\"inof\"", "trace"]),
        ("[cluster]\nmembers = 'a:1'", ["`cluster.members`", "\"a:1\"", "list"]),
        ("[cluster]\nmembers = [1]", ["`cluster.members`", "[1]", "list"]),
    ] {
        let error = error_of(toml, &[]);
        assert_says(&error, &parts);
        assert_says(&error, &["test.toml", "allowed: "]);
    }
}

#[test]
fn what_is_not_built_is_refused_clearly() {
    assert_says(&error_of("[auth]\nmode = 'on'", &[]), &["`auth.mode`", "not available in this version"]);
}

#[test]
fn a_cluster_is_configured_whole_or_refused_clearly() {
    let members = ("NOMINA_CLUSTER__MEMBERS", r#"["a:1", "127.0.0.1:8848"]"#);
    let secret = ("NOMINA_CLUSTER__SECRET", "0123456789abcdef0123456789abcdef");
    let loaded = load_with("", &[members, secret], &[]).expect("valid");
    assert!(loaded.settings.cluster.is_clustered());
    assert_says(&error_of("", &[members]), &["`cluster.secret`", "default", "at least 32 bytes, and it has 0"]);
    let error = error_of("[server]\nhttp = '127.0.0.1:7000'", &[members, secret]);
    assert_says(&error, &["`cluster.advertise`", "127.0.0.1:7000, is not among", "127.0.0.1:8848, a:1"]);
    let error = error_of("[cluster]\nmembers = ['a:1', 'b c']", &[secret]);
    assert_says(&error, &["`cluster.members`", "member 'b c'", "test.toml", "a list of at most 256 names"]);
    let error = error_of("[cluster]\nmembers_dns = '_a._tcp.n'\nmembers_file = 'f'", &[secret]);
    assert_says(&error, &["`cluster.members_dns`", "cluster.members_file is set too", "only one of"]);
}

#[test]
fn text_from_the_environment_is_read_as_the_setting_asks() {
    let env =
        [("NOMINA_SERVER__DATA_DIR", "2024"), ("NOMINA_LOG__LEVEL", "\"warn\""), ("NOMINA_CLUSTER__MEMBERS", "[]")];
    let loaded = load_with("", &env, &[]).expect("valid");
    assert_eq!(loaded.settings.server.data_dir, PathBuf::from("2024"));
    assert_eq!(loaded.settings.log.level, "warn");
    let error = error_of("", &[("NOMINA_CLUSTER__MEMBERS", "a:1,b:1")]);
    assert_says(&error, &["`cluster.members`", "a:1,b:1", "NOMINA_CLUSTER__MEMBERS"]);
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf_8_is_named() {
    use std::os::unix::ffi::OsStringExt;

    let env = vec![("NOMINA_LOG__LEVEL".into(), OsString::from_vec(vec![0xff]))];
    let error = load(&Sources { env, ..Sources::default() }).expect_err("not text").to_string();
    assert_says(&error, &["NOMINA_LOG__LEVEL", "UTF-8"]);
}

#[test]
fn secrets_are_shown_nowhere() {
    let loaded = load_with("", &[("NOMINA_CLUSTER__SECRET", "47110815")], &[]).expect("a numeric secret is a text");
    assert_eq!(loaded.settings.cluster.secret.reveal(), "47110815");
    for shown in [loaded.to_toml(), format!("{loaded:?}")] {
        assert!(shown.contains(MASK) && !shown.contains("4711"), "{shown}");
    }
    for toml in [
        "[cluster]\nsecret = 47110815",
        "[cluster]\nsecret = 4711.0815",
        "[cluster]\nsecret = [47110815]",
        "[cluster]\nsecret = { x = 47110815 }",
        "[cluster]\nsecret = ' 47110815'",
        "[cluster]\nsecret = 4711-a",
        "[cluster]\nsecret = '47110815",
    ] {
        let error = load_with(toml, &[], &[]).expect_err(toml);
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("4711"), "{shown}");
    }
    assert_says(&error_of("[cluster]\nsecret = 47110815", &[]), &["`cluster.secret`", MASK, "a text in quotes"]);
}

#[test]
fn broken_files_are_named_with_the_place() {
    assert_says(&error_of("[log]\nlevel = ?", &[]), &["test.toml", "line 2, column 9", "not valid TOML"]);
    assert_says(&error_of("[log]\nlevel = 'a'\nlevel = 'b'", &[]), &["test.toml", "line 3", "duplicate key"]);
}

#[test]
fn a_listener_that_others_reach_needs_auth_mode_to_be_written_down() {
    for key in ["http", "grpc"] {
        for ip in ["0.0.0.0", "10.1.2.3", "[::]", "[::ffff:10.1.2.3]"] {
            let toml = format!("[server]\n{key} = '{ip}:8000'");
            let error = error_of(&toml, &[]);
            assert_says(&error, &[&format!("`server.{key}`"), "test.toml", "NOMINA_AUTH__MODE=off", "mode = \"off\""]);
            load_with(&toml, &[("NOMINA_AUTH__MODE", "off")], &[]).expect("decided by variable");
            load_with(&toml, &[], &[("--set", "auth.mode", "off")]).expect("decided by flag");
            load_with(&format!("{toml}\n[auth]\nmode = 'off'"), &[], &[]).expect("decided in the file");
        }
    }
    for ip in ["127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"] {
        load_with(&format!("[server]\nhttp = '{ip}:8000'"), &[], &[]).expect(ip);
    }
}

#[test]
fn what_is_printed_is_toml_that_reads_back_the_same() {
    let toml = "[server]\ndata_dir = 'a\"b\\c'\ndrain_timeout = '1500ms'\n[log]\nformat = 'json'";
    let first = load_with(toml, &[], &[]).expect("valid");
    let printed = first.to_toml();
    let again = load_with(&printed, &[], &[]).expect(&printed);
    assert_eq!(again.settings.server, first.settings.server);
    assert_eq!(again.settings.log, first.settings.log);
    assert_says(
        &printed,
        &["drain_timeout = \"1500ms\"  # file ", "grpc = \"127.0.0.1:9848\"  # default: port of server.http + 1000\n"],
    );
}
