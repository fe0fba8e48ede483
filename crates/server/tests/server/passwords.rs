//! Servers that want to know who comes.

use crate::support::{Running, with_redis};
use index::model::Model;
use std::sync::Arc;
use wollemi_server::{Config, Error, Server};

fn guarded(text: &str, name: &str) -> Config {
    let path = std::env::temp_dir().join(format!("wollemi-passwords-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("a file");
    Config {
        passwords: Some(path),
        ..with_redis()
    }
}

/// Nothing is answered to those who do not say who they are, or say it wrongly.
#[test]
fn passwords_are_asked_for() {
    let config = guarded("# users\nann:secret\ndefault:pass word\n", "asked");
    let server = Running::over(config.clone(), Arc::new(Model::new()));
    let mut client = server.connect();
    client.send(b"get k\r\n");
    client.expect(b"CLIENT_ERROR unauthenticated\r\n");
    client.expect_end();
    let mut client = server.connect();
    client.send(b"set x 0 0 10\r\nann wrong!\r\n");
    client.expect(b"CLIENT_ERROR unauthenticated\r\n");
    client.expect_end();
    server
        .connect()
        .ask("set x 0 0 10\r\nann secret\r\nget x\r\n", "STORED\r\nEND\r\n");
    let mut client = server.connect_redis();
    client.ask("get k\r\n", "-NOAUTH Authentication required.\r\n");
    for wrong in ["auth wrong", "auth ann pass", "auth bob secret", "auth ann secre"] {
        let refused = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
        client.ask(&format!("{wrong}\r\n"), refused);
    }
    client.send(b"hello 3\r\n");
    assert!(client.line().starts_with("-NOAUTH HELLO must be called"));
    client.ask("auth ann secret\r\nget k\r\n", "+OK\r\n$-1\r\n");
    client.ask(
        "reset\r\nget k\r\n",
        "+RESET\r\n-NOAUTH Authentication required.\r\n",
    );
    client.ask("auth \"pass word\"\r\nping\r\n", "+OK\r\n+PONG\r\n");
    client.send(b"*11\r\n");
    server.connect_redis().ask(
        "*11\r\n",
        "-ERR Protocol error: unauthenticated multibulk length\r\n",
    );
    // What was read while the client was known counts no more when it is a stranger again.
    let eleven = format!("*11\r\n{}", "$1\r\nx\r\n".repeat(11));
    server.connect_redis().ask(
        &format!("auth ann secret\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*1\r\n$5\r\nRESET\r\n{eleven}"),
        "+OK\r\n+OK\r\n+RESET\r\n-ERR Protocol error: unauthenticated multibulk length\r\n",
    );
    std::fs::remove_file(config.passwords.expect("set above")).expect("the file");
}

/// A file that says nothing, or not what it should, is refused.
#[test]
fn files_of_passwords_are_checked() {
    for (text, name) in [
        ("", "empty"),
        ("ann\n", "none"),
        (":x\n", "user"),
        ("ann:\n", "word"),
    ] {
        let config = guarded(text, name);
        let refused = Server::bind(config.clone(), Arc::new(Model::new()));
        assert!(matches!(refused, Err(Error::Passwords { .. })), "{text}");
        std::fs::remove_file(config.passwords.expect("set above")).expect("the file");
    }
}
