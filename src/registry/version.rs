//! Which of two records is newer, without any clock: stamps that grow, and who gave them.

use std::fmt;

/// An incarnation of a member, as this node numbers it; 0 is this node itself. At most 4,095 others at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OwnerId(u16);

impl OwnerId {
    /// This node.
    pub const SELF: Self = Self(0);

    const BITS: u32 = 12;
    const MASK: u64 = (1 << Self::BITS) - 1;

    /// The owner of this number; `None` above 4,095.
    #[must_use]
    pub fn new(number: usize) -> Option<Self> {
        u16::try_from(number).ok().filter(|number| u64::from(*number) <= Self::MASK).map(Self)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// Whether it is this node.
    #[must_use]
    pub const fn is_self(self) -> bool {
        self.0 == 0
    }
}

/// A count of all registrations and removals that a node knows of: what comes later because of another has the higher one
/// (Lamport 1978). 44 bits: 18 years at 30,000 a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp(u64);

impl Stamp {
    /// The highest stamp.
    pub const MAX: Self = Self((1 << 44) - 1);

    /// The stamp of this number; numbers past the highest stamp count as that.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        if number > Self::MAX.0 { Self::MAX } else { Self(number) }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The stamp after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::new(self.0 + 1)
    }
}

/// The state of one record: the stamp of its registration, the number of changes since, and whose record it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Version(u64);

impl Version {
    const MINOR_BITS: u32 = 8;

    /// A version with these parts.
    #[must_use]
    pub const fn new(stamp: Stamp, minor: u8, owner: OwnerId) -> Self {
        Self((stamp.0 << (Self::MINOR_BITS + OwnerId::BITS)) | ((minor as u64) << OwnerId::BITS) | owner.0 as u64)
    }

    /// The version whose [`Version::order`] this is.
    #[must_use]
    pub const fn from_order(order: u64, owner: OwnerId) -> Self {
        let stamp = Stamp::new(order >> Self::MINOR_BITS);
        Self::new(stamp, order as u8, owner)
    }

    /// Whose record it is.
    #[must_use]
    pub const fn owner(self) -> OwnerId {
        OwnerId((self.0 & OwnerId::MASK) as u16)
    }

    /// The stamp of the registration.
    #[must_use]
    pub const fn stamp(self) -> Stamp {
        Stamp(self.0 >> (Self::MINOR_BITS + OwnerId::BITS))
    }

    /// Changes since the registration.
    #[must_use]
    pub const fn minor(self) -> u8 {
        (self.0 >> OwnerId::BITS) as u8
    }

    /// A number that orders the versions of one owner: stamp, then minor.
    #[must_use]
    pub const fn order(self) -> u64 {
        self.0 >> OwnerId::BITS
    }

    /// The version after one more change that is not a registration; `None` if the stamp has room for no more.
    #[must_use]
    pub fn changed(self) -> Option<Self> {
        self.minor().checked_add(1).map(|minor| Self::new(self.stamp(), minor, self.owner()))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}@{}", self.stamp().number(), self.minor(), self.owner().number())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_parts_come_back(stamp in 0_u64..1 << 44, minor: u8, owner in 0_usize..4_096) {
            let owner = OwnerId::new(owner).unwrap();
            let version = Version::new(Stamp::new(stamp), minor, owner);
            prop_assert_eq!((version.stamp().number(), version.minor(), version.owner()), (stamp, minor, owner));
            prop_assert_eq!(Version::from_order(version.order(), owner), version);
        }

        #[test]
        fn a_stamp_beats_any_minor(stamp in 0_u64..(1 << 44) - 1, a: u8, b: u8) {
            let of = |stamp, minor| Version::new(Stamp::new(stamp), minor, OwnerId::SELF).order();
            prop_assert!(of(stamp, a) < of(stamp + 1, b));
        }
    }

    #[test]
    fn bounds_hold() {
        assert_eq!(OwnerId::new(4_096), None);
        assert_eq!(Stamp::MAX.next(), Stamp::MAX);
        assert_eq!(Version::new(Stamp::new(1), 255, OwnerId::SELF).changed(), None);
    }
}
