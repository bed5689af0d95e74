//! One look at the source of the list.

use std::{io, path::PathBuf, time::Duration};

use tokio::io::AsyncReadExt;

use super::{
    Source,
    dns::{Dns, DnsError},
};
use crate::cluster::member::{ListError, MemberList, MemberName};

/// A longer file is not a list of 256 members.
const MOST_FILE_BYTES: u64 = 256 * 1024;
/// Longest time for one look. A name server or a file system that hangs is a failure, and the next look comes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a look gave no list.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is too long.
    #[error("{} is longer than {MOST_FILE_BYTES} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The file holds no list.
    #[error("{} is no list of members", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ListError,
    },
    /// DNS has no list.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// It took too long.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Slow,
}

/// Reads the list, as often as it is asked.
#[derive(Debug)]
pub(super) enum Reader {
    Fixed(MemberList),
    File(PathBuf),
    Dns(Box<Dns>),
}

impl Reader {
    /// A reader of `source` on the node `me`.
    pub(super) fn new(source: Source, me: &MemberName) -> Self {
        match source {
            Source::Fixed(list) => Self::Fixed(list),
            Source::File(path) => Self::File(path),
            Source::Dns(name) => Self::Dns(Box::new(Dns::new(name, me))),
        }
    }

    /// Whether another look can give another list.
    pub(super) const fn can_change(&self) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::File(_) | Self::Dns(_) => true,
        }
    }

    /// The list as it stands there now. A file is read whole each time: a few hundred bytes, and a time stamp would miss
    /// a change within its resolution and a mounted file that was swapped.
    pub(super) async fn read(&mut self) -> Result<MemberList, ReadError> {
        let look = async {
            match self {
                Self::Fixed(list) => Ok(list.clone()),
                Self::File(path) => read_file(path).await,
                Self::Dns(dns) => Ok(dns.look_up().await?),
            }
        };
        tokio::time::timeout(PATIENCE, look).await.unwrap_or(Err(ReadError::Slow))
    }
}

async fn read_file(path: &PathBuf) -> Result<MemberList, ReadError> {
    let failed = |source| ReadError::Open { path: path.clone(), source };
    let mut text = String::new();
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    file.take(MOST_FILE_BYTES + 1).read_to_string(&mut text).await.map_err(failed)?;
    if text.len() as u64 > MOST_FILE_BYTES {
        return Err(ReadError::TooLong { path: path.clone() });
    }
    MemberList::parse_lines(&text).map_err(|source| ReadError::File { path: path.clone(), source })
}
