//! When each beat-kept instance was last heard of: a dense table, so that a beat is one store and a scan is cheap.
//!
//! The cells are shared: any thread stores into them. Everything else belongs to the apply loop.

use std::{
    num::NonZeroU32,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use super::{instance::Instance, service::Service};
use crate::clock::Mono;

/// The first block holds this many cells, each further one twice as many: 23 blocks reach past 2³².
const FIRST_BLOCK: u32 = 1_024;
const BLOCKS: usize = 23;

/// The limit of a lease that never ends.
const NEVER: u32 = u32::MAX >> 1;
/// Marks the limit of a lease whose instance is removed at the end of it.
const FINAL: u32 = 1 << 31;

/// A place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseId(NonZeroU32);

impl LeaseId {
    fn at(index: usize) -> Option<Self> {
        u32::try_from(index).ok()?.checked_add(1).and_then(NonZeroU32::new).map(Self)
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Times of last beats, in milliseconds of monotonic time modulo 2³². Written and read by anyone, without waiting.
#[derive(Debug, Default)]
pub struct BeatCells {
    blocks: [OnceLock<Box<[AtomicU32]>>; BLOCKS],
}

impl BeatCells {
    /// Notes a beat at `now`. A lease that has just ended is not disturbed by it beyond one beat.
    pub fn beat(&self, lease: LeaseId, now: Mono) {
        if let Some(cell) = self.cell(lease.index()) {
            cell.store(tick(now), Ordering::Relaxed);
        }
    }

    /// How long ago the last beat was.
    #[must_use]
    pub fn silence(&self, lease: LeaseId, now: Mono) -> Duration {
        self.cell(lease.index()).map_or(Duration::ZERO, |cell| Duration::from_millis(u64::from(age(cell, now))))
    }

    fn cell(&self, index: usize) -> Option<&AtomicU32> {
        let (block, offset) = place(index);
        self.blocks.get(block)?.get()?.get(offset)
    }

    fn grow_to(&self, index: usize) {
        let (block, _) = place(index);
        if let Some(slot) = self.blocks.get(block) {
            slot.get_or_init(|| (0..(FIRST_BLOCK as usize) << block).map(|_| AtomicU32::new(0)).collect());
        }
    }
}

/// Block `b` begins at cell `FIRST_BLOCK · (2^b − 1)`.
fn place(index: usize) -> (usize, usize) {
    let block = (index / FIRST_BLOCK as usize + 1).ilog2() as usize;
    (block, index - (FIRST_BLOCK as usize) * ((1 << block) - 1))
}

#[expect(clippy::cast_possible_truncation, reason = "ages are differences modulo 2^32")]
fn tick(now: Mono) -> u32 {
    now.as_millis() as u32
}

/// Milliseconds since the beat. A beat noted after `now` was read is of age zero.
fn age(cell: &AtomicU32, now: Mono) -> u32 {
    let age = tick(now).wrapping_sub(cell.load(Ordering::Relaxed));
    if age > u32::MAX / 2 { 0 } else { age }
}

/// All leases. Written by the apply loop only; its cells by anyone.
#[derive(Debug, Default)]
pub struct LeaseTable {
    cells: Arc<BeatCells>,
    limits: Vec<u32>,
    held: Vec<Option<Held>>,
    free: Vec<LeaseId>,
}

/// What a lease keeps listed.
#[derive(Debug, Clone)]
pub struct Held {
    /// The service.
    pub service: Arc<Service>,
    /// The instance as it is listed now.
    pub instance: Arc<Instance>,
}

/// A lease whose limit has passed, and the silence that was seen.
#[derive(Debug, Clone)]
pub struct Due {
    /// Which lease.
    pub lease: LeaseId,
    /// What it keeps listed.
    pub held: Held,
    /// How long its publisher had been silent.
    pub silence: Duration,
}

impl LeaseTable {
    /// The cells, to be shared with those who note beats.
    #[must_use]
    pub fn cells(&self) -> Arc<BeatCells> {
        self.cells.clone()
    }

    /// How many leases there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len() - self.free.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A new lease that begins now and never ends until [`LeaseTable::hold`] says what it holds; `None` if 2³² − 1 are
    /// taken.
    pub fn open(&mut self, now: Mono) -> Option<LeaseId> {
        let lease = match self.free.pop() {
            Some(lease) => lease,
            None => {
                let lease = LeaseId::at(self.held.len())?;
                self.cells.grow_to(lease.index());
                self.held.push(None);
                self.limits.push(NEVER);
                lease
            }
        };
        self.cells.beat(lease, now);
        Some(lease)
    }

    /// Says what `lease` keeps listed, and after which silence it is due; `None`: never. `last` tells that the instance
    /// is removed then.
    pub fn hold(
        &mut self,
        lease: LeaseId,
        service: Arc<Service>,
        instance: Arc<Instance>,
        limit: Option<Duration>,
        last: bool,
    ) {
        let index = lease.index();
        if let (Some(held), Some(slot)) = (self.held.get_mut(index), self.limits.get_mut(index)) {
            *held = Some(Held { service, instance });
            let millis = limit.and_then(|limit| u32::try_from(limit.as_millis()).ok()).unwrap_or(NEVER).min(NEVER);
            *slot = if last { millis | FINAL } else { millis };
        }
    }

    /// Ends `lease`; its place is used again.
    pub fn close(&mut self, lease: LeaseId) {
        let index = lease.index();
        if let (Some(held), Some(slot)) = (self.held.get_mut(index), self.limits.get_mut(index)) {
            *held = None;
            *slot = NEVER;
            self.free.push(lease);
        }
    }

    /// The leases that are due at `now`, at most `most` of them. No silence counts from before `not_before`; leases that
    /// end in a removal are passed over unless `removals`.
    #[must_use]
    pub fn due(&self, now: Mono, not_before: Mono, removals: bool, most: usize) -> Vec<Due> {
        let longest = u32::try_from(now.since(not_before).as_millis()).unwrap_or(u32::MAX);
        let mut due = Vec::new();
        let mut rest = self.limits.as_slice();
        for block in self.cells.blocks.iter().map_while(OnceLock::get) {
            let (limits, later) = rest.split_at(rest.len().min(block.len()));
            let first = self.limits.len() - rest.len();
            rest = later;
            for (offset, (limit, cell)) in limits.iter().zip(block).enumerate() {
                let silence = age(cell, now).min(longest);
                if silence <= *limit & !FINAL || *limit == NEVER || (!removals && *limit & FINAL != 0) {
                    continue;
                }
                let index = first + offset;
                if let (Some(lease), Some(Some(held))) = (LeaseId::at(index), self.held.get(index)) {
                    due.push(Due { lease, held: held.clone(), silence: Duration::from_millis(u64::from(silence)) });
                    if due.len() == most {
                        return due;
                    }
                }
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::registry::{
        key::{ClusterName, InstanceKey},
        limits::Limits,
        overlay::Overlay,
        publication::{Kind, Publication},
        snapshot::Snapshot,
    };

    fn held() -> (Arc<Service>, Arc<Instance>) {
        let limits = Limits::default();
        let service = Service::new(limits.service_key("", "", "s").unwrap(), Arc::new(Snapshot::default()));
        let key = InstanceKey { endpoint: limits.endpoint("10.0.0.1", 1).unwrap(), cluster: ClusterName::default() };
        let instance = Instance::new(key, Kind::Ephemeral, Publication::default(), Overlay::default(), None, None);
        (Arc::new(service), Arc::new(instance))
    }

    proptest! {
        #[test]
        fn blocks_hold_every_cell_once(index in 0_usize..5_000_000) {
            let (block, offset) = place(index);
            prop_assert!(offset < (FIRST_BLOCK as usize) << block);
            let (next_block, next_offset) = place(index + 1);
            prop_assert!((block, offset + 1) == (next_block, next_offset) || (next_block, next_offset) == (block + 1, 0));
        }

        /// Never early, whatever the moment, the wrap of the 32-bit tick included.
        #[test]
        fn due_after_the_limit_and_never_before(start in 0_u64..10_000_000_000, silence in 0_u64..100_000) {
            let (service, instance) = held();
            let mut table = LeaseTable::default();
            let lease = table.open(Mono::from_millis(start)).unwrap();
            table.hold(lease, service, instance, Some(Duration::from_millis(15_000)), false);
            let due = table.due(Mono::from_millis(start + silence), Mono::ZERO, true, 10);
            prop_assert_eq!(due.len(), usize::from(silence > 15_000));
        }
    }

    #[test]
    fn a_thaw_gives_a_full_new_period() {
        let (service, instance) = held();
        let mut table = LeaseTable::default();
        let lease = table.open(Mono::ZERO).unwrap();
        table.hold(lease, service, instance, Some(Duration::from_secs(15)), false);
        let at = |secs: u64| Mono::from_millis(secs * 1_000);
        assert_eq!(table.due(at(60), at(50), true, 10).len(), 0);
        assert_eq!(table.due(at(66), at(50), true, 10).len(), 1);
    }

    #[test]
    fn places_are_used_again_and_due_is_bounded() {
        let (service, instance) = held();
        let mut table = LeaseTable::default();
        for _ in 0..5_000 {
            let lease = table.open(Mono::ZERO).unwrap();
            table.hold(lease, service.clone(), instance.clone(), Some(Duration::from_millis(1)), true);
        }
        let now = Mono::from_millis(10);
        assert_eq!(table.due(now, Mono::ZERO, true, usize::MAX).len(), 5_000);
        assert_eq!(table.due(now, Mono::ZERO, false, usize::MAX).len(), 0);
        let some = table.due(now, Mono::ZERO, true, 7);
        assert_eq!(some.len(), 7);
        for due in some {
            table.close(due.lease);
        }
        assert_eq!(table.len(), 4_993);
        assert_eq!(table.due(now, Mono::ZERO, true, usize::MAX).len(), 4_993);
        table.open(now).unwrap();
        assert_eq!(table.held.len(), 5_000);
    }

    #[test]
    fn a_beat_after_the_reading_of_the_clock_counts_as_fresh() {
        let table = LeaseTable::default();
        table.cells.grow_to(0);
        let lease = LeaseId::at(0).unwrap();
        table.cells.beat(lease, Mono::from_millis(101));
        assert_eq!(table.cells.silence(lease, Mono::from_millis(100)), Duration::ZERO);
    }
}
