//! The epoch of this node, and which stamps it may give: the file `cluster-epoch` in the data directory.
//!
//! A restart is a new incarnation, and no two incarnations of a node share an epoch. The file is written before anything
//! is sent under what it says, whole or not at all: a temporary file, synced, renamed over it, and the directory synced.
//! Called by the node at its start, and by who gives stamps; the calls wait for the disk.

use std::{
    fmt, fs, io,
    io::{Read, Write},
    path::{Path, PathBuf},
};

use siphasher::sip::SipHasher13;

/// Name of the file.
pub const FILE: &str = "cluster-epoch";
/// How many stamps are reserved at a time. 2^24: at a million registrations a second the disk is asked every 16 s, and
/// 2^44 stamps last for a million restarts.
pub const RESERVE: u64 = 1 << 24;
/// Stamps lie below this: 44 bits of a version.
pub const STAMP_END: u64 = 1 << 44;

const TEMPORARY: &str = "cluster-epoch.new";
const HEAD: &str = "nomina cluster-epoch 1";
/// Far more than the file ever has.
const MOST_BYTES: u64 = 1_024;
const CHECKSUM_KEY: (u64, u64) = (0x6e6f_6d69_6e61_2d65, 0x706f_6368_2d66_696c);

/// The number of an incarnation of a node: each start has a greater one than the starts before. The first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch with this number, as it came over the wire.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Why the epoch cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is there but is not what this program writes.
    #[error(
        "{} is damaged: {reason}. Put back the file, or remove it if the other nodes run: they tell this node its epoch",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file cannot be written; the one that was there stands.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no epoch or stamp beyond: 44 bits of stamps, 64 of epochs.
    #[error("no {what} is left beyond {last}; remove {} from all nodes while all are stopped", path.display())]
    Exhausted {
        /// Of what.
        what: &'static str,
        /// The last one.
        last: u64,
        /// The file.
        path: PathBuf,
    },
}

/// The file, open for this incarnation. Owned by the node.
#[derive(Debug)]
pub struct EpochFile {
    directory: PathBuf,
    epoch: Epoch,
    floor: u64,
    reserved: u64,
}

impl EpochFile {
    /// Begins a new incarnation: reads the file in `directory`, and stores the next epoch and a first reserve of stamps.
    /// Without a file this is epoch 1.
    ///
    /// * `first`: the epoch before the first one, if there is no file. To be drawn at random by a node in earnest: one
    ///   that has lost its disk must not be taken for the one that it was.
    ///
    /// # Errors
    /// [`Error`]; nothing may be sent then.
    pub fn open(directory: &Path, first: Epoch) -> Result<Self, Error> {
        let path = directory.join(FILE);
        let (stored, floor) = match read(&path) {
            Ok(text) => parse(&text).map_err(|reason| Error::Damaged { path: path.clone(), reason })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => (first.number(), 0),
            Err(source) => return Err(Error::Read { path, source }),
        };
        let mut file = Self { directory: directory.to_owned(), epoch: Epoch(stored), floor, reserved: floor };
        let next = file.after(Epoch(stored))?;
        file.store(next, file.reserve_from(floor)?)?;
        Ok(file)
    }

    /// The epoch of this incarnation.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Every stamp that an earlier incarnation of this node gave lies below.
    #[must_use]
    pub const fn stamp_floor(&self) -> u64 {
        self.floor
    }

    /// Stamps below this may be given; those from here on need [`EpochFile::reserve`] first.
    #[must_use]
    pub const fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Makes sure that `stamp` may be given. Asked when half of a reserve is used, it stores the next one in time; before
    /// that it costs nothing.
    ///
    /// # Errors
    /// [`Error::Write`] and [`Error::Exhausted`]; the reserve is then what it was.
    pub fn reserve(&mut self, stamp: u64) -> Result<(), Error> {
        if stamp.saturating_add(RESERVE / 2) < self.reserved {
            return Ok(());
        }
        self.store(self.epoch, self.reserve_from(stamp)?.max(self.reserved))
    }

    /// Takes an epoch beyond `known`, which another node knows of this one: the file was lost or is an old copy. Does
    /// nothing if this epoch is as great already.
    ///
    /// # Errors
    /// [`Error::Write`] and [`Error::Exhausted`]; the epoch is then what it was.
    pub fn raise(&mut self, known: Epoch) -> Result<Epoch, Error> {
        if known > self.epoch {
            self.store(self.after(known)?, self.reserved)?;
        }
        Ok(self.epoch)
    }

    fn after(&self, epoch: Epoch) -> Result<Epoch, Error> {
        let exhausted = || Error::Exhausted { what: "epoch", last: epoch.0, path: self.path() };
        epoch.0.checked_add(1).map(Epoch).ok_or_else(exhausted)
    }

    fn reserve_from(&self, stamp: u64) -> Result<u64, Error> {
        if stamp >= STAMP_END - 1 {
            return Err(Error::Exhausted { what: "stamp", last: STAMP_END - 1, path: self.path() });
        }
        Ok((stamp + RESERVE).min(STAMP_END))
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    fn store(&mut self, epoch: Epoch, reserved: u64) -> Result<(), Error> {
        replace(&self.directory, &text(epoch.0, reserved))
            .map_err(|source| Error::Write { path: self.path(), source })?;
        (self.epoch, self.reserved) = (epoch, reserved);
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts `text` in the place of the file, so that after a crash there is the old one or the new one.
fn replace(directory: &Path, text: &str) -> io::Result<()> {
    let temporary = directory.join(TEMPORARY);
    let mut file = fs::File::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary, directory.join(FILE))?;
    // A directory can be opened like a file on Unix only.
    if cfg!(unix) { fs::File::open(directory)?.sync_all() } else { Ok(()) }
}

fn text(epoch: u64, reserved: u64) -> String {
    let body = format!("{HEAD}\nepoch {epoch}\nstamp {reserved}\n");
    format!("{body}checksum {:016x}\n", checksum(&body))
}

fn checksum(body: &str) -> u64 {
    SipHasher13::new_with_keys(CHECKSUM_KEY.0, CHECKSUM_KEY.1).hash(body.as_bytes())
}

/// Epoch and reserved stamps, or what is wrong.
fn parse(bytes: &[u8]) -> Result<(u64, u64), &'static str> {
    let whole = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
    let mut lines = whole.lines();
    if lines.next() != Some(HEAD) {
        return Err("it does not start with 'nomina cluster-epoch 1'");
    }
    let mut number = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok();
    let (epoch, reserved) = (number("epoch").ok_or("its epoch is missing")?, number("stamp"));
    let reserved = reserved.ok_or("its stamp is missing")?;
    // What is not exactly what would be written for these numbers was not written by us.
    if text(epoch, reserved) != whole {
        return Err("its checksum is missing or does not fit");
    }
    if reserved > STAMP_END {
        return Err("its stamp has more than 44 bits");
    }
    Ok((epoch, reserved))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    fn place() -> TempDir {
        TempDir::new().expect("a directory")
    }

    fn open(place: &TempDir) -> EpochFile {
        EpochFile::open(place.path(), Epoch::new(0)).expect("opens")
    }

    #[test]
    fn each_start_has_the_next_epoch_and_stamps_of_its_own() {
        let place = place();
        for start in 0..4 {
            let file = open(&place);
            assert_eq!(file.epoch(), Epoch(start + 1));
            assert_eq!((file.stamp_floor(), file.reserved()), (start * RESERVE, (start + 1) * RESERVE));
        }
        assert!(!place.path().join(TEMPORARY).exists());
    }

    #[test]
    fn the_file_is_as_documented() {
        let place = place();
        open(&place);
        let written = fs::read_to_string(place.path().join(FILE)).expect("text");
        assert!(written.starts_with("nomina cluster-epoch 1\nepoch 1\nstamp 16777216\nchecksum "), "{written}");
        assert_eq!(written.lines().count(), 4);
    }

    #[test]
    fn the_next_reserve_is_stored_when_half_is_used() {
        let place = place();
        let mut file = open(&place);
        file.reserve(RESERVE / 2 - 1).expect("no need");
        assert_eq!(file.reserved(), RESERVE);
        file.reserve(RESERVE / 2).expect("stored");
        assert_eq!(file.reserved(), RESERVE + RESERVE / 2);
        file.reserve(9 * RESERVE).expect("a jump after another node's stamp");
        assert_eq!(file.reserved(), 10 * RESERVE);
        assert_eq!(open(&place).stamp_floor(), 10 * RESERVE);
    }

    #[test]
    fn an_epoch_that_others_know_is_passed() {
        let place = place();
        let mut file = open(&place);
        assert_eq!(file.raise(Epoch(41)).expect("stored"), Epoch(42));
        assert_eq!(file.raise(Epoch(41)).expect("no need"), Epoch(42));
        assert_eq!(file.raise(Epoch(42)).expect("it is this one"), Epoch(42));
        assert_eq!(open(&place).epoch(), Epoch(43));
        assert!(matches!(file.raise(Epoch(u64::MAX)), Err(Error::Exhausted { what: "epoch", .. })));
        assert_eq!(file.epoch(), Epoch(42));
    }

    #[test]
    fn stamps_end() {
        let place = place();
        let mut file = open(&place);
        file.reserve(STAMP_END - 2).expect("the last ones");
        assert_eq!(file.reserved(), STAMP_END);
        assert!(matches!(file.reserve(STAMP_END - 1), Err(Error::Exhausted { what: "stamp", .. })));
        assert!(matches!(EpochFile::open(place.path(), Epoch::new(0)), Err(Error::Exhausted { .. })));
    }

    #[test]
    fn a_torn_file_is_an_error_that_names_it_and_is_left_alone() {
        let place = place();
        let path = place.path().join(FILE);
        let whole = text(7, 3 * RESERVE);
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).expect("written");
            let error = EpochFile::open(place.path(), Epoch::new(0)).expect_err("torn").to_string();
            assert!(error.contains(&path.display().to_string()) && error.contains("is damaged"), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("text"), whole[..length]);
        }
        fs::write(&path, &whole).expect("written");
        assert_eq!(open(&place).epoch(), Epoch(8));
    }

    #[test]
    fn a_temporary_file_of_a_crash_does_not_matter() {
        let place = place();
        open(&place);
        fs::write(place.path().join(TEMPORARY), "nomina cluster-ep").expect("written");
        assert_eq!(open(&place).epoch(), Epoch(2));
    }

    #[test]
    fn a_file_that_cannot_be_written_changes_nothing() {
        let place = place();
        let mut file = open(&place);
        fs::create_dir(place.path().join(TEMPORARY)).expect("made");
        assert!(matches!(file.raise(Epoch(9)), Err(Error::Write { .. })));
        assert!(matches!(file.reserve(2 * RESERVE), Err(Error::Write { .. })));
        assert_eq!((file.epoch(), file.reserved()), (Epoch(1), RESERVE));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(epoch: u64, stamp in 0..=STAMP_END) {
            prop_assert_eq!(parse(text(epoch, stamp).as_bytes()), Ok((epoch, stamp)));
        }

        #[test]
        fn a_changed_byte_is_seen(at in 0_usize..80, byte: u8) {
            let mut bytes = text(7, 3 * RESERVE).into_bytes();
            let at = at % bytes.len();
            prop_assume!(bytes[at] != byte);
            bytes[at] = byte;
            prop_assert!(parse(&bytes).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }
}
