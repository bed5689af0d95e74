//! The operator's settings of SDK connections and of what is pushed to them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::setting::{Problem, Section, Setting, duration};

/// How long SDK connections may be silent, and how they are told of changes.
///
/// A client that dies without a word is noticed after `idle_timeout` + `detection_timeout` and at most two `sweep`s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How long a request may wait for the set-up of its connection, if the stream for it is open already.
    #[serde(with = "duration")]
    pub setup_wait: Duration,
    /// Silence of a client after which it is asked whether it is there. Raised: a client without power keeps its
    /// instances listed for longer; lowered: more traffic, and slow clients lose theirs.
    #[serde(with = "duration")]
    pub idle_timeout: Duration,
    /// Time for the answer to that question, before the connection is dropped.
    #[serde(with = "duration")]
    pub detection_timeout: Duration,
    /// Time between two looks at all connections.
    #[serde(with = "duration")]
    pub sweep: Duration,
    /// Time for a client to acknowledge a push.
    #[serde(with = "duration")]
    pub ack_timeout: Duration,
    /// How often a push that was not acknowledged is repeated before the connection is dropped, so that its SDK connects
    /// anew.
    pub push_retries: u32,
    /// Shortest time between two pushes of one service: a burst of changes becomes one push. The first change after a
    /// quiet time is pushed at once. While changes keep coming the time doubles with each push.
    #[serde(with = "duration")]
    pub merge_window: Duration,
    /// Where that doubling ends.
    #[serde(with = "duration")]
    pub merge_window_max: Duration,
    /// Whether a push that would leave a client without any instance is held back until there is one again. Off: clients
    /// are told what is so.
    pub hold_empty_pushes: bool,
    /// Most subscriptions of one connection.
    pub max_subscriptions: usize,
    /// Most patterns of names that one connection may watch.
    pub max_patterns: usize,
    /// Most services of which one pattern's watcher is told.
    pub max_pattern_matches: usize,
    /// How long clients that were told to go elsewhere are waited for in a drain.
    #[serde(with = "duration")]
    pub drain_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            setup_wait: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(20),
            detection_timeout: Duration::from_secs(5),
            sweep: Duration::from_secs(1),
            ack_timeout: Duration::from_secs(5),
            push_retries: 3,
            merge_window: Duration::from_millis(20),
            merge_window_max: Duration::from_millis(320),
            hold_empty_pushes: false,
            max_subscriptions: 10_000,
            max_patterns: 20,
            max_pattern_matches: 500,
            drain_wait: Duration::from_secs(3),
        }
    }
}

const UP_TO_AN_HOUR: &str = "a duration from 10ms to 1h";

impl Section for Settings {
    const SETTINGS: &'static [Setting] = &[
        Setting::new(
            "setup_wait",
            "a duration from 0s to 10s",
            r#""1s""#,
            "how long a request may wait for the set-up of its connection",
        ),
        Setting::new(
            "idle_timeout",
            UP_TO_AN_HOUR,
            r#""20s""#,
            "silence of a client after which it is asked whether it is there",
        ),
        Setting::new(
            "detection_timeout",
            UP_TO_AN_HOUR,
            r#""5s""#,
            "time for the answer to that question before the connection is dropped",
        ),
        Setting::new("sweep", "a duration from 10ms to 3s", r#""1s""#, "time between two looks at all connections"),
        Setting::new("ack_timeout", UP_TO_AN_HOUR, r#""5s""#, "time for a client to acknowledge a push"),
        Setting::new(
            "push_retries",
            "a whole number from 0 to 100",
            "3",
            "how often a push is repeated before the connection is dropped",
        ),
        Setting::new(
            "merge_window",
            "a duration from 0s to 10s",
            r#""20ms""#,
            "shortest time between two pushes of one service; doubles while changes keep coming",
        ),
        Setting::new(
            "merge_window_max",
            "a duration from merge_window to 10s",
            r#""320ms""#,
            "where the doubling of merge_window ends",
        ),
        Setting::new(
            "hold_empty_pushes",
            "true or false",
            "false",
            "whether a push that would leave a client without any instance is held back",
        ),
        Setting::new(
            "max_subscriptions",
            "a whole number from 0 to 1000000",
            "10000",
            "most subscriptions of one connection",
        ),
        Setting::new(
            "max_patterns",
            "a whole number from 0 to 1000",
            "20",
            "most patterns of names that one connection may watch",
        ),
        Setting::new(
            "max_pattern_matches",
            "a whole number from 0 to 100000",
            "500",
            "most services of which one pattern's watcher is told",
        ),
        Setting::new(
            "drain_wait",
            "a duration from 0s to 1h",
            r#""3s""#,
            "how long clients that were told to go elsewhere are waited for in a drain",
        ),
    ];

    fn check(&self) -> Result<(), Problem> {
        const HOUR: Duration = Duration::from_secs(3_600);
        const TEN: Duration = Duration::from_secs(10);
        let (range, least) = ("it is out of range", Duration::from_millis(10));
        for (key, value) in [
            ("idle_timeout", self.idle_timeout),
            ("detection_timeout", self.detection_timeout),
            ("ack_timeout", self.ack_timeout),
        ] {
            Problem::unless((least..=HOUR).contains(&value), key, range)?;
        }
        Problem::unless((least..=Duration::from_secs(3)).contains(&self.sweep), "sweep", range)?;
        Problem::unless(self.setup_wait <= TEN, "setup_wait", range)?;
        Problem::unless(self.push_retries <= 100, "push_retries", range)?;
        Problem::unless(self.merge_window <= TEN, "merge_window", range)?;
        Problem::unless((self.merge_window..=TEN).contains(&self.merge_window_max), "merge_window_max", range)?;
        Problem::unless(self.max_subscriptions <= 1_000_000, "max_subscriptions", range)?;
        Problem::unless(self.max_patterns <= 1_000, "max_patterns", range)?;
        Problem::unless(self.max_pattern_matches <= 100_000, "max_pattern_matches", range)?;
        Problem::unless(self.drain_wait <= HOUR, "drain_wait", range)
    }
}
