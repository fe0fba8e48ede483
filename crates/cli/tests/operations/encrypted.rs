//! Encrypted connections, by the server's flags.

use crate::common::Pool;
use crate::common::server::{PATIENCE, Server};
use crate::{log, wait_until};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::process::Signal;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

const FLAGS: &[&str] = &["--tls-cert", "cert.pem", "--tls-key", "key.pem"];

/// Puts a new certificate and its key where the flags point.
fn certify(pool: &Pool) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(pool.file("cert.pem"), cert.pem()).expect("a file");
    fs::write(pool.file("key.pem"), signing_key.serialize_pem()).expect("a file");
    cert.der().clone()
}

/// Returns the server's answer to a client that trusts only this certificate; `None` if the server has another one.
fn ask(server: &Server, of: &str, trusted: &CertificateDer<'static>, request: &str) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let stream = TcpStream::connect(server.address(of)).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut client = StreamOwned::new(connection, stream);
    let request = format!("{request}\r\nquit\r\n");
    let mut answer = Vec::new();
    let read = client
        .write_all(request.as_bytes())
        .and_then(|()| client.read_to_end(&mut answer));
    read.ok().map(|_| String::from_utf8(answer).expect("text"))
}

/// With a certificate, connections of both protocols are encrypted, and unencrypted ones are refused; a signal loads a
/// new certificate, and one without its key changes nothing.
#[test]
fn certificates_are_served_and_renewed() {
    let pool = Pool::new();
    let first = certify(&pool);
    let server = Server::start_with(&pool, FLAGS);
    let set = ask(&server, "memcached", &first, "set k 0 0 5\r\nvalue");
    assert_eq!(set.as_deref(), Some("STORED\r\n"));
    let get = ask(&server, "redis", &first, "get k");
    assert_eq!(get.as_deref(), Some("$5\r\nvalue\r\n+OK\r\n"));
    assert_eq!(server.client().ask("get k\r\n"), None);

    let second = certify(&pool);
    assert_eq!(
        ask(&server, "redis", &second, "ping"),
        None,
        "not before the signal"
    );
    server.signal(Signal::HUP);
    let pong = |trusted| ask(&server, "redis", trusted, "ping").as_deref() == Some("+PONG\r\n+OK\r\n");
    wait_until("the new certificate", || pong(&second));
    assert!(!pong(&first), "the old one is gone");

    fs::write(pool.file("key.pem"), "no key").expect("a file");
    server.signal(Signal::HUP);
    wait_until("what is wrong", || log(&pool).contains("key.pem"));
    assert!(pong(&second), "the one before stays");
    assert_eq!(server.terminate(), Some(0));
}

/// A certificate needs its key, and both must exist.
#[test]
fn certificates_that_cannot_be_served_are_refused() {
    let pool = Pool::new();
    let refused = |flags: &[&str], code, words: &[&str]| {
        let serve = ["serve", "--memcached", "127.0.0.1:0", "--no-redis"];
        pool.run(serve.iter().chain(flags)).fails(code, words);
    };
    refused(&FLAGS[..2], 2, &["--tls-cert", "--tls-key", "together"]);
    refused(&FLAGS[2..], 2, &["--tls-cert", "--tls-key", "together"]);
    refused(FLAGS, 3, &["cert.pem"]);
    certify(&pool);
    fs::remove_file(pool.file("key.pem")).expect("the file exists");
    refused(FLAGS, 3, &["key.pem"]);
}
