//! What happened, in order: printed when a run fails, and compared to see that a seed means one run.

use std::sync::Arc;

use nomina::clock::Clock;
use parking_lot::Mutex;

/// Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Log {
    clock: Clock,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    pub fn new(clock: Clock) -> Self {
        Self { clock, lines: Arc::default() }
    }

    pub fn note(&self, what: impl AsRef<str>) {
        let now = self.clock.now().as_millis();
        self.lines.lock().push(format!("{:>4}.{:03} {}", now / 1_000, now % 1_000, what.as_ref()));
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}
