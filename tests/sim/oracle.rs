//! What the publishers have said and were told, and so what nodes may list.

use std::collections::BTreeMap;

use nomina::{
    clock::Mono,
    registry::{InstanceKey, Limits, Publication},
};
use parking_lot::Mutex;

/// What keeps an instance listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Beats,
    Connection,
}

/// Where a publisher is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// No registration was acknowledged yet.
    Unborn,
    /// It lives, and was acknowledged first at this time.
    Alive(Mono),
    /// It has removed its instance, and was told so at this time.
    Removed(Mono),
    /// It fell silent, or what kept its connection gave it up, at this time.
    Silent(Mono),
}

#[derive(Debug, Clone)]
pub struct Publisher {
    pub key: InstanceKey,
    pub kept: Kept,
    pub life: Life,
    /// Whether a node has been given a reason to list it that still holds.
    pub held: bool,
    /// The data that were acknowledged last, by number, and when.
    pub said: (u64, Mono),
    /// The data that were sent last.
    pub tried: u64,
    /// The first data that count: what was sent before may have been under way and arrived later.
    pub late_before: u64,
    /// Whether a registration or beat may still be under way that nobody waits for.
    pub late: bool,
}

impl Publisher {
    pub fn is_alive(&self) -> bool {
        matches!(self.life, Life::Alive(_))
    }

    /// Whether it may be listed with the data of that number.
    pub fn may_say(&self, number: u64) -> bool {
        number == self.said.0 || (self.said.0 < number && number <= self.tried) || number < self.late_before
    }
}

/// All publishers by their number.
#[derive(Debug, Default)]
pub struct Oracle(Mutex<BTreeMap<usize, Publisher>>);

impl Oracle {
    pub fn add(&self, id: usize, key: InstanceKey, kept: Kept) {
        let (life, said) = (Life::Unborn, (0, Mono::ZERO));
        let new = Publisher { key, kept, life, held: false, said, tried: 0, late_before: 0, late: false };
        self.0.lock().insert(id, new);
    }

    pub fn change(&self, id: usize, change: impl FnOnce(&mut Publisher)) {
        if let Some(publisher) = self.0.lock().get_mut(&id) {
            change(publisher);
        }
    }

    pub fn acknowledged(&self, id: usize, number: u64, now: Mono) {
        self.change(id, |publisher| {
            publisher.said = (number, now);
            publisher.held = true;
            if !publisher.is_alive() {
                publisher.life = Life::Alive(now);
            }
        });
    }

    pub fn ended(&self, id: usize, life: Life) {
        self.change(id, |publisher| {
            publisher.life = life;
            publisher.held = false;
        });
    }

    /// What was said until now may have been lost with the node that took it, or have met with what was said elsewhere.
    pub fn excuse_data(&self) {
        for publisher in self.0.lock().values_mut() {
            publisher.late_before = publisher.tried + 1;
        }
    }

    pub fn all(&self) -> Vec<(usize, Publisher)> {
        self.0.lock().iter().map(|(id, publisher)| (*id, publisher.clone())).collect()
    }
}

const NUMBER: &str = "n";

/// What a publisher says in its registration of that number.
pub fn publication(number: u64) -> Publication {
    let metadata = Limits::default().metadata([(NUMBER, number.to_string())]).unwrap();
    Publication { metadata, ..Publication::default() }
}

/// The number of the registration that is listed.
pub fn number(metadata: &nomina::registry::Metadata) -> u64 {
    metadata.value(NUMBER).and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}
