//! A real server and this one get the same random commands; their answers are the same, byte for byte, but for the
//! differences that the modules name.
//!
//! The real ones are `redis-server` and `memcached` from the path, which `test.sh` installs. `WOLLEMI_SEED` selects
//! other commands, `WOLLEMI_ROUNDS` their number.

mod memcached;
mod redis;

use crate::support::PATIENCE;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A real server, on a port that was free.
struct Real {
    child: Child,
    address: SocketAddr,
}

impl Real {
    /// Starts it at a loopback address that only this test uses, so that no other process gets the free port.
    fn start(program: &str, listen: impl FnOnce(&mut Command, Ipv4Addr, u16)) -> Real {
        static STARTED: AtomicU8 = AtomicU8::new(0);
        let [.., high, low] = std::process::id().to_be_bytes();
        let own = Ipv4Addr::new(127, 1 + STARTED.fetch_add(1, Relaxed), high, low);
        let free = TcpListener::bind((own, 0)).expect("a port");
        let address = free.local_addr().expect("bound");
        drop(free);
        let mut command = Command::new(program);
        listen(&mut command, own, address.port());
        let child = command
            .current_dir(std::env::temp_dir())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}, which test.sh installs: {error}"));
        let real = Real { child, address };
        let begin = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begin.elapsed() < PATIENCE, "{program} does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        real
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // It belongs to this test, and holds no data.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Random(u64);

impl Random {
    fn seeded() -> Random {
        let seed = asked("WOLLEMI_SEED").unwrap_or(1);
        println!("WOLLEMI_SEED={seed}");
        Random(0x9e37_79b9_7f4a_7c15 ^ seed)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }
}

/// Returns the number of rounds, with this default.
fn rounds(usual: usize) -> usize {
    asked("WOLLEMI_ROUNDS").unwrap_or(usual)
}

fn asked<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}: not a number: {text}")),
    )
}
