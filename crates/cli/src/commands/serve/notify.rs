//! Readiness notification for the service manager: systemd's `sd_notify`, a datagram to `$NOTIFY_SOCKET`.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Notifies the service manager, if one asked for it, that clients are served from now on.
pub fn ready() {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let send = |address: io::Result<SocketAddr>| UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address?);
    let sent = send(match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&name),
    });
    if let Err(why) = sent {
        tracing::warn!(%why, "cannot notify the service manager");
    }
}
