//! Servers that require a login.

use crate::support::{Client, PATIENCE, Running, SIGNALS, memory, with_redis};
use index::model::ModelIndex;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use wollemi::Snapshot;
use wollemi_server::{BackupTo, Config, Copying, Error, Host, Server};

fn guarded(text: &str, name: &str) -> Config {
    let path = std::env::temp_dir().join(format!("wollemi-passwords-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("a file");
    Config {
        passwords: Some(path),
        ..with_redis()
    }
}

/// A client that has not logged in, or has failed to, gets no answers.
#[test]
fn passwords_are_asked_for() {
    let config = guarded("# users\nann:secret\ndefault:pass word\n", "asked");
    let server = Running::over(config.clone(), Arc::new(ModelIndex::new()));
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
    assert!(client.line().starts_with(
        "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can "
    ));
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
    // Commands read ahead while the client was logged in do not count after it has lost its login.
    let eleven = format!("*11\r\n{}", "$1\r\nx\r\n".repeat(11));
    server.connect_redis().ask(
        &format!("auth ann secret\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*1\r\n$5\r\nRESET\r\n{eleven}"),
        "+OK\r\n+OK\r\n+RESET\r\n-ERR Protocol error: unauthenticated multibulk length\r\n",
    );
    std::fs::remove_file(config.passwords.expect("set above")).expect("the file");
}

/// The list of clients names each one's user, and a command can select connections by user.
#[test]
fn users_are_told_and_ended_by_name() {
    let config = guarded("ann:secret\nbob:word\ndefault:pass\n", "users");
    let server = Running::over(config.clone(), Arc::new(ModelIndex::new()));
    let user = |client: &mut Client| {
        client.send(b"client info\r\n");
        client.line();
        let line = String::from_utf8(client.until(b"\n\r\n")).expect("text");
        let user = line.split(' ').find_map(|field| field.strip_prefix("user="));
        user.expect("the user is shown").to_owned()
    };
    let [mut ann, mut bob, mut nobody] = [(); 3].map(|()| server.connect_redis());
    ann.ask("auth ann secret\r\n", "+OK\r\n");
    bob.send(b"hello 3 auth bob word setname bobs\r\n");
    bob.until(b"modules\r\n*0\r\n");
    bob.ask("client getname\r\n", "$4\r\nbobs\r\n");
    nobody.ask("auth pass\r\n", "+OK\r\n");
    assert_eq!(
        [&mut ann, &mut bob, &mut nobody].map(user),
        ["ann", "bob", "default"]
    );
    // A client whose second login fails keeps its first user.
    ann.send(b"auth bob secret\r\n");
    assert!(ann.line().starts_with("-WRONGPASS"));
    assert_eq!(user(&mut ann), "ann");
    ann.ask("client kill user eve\r\n", "-ERR No such user 'eve'\r\n");
    ann.ask("client kill user ann\r\nclient kill user bob\r\n", ":0\r\n:1\r\n");
    bob.expect_end();
    nobody.ask("ping\r\n", "+PONG\r\n");
    ann.ask("client kill user default\r\n", ":1\r\n");
    nobody.expect_end();
    std::fs::remove_file(config.passwords.expect("set above")).expect("the file");
}

/// A host whose reload returns the default settings.
struct Reloads;

impl Host for Reloads {
    fn reload(&self) -> Result<Config, String> {
        Ok(Config::default())
    }

    fn back_up(&self, _: &Snapshot, _: &BackupTo, _: &Copying) -> Result<(), String> {
        Err("no test makes a backup".into())
    }
}

/// A user removed from the file may still be connected, and that connection can be ended by the user's name.
#[test]
fn users_that_were_removed_can_be_ended_by_name() {
    let _alone = SIGNALS.lock().unwrap_or_else(PoisonError::into_inner);
    let config = guarded("ann:secret\nbob:word\n", "removed");
    let path = config.passwords.clone().expect("set above");
    let config = Config {
        host: Some(Arc::new(Reloads)),
        ..config
    };
    let server = Running::over(config, Arc::new(ModelIndex::new()));
    let [mut ann, mut bob] = [(); 2].map(|()| server.connect_redis());
    ann.ask("auth ann secret\r\n", "+OK\r\n");
    bob.ask("auth bob word\r\n", "+OK\r\n");
    std::fs::write(&path, "ann:secret\n").expect("a file");
    // The signal goes to the process, which it does not end while this server handles it.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP).expect("a signal");
    let begin = Instant::now();
    loop {
        let mut again = server.connect_redis();
        again.send(b"auth bob word\r\n");
        if again.line() != "+OK" {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "the file is not reread");
    }
    ann.ask("client kill user eve\r\n", "-ERR No such user 'eve'\r\n");
    ann.send(b"client kill user bob\r\n");
    assert!(
        ann.line()
            .trim_start_matches(':')
            .parse::<u32>()
            .is_ok_and(|ended| ended > 0)
    );
    bob.expect_end();
    // The connection that logged in last counts until the server has noticed its end.
    let begin = Instant::now();
    loop {
        ann.send(b"client kill user bob\r\n");
        if ann.line() == "-ERR No such user 'bob'" {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "bob is still known");
    }
    std::fs::remove_file(path).expect("the file");
}

/// An empty or malformed file is refused.
#[test]
fn files_of_passwords_are_checked() {
    for (text, name) in [
        ("", "empty"),
        ("ann\n", "none"),
        (":x\n", "user"),
        ("ann:\n", "word"),
    ] {
        let config = guarded(text, name);
        let refused = Server::bind(config.clone(), &memory());
        assert!(matches!(refused, Err(Error::Passwords { .. })), "{text}");
        std::fs::remove_file(config.passwords.expect("set above")).expect("the file");
    }
}
