//! The called side of `nomina.peer.v1.PeerService`: hands on to [`Accept`] what an authenticated member says.

use std::{pin::Pin, sync::Arc};

use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::{
    listen::Knows,
    stream::{Outgoing, deliver},
};
use crate::cluster::{
    member::MemberName,
    transport::{Accept, LINK_CAPACITY, Link},
};
use crate::{
    shutdown::Shutdown,
    wire::pb::peer::{self as pb, peer_service_server::PeerService},
};

/// See the module. Requests must carry the [`MemberName`] that their connection has proved among their extensions.
#[derive(Clone)]
pub struct PeerApi {
    accept: Arc<dyn Accept>,
    knows: Knows,
    shutdown: Shutdown,
}

impl PeerApi {
    /// Answers with `accept` as long as `knows` knows the caller; links end when `shutdown` drains.
    #[must_use]
    pub fn new(accept: Arc<dyn Accept>, knows: Knows, shutdown: Shutdown) -> Self {
        Self { accept, knows, shutdown }
    }

    /// Who asks. A member can be taken out of the list while its connection stands.
    fn from<T>(&self, request: &Request<T>) -> Result<MemberName, Status> {
        let name = request.extensions().get::<MemberName>();
        name.filter(|name| (self.knows)(name)).cloned().ok_or_else(|| Status::permission_denied("not a member"))
    }
}

#[tonic::async_trait]
impl PeerService for PeerApi {
    type LinkStream = Pin<Box<dyn Stream<Item = Result<pb::LinkResponse, Status>> + Send>>;

    async fn link(&self, request: Request<Streaming<pb::LinkRequest>>) -> Result<Response<Self::LinkStream>, Status> {
        let from = self.from(&request)?;
        let (sender, messages) = mpsc::channel(LINK_CAPACITY);
        let (deliver_to, receiver) = mpsc::channel(LINK_CAPACITY);
        let let_go = CancellationToken::new();
        let outgoing = Outgoing::new(messages, &let_go);
        let (incoming, member, end) = (request.into_inner(), from.clone(), self.shutdown.draining());
        self.shutdown.spawn(async move {
            deliver(&member, incoming, deliver_to, let_go, false, end).await;
        });
        self.accept.link(from, Link { sender, receiver });
        Ok(Response::new(Box::pin(outgoing.map(Ok))))
    }

    async fn forward(&self, request: Request<pb::ForwardRequest>) -> Result<Response<pb::ForwardResponse>, Status> {
        let from = self.from(&request)?;
        Ok(Response::new(self.accept.forward(from, request.into_inner()).await))
    }

    async fn list_orphans(
        &self,
        request: Request<pb::ListOrphansRequest>,
    ) -> Result<Response<pb::ListOrphansResponse>, Status> {
        let from = self.from(&request)?;
        Ok(Response::new(self.accept.list_orphans(from, request.into_inner()).await))
    }
}
