use super::*;

fn turn(entry: &str, value: &str) -> Result<SwitchChange, SwitchError> {
    switch_change(entry, value, &Switches::default())
}

fn refusal(entry: &str, value: &str) -> String {
    turn(entry, value).unwrap_err().to_string()
}

#[test]
fn every_entry_is_known() {
    for entry in ENTRIES {
        assert!(!matches!(turn(entry, "?"), Err(SwitchError::Entry { .. })), "{entry}");
    }
    assert!(ENTRIES.is_sorted());
    let text = refusal("pushEnable", "true");
    assert!(text.starts_with("unknown switch entry 'pushEnable'; known entries: autoChange"), "{text}");
}

#[test]
fn entries_turn_their_switch() {
    for (entry, value, change) in [
        ("check", "off", SwitchChange::HealthCheckEnabled(false)),
        ("pushEnabled", "True", SwitchChange::PushEnabled(true)),
        ("clientBeatInterval", "6000", SwitchChange::ClientBeatInterval(6_000)),
        ("pushCacheMillis", "10000", SwitchChange::PushCacheMillis(10_000)),
        ("defaultCacheMillis", "1000", SwitchChange::CacheMillis(1_000)),
        ("distroThreshold", "0.5", SwitchChange::DistroThreshold(0.5)),
        ("serverStatusSynchronizationPeriodMillis", "1000", SwitchChange::ServerStatusPeriodMillis(1_000)),
        ("serviceStatusSynchronizationPeriodMillis", "5000", SwitchChange::ServiceStatusPeriodMillis(5_000)),
        ("overriddenServerStatus", "READ_ONLY", SwitchChange::OverriddenServerStatus(Some("READ_ONLY".to_owned()))),
        ("overriddenServerStatus", "null", SwitchChange::OverriddenServerStatus(None)),
        ("masters", "a, b", SwitchChange::Masters(Some(vec!["a".to_owned(), "b".to_owned()]))),
        ("masters", "", SwitchChange::Masters(None)),
        ("limitedUrlMap", "", SwitchChange::LimitedUrls(BTreeMap::new())),
        (
            "limitedUrlMap",
            "/a:503, http://h:1/b:404",
            SwitchChange::LimitedUrls(BTreeMap::from([("/a".to_owned(), 503), ("http://h:1/b".to_owned(), 404)])),
        ),
        (
            "tcpHealthParams",
            r#"{"max":6000,"min":700,"factor":0.5}"#,
            SwitchChange::TcpHealth(ProbeTiming { max: 6_000, min: 700, factor: 0.5 }),
        ),
        (
            "pushVersion",
            "csharp:1.2.3",
            SwitchChange::PushVersions(PushVersions { csharp: Version(1, 2, 3), ..Switches::default().push_versions }),
        ),
    ] {
        assert_eq!(turn(entry, value), Ok(change), "{entry} {value}");
    }
}

#[test]
fn refusals_have_the_texts_of_nacos() {
    for (entry, value, text) in [
        ("distroThreshold", "0", "distroThreshold can not be zero or negative: 0"),
        ("distroThreshold", "-1.5", "distroThreshold can not be zero or negative: -1.5"),
        ("pushVersion", "java:1.2", r"illegal version, must match: [0-9]+\.[0-9]+\.[0-9]+"),
        ("pushVersion", "java:+1.2.3", r"illegal version, must match: [0-9]+\.[0-9]+\.[0-9]+"),
        ("pushVersion", "java", r"illegal version, must match: [0-9]+\.[0-9]+\.[0-9]+"),
        ("pushVersion", "perl:1.2.3", "unsupported client type: perl"),
        ("pushCacheMillis", "9999", "min cache time for http or tcp is too small(<10000)"),
        ("pushCacheMillis", "-99999999999999999999", "min cache time for http or tcp is too small(<10000)"),
        ("defaultCacheMillis", "999", "min default cache time  is too small(<1000)"),
        ("limitedUrlMap", "/a", "invalid input for limited urls"),
        ("limitedUrlMap", ":503", "url can not be empty, url: "),
        ("limitedUrlMap", "/a:0", "illegal normal status code: 0"),
        ("limitedUrlMap", "/a:70000", "illegal normal status code: 70000"),
        (
            "serviceStatusSynchronizationPeriodMillis",
            "4999",
            "serviceStatusSynchronizationPeriodMillis is too small(<5000)",
        ),
        (
            "serverStatusSynchronizationPeriodMillis",
            "999",
            "serverStatusSynchronizationPeriodMillis is too small(<15000)",
        ),
        ("httpHealthParams", "{", "json param invalid."),
        ("httpHealthParams", r#"{"max":5000,"min":1}"#, "json param invalid."),
        ("httpHealthParams", r#"{"max":5000,"min":1,"factor":1}"#, "min check time for http or tcp is too small(<500)"),
        ("tcpHealthParams", r#"{"max":1,"min":500,"factor":1}"#, "max check time for http or tcp is too small(<3000)"),
        ("tcpHealthParams", r#"{"max":5000,"min":500,"factor":1.1}"#, "malformed factor"),
    ] {
        assert_eq!(refusal(entry, value), text, "{entry} {value}");
    }
}

#[test]
fn other_bad_values_name_entry_value_and_what_is_allowed() {
    for (entry, value, allowed) in [
        ("check", "maybe", "true or false"),
        ("check", "", "true or false"),
        ("clientBeatInterval", "20000", "a whole number from 100 to 15000"),
        ("healthCheckTimes", "1.5", "a whole number from 1 to 1000"),
        ("pushCacheMillis", "99999999999999999999", "a whole number from 10000 to 86400000"),
        ("distroThreshold", "NaN", "a finite number above 0"),
        ("overriddenServerStatus", "BUSY", "UP, DOWN, STARTING, PAUSED, WRITE_ONLY, READ_ONLY, or null"),
    ] {
        assert_eq!(
            refusal(entry, value),
            format!("value '{value}' of switch entry '{entry}' is not allowed; it must be {allowed}")
        );
    }
}

#[test]
fn what_is_shown_can_be_sent_back_as_a_batch() {
    let mut switches = Switches::default()
        .with(SwitchChange::LimitedUrls(BTreeMap::from([("/a,b:c".to_owned(), 503)])))
        .with(SwitchChange::Masters(Some(vec!["m".to_owned()])))
        .with(SwitchChange::OverriddenServerStatus(Some("DOWN".to_owned())));
    switches.push_versions.go = Version(9, 8, 7);
    let change = switch_change("batch", &switches_json(&switches).to_string(), &Switches::default()).unwrap();
    assert_eq!(Switches::default().with(change), switches);
    let back = switch_change("batch", &switches_json(&Switches::default()).to_string(), &switches).unwrap();
    assert_eq!(switches.with(back), Switches::default());
}

#[test]
fn a_batch_is_taken_whole_or_not_at_all() {
    let change = turn("batch", r#"{"pushGoVersion":"1.0.0","pushJavaVersion":"2.0.0","checkTimes":5}"#).unwrap();
    let switches = Switches::default().with(change);
    assert_eq!((switches.push_versions.go, switches.push_versions.java), (Version(1, 0, 0), Version(2, 0, 0)));
    assert_eq!(switches.check_times, 5);
    assert_eq!(refusal("batch", r#"{"checkTimes":5,"pushEnabled":"x"}"#).split(' ').next(), Some("value"));
    assert!(matches!(turn("batch", r#"{"unheard":1}"#), Err(SwitchError::Entry { .. })));
    assert!(matches!(turn("batch", r#"{"batch":"{}"}"#), Err(SwitchError::Entry { .. })));
    assert_eq!(refusal("batch", "nonsense"), "json param invalid.");
}
