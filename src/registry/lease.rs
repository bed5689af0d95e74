//! When a lease ends: the rules that decide, apart from the table that remembers.

use std::time::Duration;

use super::instance::Instance;
use crate::clock::Mono;

/// What a silence means for an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It stays as it is.
    Keep,
    /// It becomes unhealthy.
    Late,
    /// It is removed.
    Gone,
}

/// Judges `instance` after `silence`: late past its heart-beat timeout, gone past its delete timeout.
///
/// An instance whose delete timeout is shorter than its heart-beat timeout is removed without being late first.
#[must_use]
pub fn judge(instance: &Instance, silence: Duration) -> Verdict {
    let periods = instance.periods();
    if silence > periods.delete {
        Verdict::Gone
    } else if instance.is_well_here() && silence > periods.timeout {
        Verdict::Late
    } else {
        Verdict::Keep
    }
}

/// The silence after which [`judge`] has something new to say of `instance`.
#[must_use]
pub fn limit(instance: &Instance) -> Duration {
    let periods = instance.periods();
    if instance.is_well_here() { periods.timeout.min(periods.delete) } else { periods.delete }
}

/// Notices that the process itself did not run, by being called late.
///
/// While it was frozen no beat could be heard, so every silence is counted from the thaw on: each lease gets a full
/// new period.
#[derive(Debug, Clone)]
pub struct FreezeGuard {
    period: Duration,
    tolerance: Duration,
    last: Mono,
    froze: Mono,
    thaw: Mono,
    freezes: u64,
}

/// A time in which the process did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    /// When it was last known to run.
    pub from: Mono,
    /// When it was found to run again.
    pub thaw: Mono,
}

impl FreezeGuard {
    /// A guard that expects to be called every `period`, and takes more than `tolerance` beyond it for a freeze.
    #[must_use]
    pub fn new(period: Duration, tolerance: Duration, now: Mono) -> Self {
        Self { period, tolerance, last: now, froze: Mono::ZERO, thaw: Mono::ZERO, freezes: 0 }
    }

    /// To be called every period. Returns how long the process was frozen, if it was.
    pub fn observe(&mut self, now: Mono) -> Option<Duration> {
        let from = std::mem::replace(&mut self.last, now);
        let late = self.late(from, now)?;
        (self.froze, self.thaw) = (from, now);
        self.freezes += 1;
        Some(late)
    }

    /// The last freeze, be it one that the next call of [`FreezeGuard::observe`] will find.
    #[must_use]
    pub fn last_freeze(&self, now: Mono) -> Option<Freeze> {
        if self.late(self.last, now).is_some() {
            return Some(Freeze { from: self.last, thaw: now });
        }
        (self.freezes > 0).then_some(Freeze { from: self.froze, thaw: self.thaw })
    }

    fn late(&self, last: Mono, now: Mono) -> Option<Duration> {
        let late = now.since(last).saturating_sub(self.period);
        (late > self.tolerance).then_some(late)
    }

    /// The point before which no silence counts.
    #[must_use]
    pub fn thaw(&self) -> Mono {
        self.thaw
    }

    /// How many freezes there were.
    #[must_use]
    pub fn freezes(&self) -> u64 {
        self.freezes
    }
}

/// Self-preservation: holds removals back while so many leases are late at once that the fault is rather between the
/// clients and this server than in the clients.
#[derive(Debug, Clone)]
pub struct Brake {
    settings: BrakeSettings,
    since: Option<Mono>,
    engagements: u64,
}

/// When the brake engages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BrakeSettings {
    /// Whether there is a brake at all.
    pub enabled: bool,
    /// The share of late leases above which it engages.
    pub share: f64,
    /// With fewer leases than this it never engages.
    pub min_leases: usize,
    /// The longest time for which it holds.
    pub hold: Duration,
}

impl Brake {
    /// A released brake.
    #[must_use]
    pub fn new(settings: BrakeSettings) -> Self {
        Self { settings, since: None, engagements: 0 }
    }

    /// Whether removals must wait, with `late` of `total` leases late. Past the longest hold they go on until the share
    /// has been below the bound once.
    pub fn holds(&mut self, late: usize, total: usize, now: Mono) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
        let over = self.settings.enabled
            && total >= self.settings.min_leases
            && late as f64 > self.settings.share * total as f64;
        if !over {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert_with(|| {
            self.engagements += 1;
            now
        });
        now.since(since) < self.settings.hold
    }

    /// Since when the share of late leases has been above the bound.
    #[must_use]
    pub fn engaged_since(&self) -> Option<Mono> {
        self.since
    }

    /// How often it engaged.
    #[must_use]
    pub fn engagements(&self) -> u64 {
        self.engagements
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: u64) -> Mono {
        Mono::from_millis(secs * 1_000)
    }

    #[test]
    fn a_guard_called_in_time_sees_no_freeze() {
        let mut guard = FreezeGuard::new(Duration::from_secs(1), Duration::from_secs(1), at(0));
        for second in 1..100 {
            assert_eq!(guard.observe(at(second)), None);
        }
        assert_eq!(guard.thaw(), Mono::ZERO);
    }

    #[test]
    fn a_late_call_is_a_freeze_and_its_thaw_is_now() {
        let mut guard = FreezeGuard::new(Duration::from_secs(1), Duration::from_secs(1), at(0));
        assert_eq!(guard.last_freeze(at(2)), None);
        let freeze = Some(Freeze { from: at(0), thaw: at(46) });
        assert_eq!(guard.last_freeze(at(46)), freeze, "before it is observed");
        assert_eq!(guard.observe(at(46)), Some(Duration::from_secs(45)));
        assert_eq!(guard.thaw(), at(46));
        assert_eq!(guard.observe(at(47)), None);
        assert_eq!(guard.last_freeze(at(48)), freeze);
        assert_eq!(guard.freezes(), 1);
    }

    fn brake() -> Brake {
        Brake::new(BrakeSettings { enabled: true, share: 0.5, min_leases: 10, hold: Duration::from_secs(60) })
    }

    #[test]
    fn the_brake_engages_above_its_share_and_releases_below() {
        let mut brake = brake();
        assert!(!brake.holds(5, 10, at(0)));
        assert!(brake.holds(6, 10, at(1)));
        assert_eq!(brake.engaged_since(), Some(at(1)));
        assert!(!brake.holds(2, 10, at(2)));
        assert_eq!(brake.engagements(), 1);
    }

    #[test]
    fn few_leases_and_a_long_hold_do_not_brake() {
        let mut brake = brake();
        assert!(!brake.holds(9, 9, at(0)));
        assert!(brake.holds(10, 10, at(0)));
        assert!(!brake.holds(10, 10, at(60)));
        assert!(!brake.holds(10, 10, at(90)));
        assert_eq!(brake.engagements(), 1);
    }
}
