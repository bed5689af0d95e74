//! The operator's settings of the registry core.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lease::BrakeSettings;
use crate::setting::{Problem, Section, Setting};

/// How the apply loop works and when leases end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Commands that may wait for the apply loop; beyond it callers are refused and nothing is done. 1 to 1,048,576.
    /// Raised, a burst waits longer; lowered, it is refused sooner.
    pub queue: usize,
    /// Time between two looks at all leases. 10 ms to 10 s. Raised, a dead instance stays longer than its lease by as
    /// much; lowered, a registry of millions spends more on looking (about 1 ms a look and million).
    #[serde(with = "crate::setting::duration")]
    pub expiry_scan: Duration,
    /// How much later than due a look may be before the process counts as frozen, and every lease gets a full new
    /// period. 100 ms to 1 h.
    #[serde(with = "crate::setting::duration")]
    pub freeze_tolerance: Duration,
    /// Whether silent instances are removed at the end of their lease. `false`: they only become unhealthy.
    pub expire_instances: bool,
    /// Whether removals are held back while more than `brake_share` of the leases are late (self-preservation).
    pub brake: bool,
    /// The share of late leases above which the brake engages. 0.0 to 1.0.
    pub brake_share: f64,
    /// With fewer leases than this the brake never engages. 1 or more.
    pub brake_min_leases: usize,
    /// The longest time for which the brake holds removals back. 1 s to 1 day.
    #[serde(with = "crate::setting::duration")]
    pub brake_hold: Duration,
    /// How long a service that nobody created explicitly stays when its last instance has left. 1 s to 1 day.
    #[serde(with = "crate::setting::duration")]
    pub empty_service_ttl: Duration,
    /// How long an operator's settings of an instance are kept after it expired. 0 to 1 day. An explicit removal
    /// forgets them at once.
    #[serde(with = "crate::setting::duration")]
    pub overlay_retention: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            queue: 16_384,
            expiry_scan: Duration::from_millis(500),
            freeze_tolerance: Duration::from_secs(1),
            expire_instances: true,
            brake: false,
            brake_share: 0.5,
            brake_min_leases: 100,
            brake_hold: Duration::from_secs(600),
            empty_service_ttl: Duration::from_secs(60),
            overlay_retention: Duration::from_secs(60),
        }
    }
}

impl Section for Settings {
    const SETTINGS: &'static [Setting] = &[
        Setting::new(
            "queue",
            "a whole number from 1 to 1048576",
            "16384",
            "changes that may wait to be applied; beyond it callers are refused",
        ),
        Setting::new("expiry_scan", "a duration from 10ms to 10s", "\"500ms\"", "time between two looks at all leases"),
        Setting::new(
            "freeze_tolerance",
            "a duration from 100ms to 1h",
            "\"1s\"",
            "how late a look may be before the process counts as frozen and every lease begins anew",
        ),
        Setting::new(
            "expire_instances",
            "true or false",
            "true",
            "whether silent instances are removed; if not they only become unhealthy",
        ),
        Setting::new(
            "brake",
            "true or false",
            "false",
            "self-preservation: hold removals back while too many leases are late at once",
        ),
        Setting::new(
            "brake_share",
            "a number from 0.0 to 1.0",
            "0.5",
            "share of late leases above which the brake engages",
        ),
        Setting::new(
            "brake_min_leases",
            "a whole number from 1 to 4294967295",
            "100",
            "with fewer leases the brake never engages",
        ),
        Setting::new(
            "brake_hold",
            "a duration from 1s to 24h",
            "\"10m\"",
            "longest time for which the brake holds removals back",
        ),
        Setting::new(
            "empty_service_ttl",
            "a duration from 1s to 24h",
            "\"1m\"",
            "how long a service stays that is empty and was not created explicitly",
        ),
        Setting::new(
            "overlay_retention",
            "a duration from 0s to 24h",
            "\"1m\"",
            "how long an operator's changes of an instance are kept after it expired",
        ),
    ];

    fn check(&self) -> Result<(), Problem> {
        const DAY: Duration = Duration::from_secs(86_400);
        let within = |value: Duration, least: Duration, most: Duration| (least..=most).contains(&value);
        let millis = Duration::from_millis;
        let range = "it is out of range";
        Problem::unless((1..=1_048_576).contains(&self.queue), "queue", range)?;
        Problem::unless(within(self.expiry_scan, millis(10), millis(10_000)), "expiry_scan", range)?;
        Problem::unless(within(self.freeze_tolerance, millis(100), millis(3_600_000)), "freeze_tolerance", range)?;
        Problem::unless((0.0..=1.0).contains(&self.brake_share), "brake_share", range)?;
        Problem::unless((1..=4_294_967_295).contains(&self.brake_min_leases), "brake_min_leases", range)?;
        Problem::unless(within(self.brake_hold, millis(1_000), DAY), "brake_hold", range)?;
        Problem::unless(within(self.empty_service_ttl, millis(1_000), DAY), "empty_service_ttl", range)?;
        Problem::unless(self.overlay_retention <= DAY, "overlay_retention", range)
    }
}

impl Settings {
    /// The part of the settings that the brake needs.
    #[must_use]
    pub fn brake(&self) -> BrakeSettings {
        BrakeSettings {
            enabled: self.brake,
            share: self.brake_share,
            min_leases: self.brake_min_leases,
            hold: self.brake_hold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let settings = Settings { expiry_scan: Duration::ZERO, ..Settings::default() };
        assert_eq!(settings.check().unwrap_err().key, "expiry_scan");
        let settings = Settings { brake_share: f64::NAN, ..Settings::default() };
        assert_eq!(settings.check().unwrap_err().key, "brake_share");
    }
}
