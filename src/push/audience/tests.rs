use super::*;
use crate::registry::Limits;

const LIFETIME: Duration = Duration::from_secs(30);

struct Bench {
    audience: Audience,
    table: Subscribers,
    settings: Settings,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let service = Limits::default().service_key("", "", "demo").unwrap();
        Self { audience: Audience::new(service), table: Subscribers::default(), settings }
    }

    fn enter(&self, port: u16, clusters_text: &str, agent: &str, ms: u64) -> Entered {
        let target = SocketAddr::from(([10, 0, 0, 9], port));
        let call = UdpSubscription {
            service: self.audience.service(),
            clusters_text,
            clusters: None,
            peer: target,
            client_ip: "10.0.0.9",
            udp_port: i64::from(port),
            agent,
            app: "unknown",
        };
        let place = Place { target, shown: target };
        self.audience.enter(&call, place, Mono::from_millis(ms), &self.settings, &self.table)
    }

    /// `clusters:port` of each, in order.
    fn take(&self, scope: Scope) -> Vec<String> {
        let groups = self.audience.take(scope);
        let told = |group: &Group| {
            let clusters = group.clusters.clone();
            group.members.iter().map(move |(_, to)| format!("{clusters}:{}", to.port())).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = groups.iter().flat_map(told).collect();
        all.sort();
        all
    }
}

#[test]
fn a_client_is_one_member_for_each_list_of_clusters() {
    let bench = Bench::new(Settings::default());
    for (port, clusters) in [(1, ""), (1, "DEFAULT"), (2, ""), (1, "")] {
        assert_eq!(bench.enter(port, clusters, "a", 0), Entered::Yes);
    }
    assert_eq!(bench.take(Scope::Newcomers), [":1", ":2", "DEFAULT:1"]);
    assert!(bench.take(Scope::Newcomers).is_empty());
    assert_eq!(bench.take(Scope::All).len(), 3);
    assert_eq!(bench.table.counts().udp, 3);
}

#[test]
fn another_client_on_the_same_port_is_a_newcomer() {
    let bench = Bench::new(Settings::default());
    bench.enter(1, "", "a", 0);
    bench.take(Scope::All);
    bench.enter(1, "", "b", 0);
    assert_eq!(bench.take(Scope::Newcomers), [":1"]);
    assert_eq!(bench.table.counts().udp, 1);
}

#[test]
fn the_silent_are_dropped_and_the_last_one_closes_it() {
    let bench = Bench::new(Settings::default());
    bench.enter(1, "", "a", 0);
    bench.enter(2, "x", "a", 0);
    bench.enter(1, "", "a", 10_000);
    assert_eq!(bench.audience.sweep(Mono::from_millis(29_999), LIFETIME), Some(Mono::ZERO));
    assert_eq!(bench.audience.sweep(Mono::from_millis(30_000), LIFETIME), Some(Mono::from_millis(10_000)));
    assert_eq!(bench.take(Scope::All), [":1"]);
    assert_eq!(bench.table.counts().udp, 1);
    assert_eq!(bench.audience.sweep(Mono::from_millis(40_000), LIFETIME), None);
    assert_eq!(bench.enter(1, "", "a", 40_000), Entered::Closed);
    assert_eq!(bench.table.counts().udp, 0);
}

#[test]
fn bounds_hold_and_those_inside_may_still_refresh() {
    let bench = Bench::new(Settings { max_subscribers_of_service: 2, max_subscribers: 2, ..Settings::default() });
    bench.enter(1, "", "a", 0);
    bench.enter(2, "", "a", 0);
    assert_eq!(bench.enter(3, "", "a", 0), Entered::No(Refusal::ServiceFull));
    assert_eq!(bench.enter(2, "", "a", 1), Entered::Yes);
    assert_eq!(bench.enter(2, "", "b", 1), Entered::Yes);
    let bench = Bench::new(Settings { max_subscribers: 1, ..Settings::default() });
    bench.enter(1, "", "a", 0);
    assert_eq!(bench.enter(2, "", "a", 0), Entered::No(Refusal::Full));
    let bench = Bench::new(Settings::default());
    for at in 0..MOST_FILTERS {
        assert_eq!(bench.enter(1, &format!("c{at}"), "a", 0), Entered::Yes);
    }
    assert_eq!(bench.enter(1, "more", "a", 0), Entered::No(Refusal::TooManyFilters));
}

#[test]
fn long_texts_are_cut_at_a_character() {
    assert_eq!(cut("abc"), "abc");
    assert_eq!(cut(&"\u{e9}".repeat(100)).len(), 128);
    assert_eq!(cut(&format!("x{}", "\u{e9}".repeat(100))).len(), 127);
}
