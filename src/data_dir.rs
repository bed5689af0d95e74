//! The data directory, and the lock that lets one process at a time use it.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

/// Name of the file that carries the lock, and the process id of who holds it.
pub const LOCK_FILE: &str = "nomina.lock";

/// More than any process id: a longer file was not written by us.
const MAX_PID_BYTES: u64 = 32;

/// A data directory that belongs to this process until the value is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// Holds the lock for as long as it is open.
    _lock: File,
}

/// Why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is missing and cannot be made.
    #[error("cannot create the data directory {} (server.data_dir)", path.display())]
    Create {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The lock file cannot be opened, locked or written.
    #[error("cannot lock the data directory {} (server.data_dir)", path.display())]
    Lock {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another process uses it.
    #[error(
        "the data directory {} (server.data_dir) is in use by {}; stop that one, or give this one a directory of its own",
        path.display(), holder(*.pid)
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process that holds it, if it can be read.
        pid: Option<u32>,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl DataDir {
    /// Makes the directory if it is missing and takes the lock. Does not wait for it.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process (or this one) holds the lock; else what the system says.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        fs::create_dir_all(&path).map_err(|source| Error::Create { path: path.clone(), source })?;
        let failed = |source| Error::Lock { path: path.clone(), source };
        // Not truncated: what stands there is the holder's id, as long as there is a holder.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK_FILE))
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { pid: pid_in(file), path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        write_pid(&mut file).map_err(failed)?;
        Ok(Self { path, _lock: file })
    }

    /// The directory, as an absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn pid_in(file: File) -> Option<u32> {
    let mut text = String::new();
    file.take(MAX_PID_BYTES).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_user_is_told_who_holds_it() {
        let temp = tempfile::tempdir().expect("a directory");
        let path = temp.path().join("deep/data");
        let held = DataDir::open(&path).expect("free");
        let error = DataDir::open(&path).expect_err("held").to_string();
        assert!(error.contains(&held.path().display().to_string()), "{error}");
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        DataDir::open(&path).expect("free again");
    }

    #[test]
    fn what_stands_in_the_file_of_a_dead_holder_does_not_matter() {
        let temp = tempfile::tempdir().expect("a directory");
        fs::write(temp.path().join(LOCK_FILE), "4294967295 and much more than a process id").expect("written");
        let held = DataDir::open(temp.path()).expect("free");
        let text = fs::read_to_string(temp.path().join(LOCK_FILE)).expect("text");
        assert_eq!(text, format!("{}\n", std::process::id()));
        drop(held);
    }

    #[test]
    fn a_file_in_its_place_is_named() {
        let temp = tempfile::tempdir().expect("a directory");
        let path = temp.path().join("data");
        fs::write(&path, "").expect("written");
        let error = DataDir::open(&path).expect_err("a file").to_string();
        assert!(error.contains("cannot create the data directory") && error.contains("server.data_dir"), "{error}");
    }
}
