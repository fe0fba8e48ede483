//! The endpoint of the metrics: as much of HTTP/1.1 as a single `GET` needs. Every answer ends its connection.
//!
//! I1 The number of connections, the bytes of a request, and the time for one are bounded.

use crate::ops::shared::Shared;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Maximum number of connections at once; further ones wait to be accepted.
const MAX: usize = 16;
/// The longest head of a request, in bytes.
const LONGEST: usize = 8 << 10;
/// Upper bound on the time for a request and its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers requests for ever.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut open = JoinSet::new();
    loop {
        while open.len() >= MAX {
            open.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = shared.clone();
                open.spawn_local(tokio::time::timeout(PATIENCE, answer(stream, shared)));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
        while open.try_join_next().is_some() {}
    }
}

/// Answers one request.
async fn answer(mut stream: TcpStream, shared: Arc<Shared>) -> std::io::Result<()> {
    let mut request = Vec::new();
    let whole = |request: &[u8]| request.windows(4).any(|end| end == b"\r\n\r\n");
    while !whole(&request) && request.len() < LONGEST {
        let mut piece = [0; 1024];
        match stream.read(&mut piece).await? {
            0 => return Ok(()),
            read => request.extend_from_slice(&piece[..read]),
        }
    }
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let path = target.and_then(|target| target.split(|&byte| byte == b'?').next());
    let head_only = method == Some(b"HEAD");
    let (status, more, body) = match (method, path) {
        _ if !whole(&request) => ("431 Request Header Fields Too Large", "", String::new()),
        _ if !version.is_some_and(|version| version.starts_with(b"HTTP/1.")) => {
            ("400 Bad Request", "", String::new())
        }
        (Some(b"GET" | b"HEAD"), Some(b"/metrics")) => ("200 OK", "; version=0.0.4", super::text(&shared)),
        (Some(b"GET" | b"HEAD"), _) => ("404 Not Found", "", "See /metrics.\n".to_owned()),
        _ => ("405 Method Not Allowed", "", String::new()),
    };
    let allow = if status.starts_with("405") {
        "Allow: GET, HEAD\r\n"
    } else {
        ""
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain{more}; charset=utf-8\r\nContent-Length: {}\r\n\
         {allow}Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    if !head_only {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}
