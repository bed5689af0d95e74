//! Opens the TCP listeners. All of them are opened before anything is served, so that a port in use stops the start.

use std::{io, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait to be accepted: after a restart all clients come back at once. The system cuts it down to
/// its own limit (`net.core.somaxconn`, 4096 on Linux).
const BACKLOG: u32 = 4096;

/// Why a listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody listens there already.
    #[error("`{key}`: the address {address} is in use by another process; stop it, or set {key} to another address")]
    InUse {
        /// The setting that names the address, dotted.
        key: &'static str,
        /// The address.
        address: SocketAddr,
    },
    /// The system refuses the address.
    #[error("`{key}`: cannot listen on {address}")]
    Refused {
        /// The setting that names the address, dotted.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// Listens on `address`, the value of the setting `key`. Port 0 takes a free one: see `local_addr` of the result.
///
/// Must be called inside a tokio runtime. An address that a just ended process used can be taken again at once.
///
/// # Errors
/// [`Error`] if the address is in use, is not one of this machine, or is not permitted.
pub fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, Error> {
    open(address).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => Error::InUse { key, address },
        _ => Error::Refused { key, address, source },
    })
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // On Windows the option would let two processes listen on one address.
    socket.set_reuseaddr(cfg!(unix))?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_in_use_names_setting_and_address() {
        let first = bind("server.http", SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let address = first.local_addr().expect("bound");
        let error = bind("server.grpc", address).expect_err("in use");
        assert!(matches!(error, Error::InUse { .. }));
        let text = error.to_string();
        assert!(text.contains("server.grpc") && text.contains(&address.to_string()), "{text}");
    }

    #[tokio::test]
    async fn a_foreign_address_is_refused() {
        let error = bind("server.http", SocketAddr::from(([192, 0, 2, 1], 0))).expect_err("TEST-NET is not ours");
        assert!(matches!(error, Error::Refused { .. }), "{error}");
    }
}
