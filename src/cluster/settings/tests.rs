use super::*;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn clustered() -> Settings {
    Settings {
        advertise: "A.:1".to_owned(),
        members: ["a:1", "b:1"].map(str::to_owned).to_vec(),
        secret: Secret::new(SECRET),
        ..Settings::default()
    }
}

#[track_caller]
fn assert_problem(settings: &Settings, key: &str, says: &str) {
    let problem = settings.check().expect_err("must be refused");
    assert_eq!(problem.key, key, "{problem}");
    assert!(problem.reason.contains(says), "{problem}");
}

#[test]
fn a_node_alone_and_a_node_of_a_cluster_are_fine() {
    assert_eq!(Settings::default().check(), Ok(()));
    assert!(!Settings::default().is_clustered());
    assert_eq!(clustered().check(), Ok(()));
    assert!(clustered().is_clustered());
}

#[test]
fn names_are_host_and_port() {
    for good in ["a:1", "nomina-0.nomina.svc:8848", "[::1]:8848", "127.0.0.1:0"] {
        assert!(is_host_port(good), "{good}");
    }
    for bad in ["", "a", ":1", "a:", "a:x", "a:+1", "a:70000", "::1:8848", "http://a:1", "a b:1", "[]:1"] {
        assert!(!is_host_port(bad), "{bad}");
    }
}

#[test]
fn a_node_that_is_not_in_its_list_is_told_both() {
    let settings = Settings { advertise: "10.0.0.1:8848".to_owned(), ..clustered() };
    let settings = Settings { members: vec!["10.0.0.10".to_owned()], ..settings };
    assert_problem(&settings, "advertise", "10.0.0.1:8848, is not among cluster.members: 10.0.0.10:8848");
}

#[test]
fn members_have_one_source_and_valid_names() {
    for (settings, key, says) in [
        (Settings { members_file: "f".into(), ..clustered() }, "members_file", "cluster.members is set too"),
        (Settings { members_dns: "n:1".to_owned(), ..clustered() }, "members_dns", "cluster.members is set too"),
        (Settings { members: vec!["a:1".to_owned(), "b:x".to_owned()], ..clustered() }, "members", "'b:x'"),
        (Settings { advertise: "a:0".to_owned(), ..clustered() }, "advertise", "from 1 to 65535"),
        (Settings { members: vec![], members_dns: "n".to_owned(), ..clustered() }, "members_dns", "'n'"),
    ] {
        assert_problem(&settings, key, says);
    }
}

#[test]
fn a_cluster_needs_a_secret_that_is_never_shown() {
    for secret in ["", "0123456789abcdef0123456789abcde"] {
        let settings = Settings { secret: Secret::new(secret), ..clustered() };
        assert_problem(&settings, "secret", &format!("at least 32 bytes, and it has {}", secret.len()));
    }
    let settings = Settings { secret: Secret::new("sesame\n"), ..Settings::default() };
    assert_problem(&settings, "secret", "white space");
    assert!(!settings.check().expect_err("white space").reason.contains("sesame"));
}

#[test]
fn times_go_together() {
    let millis = Duration::from_millis;
    let default = Settings::default;
    for (settings, key, says) in [
        (Settings { ping_interval: millis(2_000), ..default() }, "ping_interval", "below cluster.suspect_after"),
        (Settings { suspect_after: millis(5_000), ..default() }, "suspect_after", "below cluster.down_after"),
        (Settings { grace: millis(600_001), ..default() }, "isolation_grace", "shorter than cluster.grace"),
        (Settings { tombstone_ttl: millis(599_999), ..default() }, "tombstone_ttl", "cluster.isolation_grace"),
        (Settings { merge_window: millis(1_001), ..default() }, "merge_window", "out of range"),
        (Settings { outbox_limit: 0, ..default() }, "outbox_limit", "out of range"),
        (Settings { members_poll: Duration::ZERO, ..default() }, "members_poll", "out of range"),
    ] {
        assert_problem(&settings, key, says);
    }
}

#[test]
fn tls_is_configured_whole_or_not_at_all() {
    let settings = Settings { tls_cert: "c".into(), tls_key: "k".into(), ..clustered() };
    assert_problem(&settings, "tls_ca", "cluster.tls_cert is set");
    let settings = Settings { tls_ca: "a".into(), ..settings };
    assert_eq!(settings.check(), Ok(()));
    assert!(settings.has_tls() && !clustered().has_tls());
}
