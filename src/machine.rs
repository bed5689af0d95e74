//! How busy the machine is, read from `/proc`; all zero where there is none.

use std::fs;

use parking_lot::Mutex;

/// How busy the machine is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Share of all processors' time that was not idle since the last reading, 0.0 to 1.0.
    pub cpu: f64,
    /// Processes that ran or waited to run, averaged over a minute.
    pub load: f64,
    /// Share of the memory that is in use, 0.0 to 1.0.
    pub memory: f64,
}

/// Reads [`Load`]. Keeps the last reading, because the processors' share is a difference of two.
#[derive(Debug, Default)]
pub struct Machine {
    last: Mutex<Reading>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Reading {
    ticks: Ticks,
    share: f64,
}

/// Time of all processors since the start of the machine, mostly in hundredths of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Ticks {
    total: u64,
    idle: u64,
}

/// Readings closer to each other than this many ticks show the same share: so short a span says nothing.
const SHORTEST: u64 = 20;

impl Machine {
    /// Reads how busy the machine is now. The first reading tells the processors' share since the start of the machine.
    #[must_use]
    pub fn load(&self) -> Load {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let mut last = self.last.lock();
        *last = last.next(ticks(&text("/proc/stat")).unwrap_or_default());
        Load {
            cpu: last.share,
            load: load_average(&text("/proc/loadavg")).unwrap_or_default(),
            memory: memory_share(&text("/proc/meminfo")).unwrap_or_default(),
        }
    }
}

/// Memory of this process that is held in RAM, in bytes.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    kib(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:").map(|kib| kib * 1024)
}

impl Reading {
    fn next(self, ticks: Ticks) -> Self {
        let total = ticks.total.saturating_sub(self.ticks.total);
        if total < SHORTEST {
            return self;
        }
        let idle = ticks.idle.saturating_sub(self.ticks.idle).min(total);
        Self { ticks, share: share(total - idle, total) }
    }
}

/// `cpu  user nice system idle iowait irq softirq steal …`; guests are counted in `user` already.
fn ticks(stat: &str) -> Option<Ticks> {
    let mut fields = stat.lines().find_map(|line| line.strip_prefix("cpu "))?.split_ascii_whitespace().take(8);
    let (mut total, mut idle) = (0_u64, 0_u64);
    for position in 0.. {
        let Some(field) = fields.next() else { break };
        let value: u64 = field.parse().ok()?;
        total = total.saturating_add(value);
        if matches!(position, 3 | 4) {
            idle = idle.saturating_add(value);
        }
    }
    Some(Ticks { total, idle })
}

fn load_average(loadavg: &str) -> Option<f64> {
    loadavg.split_ascii_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite())
}

fn memory_share(meminfo: &str) -> Option<f64> {
    let (total, available) = (kib(meminfo, "MemTotal:")?, kib(meminfo, "MemAvailable:")?);
    (total > 0).then(|| share(total.saturating_sub(available), total))
}

fn kib(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_ascii_whitespace().next()?.parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_share_is_that_since_the_last_reading() {
        let first = ticks("cpu  100 0 100 700 100 0 0 0 5 5\ncpu0 1 1 1 1\n").unwrap();
        assert_eq!(first, Ticks { total: 1_000, idle: 800 });
        let reading = Reading::default().next(first);
        assert_eq!(reading.share, 0.2);
        let later = reading.next(Ticks { total: 1_100, idle: 825 });
        assert_eq!(later.share, 0.75);
        assert_eq!(later.next(Ticks { total: 1_101, idle: 826 }), later);
        assert_eq!(later.next(Ticks::default()), later);
    }

    #[test]
    fn other_figures_are_read() {
        assert_eq!(load_average("0.31 0.20 0.10 1/100 42\n"), Some(0.31));
        assert_eq!(memory_share("MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 250 kB\n"), Some(0.75));
        for broken in ["", "cpu", "cpu a b", "MemTotal: x kB"] {
            assert_eq!((load_average(broken).is_some(), memory_share(broken)), (false, None), "{broken}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_has_figures() {
        let load = Machine::default().load();
        assert!((0.0..=1.0).contains(&load.cpu) && (0.0..=1.0).contains(&load.memory), "{load:?}");
        assert!(load.memory > 0.0);
        assert!(resident_bytes().unwrap() > 0);
    }
}
