//! What two members say before anything else: who they are, and that both know the cluster's secret.
//!
//! Four frames of fixed size, so that nothing is parsed and nothing is allocated for somebody unknown:
//!
//! | | from | what |
//! | --- | --- | --- |
//! | opening | dialler | mark and version, nonce, own name, name of the member that it means |
//! | challenge | acceptor | mark and version, nonce |
//! | proof | dialler | HMAC-SHA256 over its role, both nonces and both names, keyed by the secret |
//! | proof | acceptor | the same for the other role |
//!
//! The dialler proves itself first: whoever does not know the secret gets nothing computed with it from a listener. The
//! role and the order of the names keep a proof from being sent back, the nonces from being used again. Inside TLS a
//! value that only the two ends of that TLS session know goes into the proofs too, so that they cannot be relayed. On a
//! bare connection whoever sits on the path can take it over afterwards: that is what TLS is for.

use std::{fmt, io, time::Duration};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::cluster::member::MemberName;
use crate::setting::Secret;

/// How long the whole of it may take. Four frames take two round trips; a member that needs longer serves nobody.
pub const BOUND: Duration = Duration::from_secs(5);

/// Shortest secret, in bytes: as long as a key of HMAC-SHA256 is of use.
pub const SHORTEST_SECRET: usize = 32;

/// What a frame starts with, and the version of the handshake.
const MARK: [u8; 8] = *b"nomina\0\x01";

/// Bytes for a name in a frame: the longest host of DNS, brackets, and `:65535`.
const NAME: usize = 264;

const NONCE: usize = 32;
const PROOF: usize = 32;
const OPENING: usize = NONCE + 2 * (2 + NAME);

/// What only the two ends of one TLS session know; all zeros on a bare connection.
pub type Binding = [u8; 32];

/// Who this node is towards the others, and what it proves that with.
#[derive(Clone)]
pub struct Identity {
    name: MemberName,
    key: Hmac<Sha256>,
}

/// The cluster's secret is too short to be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the secret has {length} bytes, fewer than {SHORTEST_SECRET}")]
pub struct ShortSecret {
    /// Bytes that it has.
    pub length: usize,
}

/// Why the two ends do not accept each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The other end closed the connection before it said anything: a probe of the port, most likely.
    #[error("it said nothing")]
    Silent,
    /// The other end closed the connection in between: it refused, and its log says why, or it ended.
    #[error("it closed the connection; the reason is in its log")]
    Closed,
    /// It took longer than [`BOUND`].
    #[error("it took longer than {} s", BOUND.as_secs())]
    Timeout,
    /// The other end is no Nomina, or one of another version of the handshake.
    #[error("it does not speak this handshake")]
    Foreign,
    /// A name in the opening is none.
    #[error("it sent a name that is none")]
    Malformed,
    /// The name is not in the member list of this node.
    #[error("{name} is not in the member list")]
    Unknown {
        /// The name.
        name: MemberName,
    },
    /// This node has been taken out of the member list of the other end since.
    #[error("it has taken this node out of its member list")]
    Expelled,
    /// The other end goes by this node's name.
    #[error("it goes by the name of this node")]
    Own,
    /// The other end means another member than this node.
    #[error("{name} took this node for {wanted}")]
    Elsewhere {
        /// Who dialled.
        name: MemberName,
        /// Whom it means.
        wanted: MemberName,
    },
    /// The other end sent this node's own nonce back.
    #[error("it sent back what it was sent")]
    Reflected,
    /// The proof is wrong: the two do not have the same secret.
    #[error("its secret is another one")]
    Proof,
    /// TLS was not agreed on.
    #[error("TLS: {reason}")]
    Tls {
        /// What rustls says.
        reason: String,
    },
    /// The certificate of the other end is not one for its name.
    #[error("its certificate is not for {name}")]
    Certificate {
        /// The name.
        name: MemberName,
    },
    /// The system has no randomness, or the connection failed.
    #[error("{kind}")]
    Io {
        /// What the system says.
        kind: io::ErrorKind,
    },
}

impl Identity {
    /// The node `name` of the cluster that shares `secret`.
    ///
    /// # Errors
    /// [`ShortSecret`] if the secret has fewer than [`SHORTEST_SECRET`] bytes.
    pub fn new(name: MemberName, secret: &Secret) -> Result<Self, ShortSecret> {
        let secret = secret.reveal().as_bytes();
        let short = ShortSecret { length: secret.len() };
        if secret.len() < SHORTEST_SECRET {
            return Err(short);
        }
        let key = Hmac::new_from_slice(secret).map_err(|_| short)?;
        Ok(Self { name, key })
    }

    /// This node's name.
    #[must_use]
    pub fn name(&self) -> &MemberName {
        &self.name
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The dialler's part: proves to the other end of `stream` that `own` is a member, and checks that it is `to`.
///
/// # Errors
/// [`Error`]; the connection is of no use then.
pub async fn dial<S>(stream: &mut S, own: &Identity, to: &MemberName, binding: &Binding) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    bounded(async {
        let dialler = nonce()?;
        let mut opening = MARK.to_vec();
        opening.extend(dialler);
        put_name(&mut opening, &own.name)?;
        put_name(&mut opening, to)?;
        send(stream, &opening).await?;

        marked(stream).await.map_err(|error| if error == Error::Silent { Error::Closed } else { error })?;
        let acceptor: [u8; NONCE] = read(stream).await?;
        if acceptor == dialler {
            return Err(Error::Reflected);
        }
        let said = Said { binding, dialler: &dialler, acceptor: &acceptor, from: &own.name, to };
        send(stream, &said.signed(own, Role::Dialler).finalize().into_bytes()).await?;
        let proof: [u8; PROOF] = read(stream).await?;
        said.signed(own, Role::Acceptor).verify_slice(&proof).map_err(|_| Error::Proof)
    })
    .await
}

/// The acceptor's part: the name of the member at the other end of `stream`, once it is proved.
///
/// * `knows`: whether a name is in the member list.
///
/// # Errors
/// [`Error`]; the connection is to be closed then, without a word.
pub async fn accept<S>(
    stream: &mut S,
    own: &Identity,
    binding: &Binding,
    knows: impl Fn(&MemberName) -> bool + Send,
) -> Result<MemberName, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    bounded(async {
        marked(stream).await?;
        let opening: [u8; OPENING] = read(stream).await?;
        let (dialler, names) = opening.split_at(NONCE);
        let (from, to) = names.split_at(2 + NAME);
        let (from, to) = (take_name(from)?, take_name(to)?);
        if from == own.name {
            return Err(Error::Own);
        }
        if to != own.name {
            return Err(Error::Elsewhere { name: from, wanted: to });
        }
        if !knows(&from) {
            return Err(Error::Unknown { name: from });
        }
        let acceptor = nonce()?;
        send(stream, &[&MARK[..], &acceptor].concat()).await?;
        let said = Said { binding, dialler, acceptor: &acceptor, from: &from, to: &to };
        let proof: [u8; PROOF] = read(stream).await?;
        said.signed(own, Role::Dialler).verify_slice(&proof).map_err(|_| Error::Proof)?;
        send(stream, &said.signed(own, Role::Acceptor).finalize().into_bytes()).await?;
        Ok(from)
    })
    .await
}

async fn bounded<T>(handshake: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(BOUND, handshake).await.unwrap_or(Err(Error::Timeout))
}

#[derive(Clone, Copy)]
enum Role {
    Dialler,
    Acceptor,
}

/// What both ends have said, which the proofs are about.
struct Said<'a> {
    binding: &'a Binding,
    dialler: &'a [u8],
    acceptor: &'a [u8],
    from: &'a MemberName,
    to: &'a MemberName,
}

impl Said<'_> {
    /// The code of all that, in the name of `role`. Every part has a fixed size or its length before it.
    fn signed(&self, own: &Identity, role: Role) -> Hmac<Sha256> {
        let mut code = own.key.clone();
        code.update(&MARK);
        code.update(match role {
            Role::Dialler => b"dialler ",
            Role::Acceptor => b"acceptor",
        });
        code.update(self.binding);
        code.update(self.dialler);
        code.update(self.acceptor);
        for name in [self.from, self.to] {
            code.update(&(name.as_str().len() as u64).to_be_bytes());
            code.update(name.as_str().as_bytes());
        }
        code
    }
}

fn nonce() -> Result<[u8; NONCE], Error> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).map_err(|_| Error::Io { kind: io::ErrorKind::Other })?;
    Ok(nonce)
}

fn put_name(frame: &mut Vec<u8>, name: &MemberName) -> Result<(), Error> {
    let name = name.as_str().as_bytes();
    let length = u16::try_from(name.len()).map_err(|_| Error::Malformed)?;
    let rest = NAME.checked_sub(name.len()).ok_or(Error::Malformed)?;
    frame.extend(length.to_be_bytes());
    frame.extend(name);
    frame.extend(std::iter::repeat_n(0, rest));
    Ok(())
}

/// The name in its place in a frame; it must be written as every member writes it, and nothing may follow it.
fn take_name(field: &[u8]) -> Result<MemberName, Error> {
    let (length, text) = field.split_first_chunk().ok_or(Error::Malformed)?;
    let (text, rest) = text.split_at_checked(u16::from_be_bytes(*length).into()).ok_or(Error::Malformed)?;
    let text = str::from_utf8(text).map_err(|_| Error::Malformed)?;
    let name = MemberName::parse(text).map_err(|_| Error::Malformed)?;
    if name.as_str() != text || rest.iter().any(|byte| *byte != 0) {
        return Err(Error::Malformed);
    }
    Ok(name)
}

/// Reads the mark. By itself, so that whoever speaks something else is let go at once.
async fn marked(stream: &mut (impl AsyncRead + Unpin)) -> Result<(), Error> {
    let mut mark = [0; MARK.len()];
    let mut filled = 0;
    while filled < mark.len() {
        let Some(empty) = mark.get_mut(filled..) else { break };
        let read = stream.read(empty).await.map_err(|error| failed(&error))?;
        if read == 0 {
            return Err(if filled == 0 { Error::Silent } else { Error::Closed });
        }
        filled += read;
        if mark.get(..filled) != MARK.get(..filled) {
            return Err(Error::Foreign);
        }
    }
    Ok(())
}

async fn read<const N: usize>(stream: &mut (impl AsyncRead + Unpin)) -> Result<[u8; N], Error> {
    let mut frame = [0; N];
    stream.read_exact(&mut frame).await.map_err(|error| failed(&error))?;
    Ok(frame)
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), frame: &[u8]) -> Result<(), Error> {
    stream.write_all(frame).await.map_err(|error| failed(&error))?;
    stream.flush().await.map_err(|error| failed(&error))
}

fn failed(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => Error::Closed,
        kind => Error::Io { kind },
    }
}

#[cfg(test)]
mod tests;
