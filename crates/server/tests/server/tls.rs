//! Encrypted connections.

use crate::pool::Pool;
use crate::python::{python, run};
use crate::support::{Client, PATIENCE, Running, memory, with_redis};
use index::model::ModelIndex;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use wollemi_server::{Address, Config, Error, Server, Tls};

/// A directory for one test, with a certificate for `localhost`.
struct Files {
    directory: PathBuf,
    certificate: CertificateDer<'static>,
}

impl Files {
    fn new(test: &str) -> Files {
        let directory = std::env::temp_dir().join(format!("wollemi-tls-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])
                .expect("a certificate");
        std::fs::write(directory.join("cert.pem"), cert.pem()).expect("a file");
        std::fs::write(directory.join("key.pem"), signing_key.serialize_pem()).expect("a file");
        let certificate = cert.der().clone();
        Files {
            directory,
            certificate,
        }
    }

    fn tls(&self) -> Tls {
        Tls {
            certificate: self.directory.join("cert.pem"),
            key: self.directory.join("key.pem"),
        }
    }

    fn server(&self) -> Running {
        let pool = Pool::new();
        let encrypted = Config {
            tls: Some(self.tls()),
            ..pool.config()
        };
        Running::over_this(pool, encrypted)
    }

    fn connect(&self, address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        StreamOwned::new(connection, stream)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // A leftover directory is harmless.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[track_caller]
fn ask(client: &mut (impl Read + Write), request: &[u8], answer: &[u8]) {
    client.write_all(request).expect("the server reads");
    let mut read = vec![0; answer.len()];
    client.read_exact(&mut read).expect("the server answers");
    assert!(read == answer, "{}", read.escape_ascii());
}

/// Both protocols are served encrypted, also if a request or an answer takes many records; a server that stops sends
/// TLS's close notification.
#[test]
fn both_protocols_are_encrypted() {
    let files = Files::new("both");
    let server = files.server();
    let mut memcached = files.connect(server.address);
    let mut redis = files.connect(server.redis.expect("the server serves Redis clients"));
    ask(&mut memcached, b"set k 0 0 1\r\nx\r\n", b"STORED\r\n");
    ask(&mut redis, b"get k\r\n", b"$1\r\nx\r\n");
    let large = "y".repeat(1 << 20);
    let request = format!("set large 0 0 {}\r\n{large}\r\nget large\r\n", large.len());
    let answer = format!("STORED\r\nVALUE large 0 {}\r\n{large}\r\nEND\r\n", large.len());
    ask(&mut memcached, request.as_bytes(), answer.as_bytes());
    server.tell_to_stop();
    let mut rest = Vec::new();
    memcached.read_to_end(&mut rest).expect("a close notification");
    assert!(rest.is_empty());
}

/// A client that does not encrypt is not served, and disturbs no other; a unix socket needs no encryption.
#[test]
fn others_are_not_served() {
    let files = Files::new("others");
    let path = files.directory.join("socket");
    let mut config = Config {
        tls: Some(files.tls()),
        ..with_redis()
    };
    config.redis.push(Address::Unix(path.clone()));
    let server = Running::over(config, Arc::new(ModelIndex::new()));
    let mut plain = Client::connect(server.address);
    plain.send(b"get k\r\n");
    let answered = plain.rest();
    assert!(!answered.starts_with(b"END"), "{}", answered.escape_ascii());
    let mut silent = Client::connect(server.address);
    ask(&mut files.connect(server.address), b"get k\r\n", b"END\r\n");
    let mut local = UnixStream::connect(path).expect("the server listens");
    ask(&mut local, b"get k\r\n", b"$-1\r\n");
    server.stop();
    silent.expect_end();
}

/// Files that are not a certificate or a key, or that do not match, are refused by name.
#[test]
fn files_are_checked() {
    let (files, other) = (Files::new("checked"), Files::new("other"));
    let empty = files.directory.join("empty");
    std::fs::write(&empty, "").expect("a file");
    let (right, foreign) = (files.tls(), other.tls());
    let with = |certificate: &Path, key: &Path| Tls {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    for (tls, culprit) in [
        (with(&empty, &right.key), &empty),
        (with(&right.certificate, &empty), &empty),
        (with(&right.key, &right.key), &right.key),
        (with(&right.certificate, &foreign.key), &foreign.key),
    ] {
        let config = Config {
            tls: Some(tls),
            ..with_redis()
        };
        match Server::bind(config, &memory()) {
            Err(Error::Tls { path, .. }) => assert_eq!(path, *culprit),
            other => panic!("{other:?}"),
        }
    }
}

/// Widely used clients, over another implementation of TLS, read and write.
#[test]
fn python_clients_connect() {
    let files = Files::new("python");
    let server = files.server();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/clients/tls.py");
    let redis = server.redis.expect("the server serves Redis clients");
    run(Command::new(python())
        .arg(script)
        .arg(server.address.port().to_string())
        .arg(redis.port().to_string())
        .arg(files.tls().certificate));
}
