use proptest::prelude::*;

use super::*;

fn name(text: &str) -> MemberName {
    MemberName::parse(text).expect(text)
}

fn list(texts: &[&str]) -> MemberList {
    MemberList::new(texts.iter().map(|text| name(text))).expect("a list")
}

#[test]
fn spellings_of_one_name_are_one_member() {
    for (written, normal) in [
        ("a", "a:8848"),
        ("a:1", "a:1"),
        ("a:08848", "a:8848"),
        ("NODE-0.svc:8848", "node-0.svc:8848"),
        ("node-0.svc.", "node-0.svc:8848"),
        ("node-0.svc.:9", "node-0.svc:9"),
        ("_peer._tcp.n", "_peer._tcp.n:8848"),
        ("10.0.0.1", "10.0.0.1:8848"),
        ("10.0.0.1.:7", "10.0.0.1:7"),
        ("[::1]", "[::1]:8848"),
        ("[0:0:0:0:0:0:0:1]:9", "[::1]:9"),
        ("[2001:DB8::A]:1", "[2001:db8::a]:1"),
        ("[::ffff:10.0.0.1]:1", "10.0.0.1:1"),
    ] {
        assert_eq!(name(written).as_str(), normal, "{written}");
    }
}

#[test]
fn host_and_port_are_what_a_resolver_takes() {
    for (text, host, port) in [("a.b:1", "a.b", 1), ("[::1]:65535", "::1", 65_535), ("10.0.0.1", "10.0.0.1", 8848)] {
        let name = name(text);
        assert_eq!((name.host(), name.port()), (host, port));
    }
}

#[test]
fn what_names_no_member_is_said_with_the_value_and_what_is_allowed() {
    for bad in [
        "",
        ".",
        ":1",
        "a..b",
        ".a",
        "a b",
        " a",
        "a/b",
        "http://a:1",
        "a@b",
        "ä",
        "::1",
        "::1:8848",
        "a:1:2",
        "[::1",
        "[]:1",
        "[a]:1",
        "[10.0.0.1]:1",
        "[::1]x",
        "[::1]8848",
        "[fe80::1%eth0]:1",
        "10.0.0.256",
        "10.0.1",
        "010.0.0.1",
        "1.2.3.4.5",
        "a.1",
        "*",
    ] {
        let error = MemberName::parse(bad).expect_err(bad);
        assert!(matches!(&error, MemberError::Host { .. }), "{bad}: {error}");
        let shown = error.to_string();
        assert!(shown.contains(&format!("'{bad}'")) && shown.contains("allowed: HOST[:PORT]"), "{shown}");
    }
    for bad in ["a:", "a:0", "a:x", "a:+1", "a:-1", "a:65536", "a:70000", "[::1]:", "[::1]:0"] {
        let error = MemberName::parse(bad).expect_err(bad).to_string();
        assert!(error.contains(&format!("'{bad}'")) && error.contains("from 1 to 65535"), "{error}");
    }
    MemberName::parse(&"a".repeat(64)).expect_err("a long label");
    MemberName::parse(&["abc"; 64].join(".")).expect_err("a long name");
}

#[test]
fn an_address_that_starts_like_another_is_another() {
    let list = list(&["10.0.0.10:8848", "10.0.0.2:8848"]);
    assert!(!list.contains(&name("10.0.0.1:8848")));
    assert!(!list.contains(&name("10.0.0.10:88")));
    assert!(list.contains(&name("10.0.0.10")));
}

#[test]
fn cluster_conf_is_read_as_it_is_written() {
    let text =
        "\u{feff}#2026-01-01T00:00\n\n 10.0.0.2:8848 \r\n10.0.0.1 # the first\nNODE-0.svc.,node-0.svc ,, [::1]\n";
    let read = MemberList::parse_lines(text).expect("a list");
    assert_eq!(read, list(&["10.0.0.1:8848", "10.0.0.2:8848", "node-0.svc:8848", "[::1]:8848"]));
    assert_eq!(read.to_string(), "10.0.0.1:8848, 10.0.0.2:8848, [::1]:8848, node-0.svc:8848");
}

#[test]
fn bad_lines_are_reported_with_their_numbers() {
    let error = MemberList::parse_lines("a:1\nb:x # port\n\nc d,10.0.0.300\n").expect_err("three bad entries");
    let ListError::Lines(lines) = &error else { panic!("{error}") };
    assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), [2, 4, 4]);
    let shown = error.to_string();
    assert!(shown.starts_with("line 2: member 'b:x'") && shown.contains("also wrong: line 4, 4"), "{shown}");
}

#[test]
fn a_list_has_members_but_not_too_many() {
    assert_eq!(MemberList::parse_lines("# nobody\n"), Err(ListError::Empty));
    let many: String = (0..=MOST_MEMBERS).map(|n| format!("n{n}x\n")).collect();
    assert_eq!(MemberList::parse_lines(&many), Err(ListError::TooMany { count: MOST_MEMBERS + 1 }));
}

#[test]
fn a_difference_says_who_joined_and_who_left() {
    let (old, new) = (list(&["a", "b", "c"]), list(&["B.", "d", "c"]));
    assert_eq!(old.difference(&new), Difference { joined: vec![name("d")], left: vec![name("a")] });
    assert_eq!(old.difference(&old), Difference::default());
}

proptest! {
    #[test]
    fn normalising_twice_changes_nothing(text in "[A-Za-z0-9.:\\[\\]_-]{0,24}") {
        if let Ok(name) = MemberName::parse(&text) {
            prop_assert_eq!(MemberName::parse(name.as_str()), Ok(name.clone()));
            prop_assert!(!name.as_str().bytes().any(|byte| byte.is_ascii_uppercase()));
            prop_assert!(!name.host().ends_with('.'));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let _ = MemberList::parse_lines(&text);
    }

    #[test]
    fn an_address_is_named_as_it_is_parsed(ip: IpAddr, port in 1_u16..) {
        let written = match ip { IpAddr::V4(ip) => format!("{ip}:{port}"), IpAddr::V6(ip) => format!("[{ip}]:{port}") };
        prop_assert_eq!(MemberName::of_address(ip, port), MemberName::parse(&written).ok());
    }
}
