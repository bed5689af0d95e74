//! `[push]`: whom changes are pushed to by UDP, how soon, and for how long.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::setting::{Problem, Section, Setting, duration};

/// What becomes of a list call whose `clientIP` is not the address that the call came from.
///
/// A datagram to an address that a caller merely names lets anybody aim this server at anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OtherAddresses {
    /// It is answered and not subscribed; the client polls.
    #[default]
    Refuse,
    /// Pushes go to the address that the call came from, whichever address `clientIP` names, or if it is blank. Right for
    /// clients that take `clientIP` from a network interface and call over another one (npm nacos-naming on loopback);
    /// behind an address translator such pushes are lost.
    Peer,
    /// Pushes go to the address that it names. Only where every caller is trusted.
    Allow,
}

/// UDP push to HTTP clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where datagrams are sent from and acks come back to; port 0 takes a free one.
    pub udp: SocketAddr,
    /// What to do with a `clientIP` that is not the caller's own.
    pub other_addresses: OtherAddresses,
    /// Least time between two pushes of one service; changes in between are merged. The first change after a quiet time
    /// goes out at once. Also the time after which a new subscriber gets its first push. 0 to 1 min. Raised, a burst
    /// costs fewer datagrams; lowered, the end of a burst is seen sooner.
    #[serde(with = "duration")]
    pub merge_delay: Duration,
    /// How long a subscriber stays that does not poll again. 100 ms to 1 h. Clients poll every 10 s: near that, late
    /// ones lose their pushes; raised, more goes to clients that are gone.
    #[serde(with = "duration")]
    pub subscriber_lifetime: Duration,
    /// How long an ack is waited for before the datagram is sent again, or given up. 10 ms to 10 min.
    #[serde(with = "duration")]
    pub ack_timeout: Duration,
    /// How often a datagram is sent again that was not acknowledged. 0 to 10.
    pub resends: u32,
    /// UDP subscriptions in all; beyond it clients are answered and not subscribed. 1 to 10,000,000. About 500 bytes
    /// each.
    pub max_subscribers: usize,
    /// UDP subscriptions of one service. 1 to 1,000,000. Each costs a datagram a change.
    pub max_subscribers_of_service: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            udp: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            other_addresses: OtherAddresses::default(),
            merge_delay: Duration::from_millis(500),
            subscriber_lifetime: Duration::from_secs(30),
            ack_timeout: Duration::from_secs(10),
            resends: 1,
            max_subscribers: 100_000,
            max_subscribers_of_service: 10_000,
        }
    }
}

impl Section for Settings {
    const SETTINGS: &'static [Setting] = &[
        Setting::new(
            "udp",
            "IP:PORT; port 0 takes a free one",
            r#""127.0.0.1:0""#,
            "Where pushes are sent from. Follows `server.http`: its ip, any free port.",
        ),
        Setting::new(
            "other_addresses",
            r#""refuse", "peer" or "allow""#,
            r#""refuse""#,
            "When `clientIP` is not the caller's own address: no pushes (but to callers on this machine), pushes to the caller, or pushes to `clientIP`.",
        ),
        Setting::new(
            "merge_delay",
            r#"a duration from "0s" to "1m""#,
            r#""500ms""#,
            "Least time between two pushes of one service.",
        ),
        Setting::new(
            "subscriber_lifetime",
            r#"a duration from "100ms" to "1h""#,
            r#""30s""#,
            "How long a subscriber stays that does not poll again.",
        ),
        Setting::new(
            "ack_timeout",
            r#"a duration from "10ms" to "10m""#,
            r#""10s""#,
            "How long an ack is waited for before a push is sent again or given up.",
        ),
        Setting::new("resends", "a whole number from 0 to 10", "1", "How often an unacknowledged push is sent again."),
        Setting::new(
            "max_subscribers",
            "a whole number from 1 to 10000000",
            "100000",
            "UDP subscriptions in all; beyond it clients poll.",
        ),
        Setting::new(
            "max_subscribers_of_service",
            "a whole number from 1 to 1000000",
            "10000",
            "UDP subscriptions of one service; beyond it clients poll.",
        ),
    ];

    fn check(&self) -> Result<(), Problem> {
        const MINUTE: Duration = Duration::from_secs(60);
        let range = "it is out of range";
        let lifetimes = Duration::from_millis(100)..=60 * MINUTE;
        let timeouts = Duration::from_millis(10)..=10 * MINUTE;
        Problem::unless(self.merge_delay <= MINUTE, "merge_delay", range)?;
        Problem::unless(lifetimes.contains(&self.subscriber_lifetime), "subscriber_lifetime", range)?;
        Problem::unless(timeouts.contains(&self.ack_timeout), "ack_timeout", range)?;
        Problem::unless(self.resends <= 10, "resends", range)?;
        Problem::unless((1..=10_000_000).contains(&self.max_subscribers), "max_subscribers", range)?;
        let of_service = self.max_subscribers_of_service;
        Problem::unless((1..=1_000_000).contains(&of_service), "max_subscribers_of_service", range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range_and_what_is_not_is_named() {
        assert_eq!(Settings::default().check(), Ok(()));
        let settings = Settings { ack_timeout: Duration::ZERO, ..Settings::default() };
        assert_eq!(settings.check().map_err(|problem| problem.key), Err("ack_timeout"));
        let settings = Settings { max_subscribers: 0, ..Settings::default() };
        assert_eq!(settings.check().map_err(|problem| problem.key), Err("max_subscribers"));
    }
}
