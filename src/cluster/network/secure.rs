//! A connection to another member, once both ends know who is there: TLS if it is configured, then the handshake.

use std::{future::Future, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsStream;

use super::{
    handshake::{self, BOUND, Binding, Error, Identity},
    tls::{self, Tls},
};
use crate::cluster::member::MemberName;

/// What HTTP/2 is spoken over.
pub type Stream = Box<dyn Duplex>;

/// Both directions of a connection.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// What the exporter of TLS is asked for; private use, RFC 5705 section 4.
const LABEL: &[u8] = b"EXPERIMENTAL nomina peer handshake";

/// Makes `tcp`, which this node has opened, a connection to `to`.
///
/// # Errors
/// [`Error`] if one end does not accept the other, or if it takes longer than [`BOUND`].
pub async fn dial(
    mut tcp: TcpStream,
    own: &Identity,
    tls: Option<&Arc<Tls>>,
    to: &MemberName,
) -> Result<Stream, Error> {
    bounded(async {
        let Some(tls) = tls else {
            handshake::dial(&mut tcp, own, to, &Binding::default()).await?;
            return Ok(Box::new(tcp) as Stream);
        };
        let name = tls::server_name(to).ok_or_else(|| Error::Certificate { name: to.clone() })?;
        let inside = tls.connector().connect(name, tcp).await.map_err(|error| refused(&error))?;
        let mut inside = TlsStream::from(inside);
        let binding = binding(&inside)?;
        handshake::dial(&mut inside, own, to, &binding).await?;
        Ok(Box::new(inside) as Stream)
    })
    .await
}

/// Makes `tcp`, which this node has accepted, a connection to the member that it turns out to come from.
///
/// * `knows`: whether a name is in the member list.
///
/// # Errors
/// [`Error`] if one end does not accept the other, or if it takes longer than [`BOUND`].
pub async fn accept(
    mut tcp: TcpStream,
    own: &Identity,
    tls: Option<&Arc<Tls>>,
    knows: impl Fn(&MemberName) -> bool + Send,
) -> Result<(MemberName, Stream), Error> {
    bounded(async {
        let Some(tls) = tls else {
            let from = handshake::accept(&mut tcp, own, &Binding::default(), knows).await?;
            return Ok((from, Box::new(tcp) as Stream));
        };
        // A probe of the port is told from a failure, as it is without TLS.
        if tcp.peek(&mut [0]).await.is_ok_and(|bytes| bytes == 0) {
            return Err(Error::Silent);
        }
        let inside = tls.acceptor().accept(tcp).await.map_err(|error| refused(&error))?;
        let mut inside = TlsStream::from(inside);
        let binding = binding(&inside)?;
        let from = handshake::accept(&mut inside, own, &binding, knows).await?;
        if !tls::is_for(inside.get_ref().1.peer_certificates(), &from) {
            return Err(Error::Certificate { name: from });
        }
        Ok((from, Box::new(inside) as Stream))
    })
    .await
}

async fn bounded<T>(proving: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(BOUND, proving).await.unwrap_or(Err(Error::Timeout))
}

fn refused(error: &std::io::Error) -> Error {
    Error::Tls { reason: error.to_string() }
}

/// What only the two ends of this session know.
fn binding(stream: &TlsStream<TcpStream>) -> Result<Binding, Error> {
    let exported = match stream {
        TlsStream::Client(stream) => stream.get_ref().1.export_keying_material(Binding::default(), LABEL, None),
        TlsStream::Server(stream) => stream.get_ref().1.export_keying_material(Binding::default(), LABEL, None),
    };
    exported.map_err(|error| Error::Tls { reason: error.to_string() })
}
