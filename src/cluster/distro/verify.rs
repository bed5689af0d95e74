//! Which buckets two members compare, and what a listing of them means for the copy.

use std::collections::HashMap;

use crate::registry::digest::BUCKETS;

/// Buckets that are listed in one round: at a million records of one owner that is a message of 4 MB.
pub const LISTED_AT_ONCE: usize = 1_024;

/// Rounds after which a bucket is compared although its owner goes on changing it.
const PATIENCE: u8 = 3;

/// What the receiver of records knows of earlier rounds with their owner.
#[derive(Debug, Default)]
pub struct Rounds {
    /// The owner's digests in the last round, and for how many rounds each bucket has differed.
    last: Vec<(u64, u8)>,
}

/// What a round asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Buckets of which a listing is wanted.
    pub listed: Vec<u32>,
    /// Buckets of which all records are wanted, as none are held.
    pub whole: Vec<u32>,
}

impl Wanted {
    /// Whether nothing is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.whole.is_empty()
    }
}

impl Rounds {
    /// What to ask for, when the owner's digests are `theirs` and those of the copy `ours`.
    ///
    /// A bucket that changed at its owner since the last round differs because its changes are under way: it is given
    /// time, but for `eager` rounds, in which nothing is.
    pub fn compare(&mut self, theirs: &[u64], ours: &[u64], eager: bool) -> Wanted {
        self.last.resize(BUCKETS, (0, 0));
        let mut wanted = Wanted::default();
        for (bucket, ((theirs, ours), last)) in (0_u32..).zip(theirs.iter().zip(ours).zip(&mut self.last)) {
            if theirs == ours {
                *last = (*theirs, 0);
                continue;
            }
            let rounds = last.1.saturating_add(1);
            let at_rest = last.1 > 0 && last.0 == *theirs;
            *last = (*theirs, rounds);
            if !eager && !at_rest && rounds < PATIENCE {
                continue;
            }
            if *ours == 0 {
                wanted.whole.push(bucket);
            } else if wanted.listed.len() < LISTED_AT_ONCE {
                wanted.listed.push(bucket);
            }
        }
        wanted
    }
}

/// A listing of some buckets, compared with the copy one record at a time.
#[derive(Debug)]
pub struct Comparison {
    /// What the owner listed and was not met yet, by the hash of the instance.
    missing: HashMap<u64, u64, ahash::RandomState>,
    as_of: u64,
}

/// What the listing means for one record of the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is as its owner has it, or newer than the listing.
    Stays,
    /// Its owner has another state of it, which is wanted.
    Outdated,
    /// Its owner has it no more.
    Goes,
}

impl Comparison {
    /// A comparison with the listing of these hashes and versions, as of that point in the owner's history.
    #[must_use]
    pub fn new(keys: &[u64], versions: &[u64], as_of: u64) -> Self {
        Self { missing: keys.iter().copied().zip(versions.iter().copied()).collect(), as_of }
    }

    /// Judges a record of the copy that is in one of the listed buckets.
    pub fn judge(&mut self, hash: u64, version: u64) -> Verdict {
        match self.missing.get(&hash) {
            Some(listed) if *listed == version => {
                self.missing.remove(&hash);
                Verdict::Stays
            }
            Some(_) if version > self.as_of => {
                self.missing.remove(&hash);
                Verdict::Stays
            }
            Some(_) => Verdict::Outdated,
            None if version > self.as_of => Verdict::Stays,
            None => Verdict::Goes,
        }
    }

    /// The hashes of what is wanted: missing or outdated, once all of the copy has been judged.
    #[must_use]
    pub fn wanted(self) -> Vec<u64> {
        let mut wanted: Vec<_> = self.missing.into_keys().collect();
        wanted.sort_unstable();
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(changed: &[(usize, u64)]) -> Vec<u64> {
        let mut digests = vec![1; BUCKETS];
        for (bucket, digest) in changed {
            digests[*bucket] = *digest;
        }
        digests
    }

    #[test]
    fn what_moves_is_given_time_and_what_rests_is_compared() {
        let mut rounds = Rounds::default();
        let ours = digests(&[(7, 0)]);
        let mut asked = |bucket_3, eager| rounds.compare(&digests(&[(3, bucket_3)]), &ours, eager);
        assert_eq!(asked(2, false), Wanted::default());
        assert_eq!(asked(2, false), Wanted { listed: vec![3], whole: vec![7] });
        assert_eq!(asked(1, false), Wanted { listed: vec![], whole: vec![7] });
        assert_eq!(asked(4, false), Wanted { listed: vec![], whole: vec![7] });
        assert_eq!(asked(5, false), Wanted { listed: vec![], whole: vec![7] });
        assert_eq!(asked(6, false), Wanted { listed: vec![3], whole: vec![7] });
        assert_eq!(asked(8, true), Wanted { listed: vec![3], whole: vec![7] });
    }

    #[test]
    fn a_listing_finds_missing_outdated_and_surplus_records() {
        let mut comparison = Comparison::new(&[1, 2, 3, 4], &[10, 20, 30, 40], 100);
        assert_eq!(comparison.judge(1, 10), Verdict::Stays);
        assert_eq!(comparison.judge(2, 19), Verdict::Outdated);
        assert_eq!(comparison.judge(3, 101), Verdict::Stays);
        assert_eq!(comparison.judge(5, 99), Verdict::Goes);
        assert_eq!(comparison.judge(6, 101), Verdict::Stays);
        assert_eq!(comparison.wanted(), [2, 4]);
    }
}
