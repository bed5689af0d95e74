//! How members reach each other, as everything above sees it: messages, not bytes.
//!
//! [`Transport`] asks, [`Accept`] answers. [`super::network::dial`] and [`super::network::listen`] carry them over the network, [`memory`]
//! within one process, with every fault that a network has.

pub mod memory;

use std::{future::Future, net::SocketAddr, pin::Pin, time::Duration};

use tokio::sync::mpsc;

use super::{member::MemberName, network::handshake};
use crate::{
    error::{Classify, Code},
    wire::pb::peer as pb,
};

/// A future on the heap, so that traits that return one can be objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Messages that wait at each end of a link, in each direction. 8: of batches of 1 MiB that is as much as the windows of
/// HTTP/2 let travel; the sender then waits.
pub const LINK_CAPACITY: usize = 8;

/// One end of a link: messages in order, both ways, until one end closes it.
///
/// An end closes it by dropping either half. What it has sent before still arrives; then the other end's receiver ends,
/// and its sender fails at the latest when it has let go of its own half. When the link breaks, both halves of both ends
/// end, and nobody can know how much has arrived. Either way a receiver that has ended is all that an end is told.
#[derive(Debug)]
pub struct Link<S, R> {
    /// To the other end. Waits while it does not keep up.
    pub sender: mpsc::Sender<S>,
    /// From the other end.
    pub receiver: mpsc::Receiver<R>,
}

/// The end of the member that dialled.
pub type Dialled = Link<pb::LinkRequest, pb::LinkResponse>;

/// The end of the member that was dialled.
pub type Accepted = Link<pb::LinkResponse, pb::LinkRequest>;

/// Reaches the other members.
///
/// A call has no bound of its own once the member is reached: the caller bounds it, and a future that is dropped may
/// nevertheless have been carried out over there.
pub trait Transport: Send + Sync + 'static {
    /// Opens a link to `to`.
    ///
    /// # Errors
    /// [`Unreachable`]; the same call may succeed later.
    fn link(&self, to: &MemberName) -> BoxFuture<'static, Result<Dialled, Unreachable>>;

    /// Sends a write to the member that owns it.
    ///
    /// # Errors
    /// [`Unreachable`]; after [`Unreachable::Broken`] the write may have been done.
    fn forward(
        &self,
        to: &MemberName,
        request: pb::ForwardRequest,
    ) -> BoxFuture<'static, Result<pb::ForwardResponse, Unreachable>>;

    /// The address at which `to` was reached last; `None` if the last attempt failed or is under way, or there are no
    /// addresses.
    fn address(&self, to: &MemberName) -> Option<SocketAddr> {
        let _ = to;
        None
    }

    /// Asks `to` for a page of what it holds of members that are gone.
    ///
    /// # Errors
    /// [`Unreachable`]; the same call may succeed later.
    fn list_orphans(
        &self,
        to: &MemberName,
        request: pb::ListOrphansRequest,
    ) -> BoxFuture<'static, Result<pb::ListOrphansResponse, Unreachable>>;
}

/// What a member answers the others with. `from` has proved its name.
pub trait Accept: Send + Sync + 'static {
    /// A link that `from` has opened. Returns at once; there may still be an older one, whose messages come in late.
    fn link(&self, from: MemberName, link: Accepted);

    /// A write that `from` holds this member to be the owner of.
    fn forward(&self, from: MemberName, request: pb::ForwardRequest) -> BoxFuture<'static, pb::ForwardResponse>;

    /// A page of what this member holds of members that are gone.
    fn list_orphans(
        &self,
        from: MemberName,
        request: pb::ListOrphansRequest,
    ) -> BoxFuture<'static, pb::ListOrphansResponse>;
}

/// Why a member was not reached.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unreachable {
    /// Nothing listens there: no address of the member takes connections.
    #[error("{member} refuses connections at {address}")]
    Refused {
        /// The member.
        member: MemberName,
        /// The address that was tried last.
        address: SocketAddr,
    },
    /// No address is known for the member.
    #[error("no address of {member} is known: {reason}")]
    Unresolved {
        /// The member.
        member: MemberName,
        /// What the resolver says.
        reason: String,
    },
    /// The member did not answer in time.
    #[error("{member} did not answer within {} ms", .waited.as_millis())]
    Timeout {
        /// The member.
        member: MemberName,
        /// How long it was waited for.
        waited: Duration,
    },
    /// One of the two did not accept the other.
    #[error("{member} and this node do not accept each other: {reason}")]
    Denied {
        /// The member.
        member: MemberName,
        /// Who refused what.
        reason: handshake::Error,
    },
    /// The connection broke, or could not be made.
    #[error("the connection to {member} broke: {reason}")]
    Broken {
        /// The member.
        member: MemberName,
        /// What the system, or HTTP/2, says.
        reason: String,
    },
}

impl Classify for Unreachable {
    fn code(&self) -> Code {
        match self {
            Self::Refused { .. }
            | Self::Unresolved { .. }
            | Self::Timeout { .. }
            | Self::Denied { .. }
            | Self::Broken { .. } => Code::Unavailable,
        }
    }
}
