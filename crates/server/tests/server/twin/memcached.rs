//! Beside `memcached`, whose answers are those of version 1.6.18.
//!
//! What one request says of time and of uniques differs between two servers, and is [masked](mask); what depends on both
//! has lifetimes of hours. The requests leave out what `docs/server.md` lists as a difference.

mod mask;
mod requests;
mod words;

use super::{Random, Real, rounds};
use crate::support::{Client, Running, shown};
use mask::Uniques;
use requests::{END, ENDS};
use std::net::SocketAddr;

fn real() -> Real {
    Real::start("memcached", |command, own, port| {
        command
            .args(["-l", &own.to_string(), "-p", &port.to_string()])
            .args(["-U", "0", "-m", "1024", "-u", "root"])
            // Its other threads keep items for a moment, and such an item is not counted in place.
            .args(["-o", "no_lru_maintainer,no_lru_crawler"]);
    })
}

/// A connection to one of the two, and the uniques it has shown.
struct Side {
    address: SocketAddr,
    client: Client,
    uniques: Uniques,
}

impl Side {
    fn new(address: SocketAddr) -> Side {
        Side {
            address,
            client: Client::connect(address),
            uniques: Uniques::default(),
        }
    }

    /// What it answers to a request, masked.
    fn answer(&mut self, requests: &str) -> Vec<String> {
        let ends = requests.ends_with(ENDS);
        self.client.send(self.uniques.told(requests).as_bytes());
        let answer = if ends {
            let rest = self.client.rest();
            self.client = Client::connect(self.address);
            rest
        } else {
            self.client.send(END.as_bytes());
            self.client.until(requests::ENDED)
        };
        self.uniques.masked(&answer)
    }
}

/// Random requests of both protocols have the answers that memcached gives, alone and in pipelines.
#[test]
fn answers_are_memcacheds() {
    let real = real();
    let ours = Running::over_pool();
    let mut random = Random::seeded();
    let mut sides = [Side::new(real.address), Side::new(ours.address)];
    for round in 0..rounds(3000) {
        let requests = requests::some(&mut random);
        let [theirs, ours] = sides.each_mut().map(|side| side.answer(&requests));
        assert_eq!(ours, theirs, "round {round}, to {}", shown(requests.as_bytes()));
    }
    drop(sides);
    let report = ours.stop();
    assert_eq!((report.failures, report.abandoned), (0, 0));
}
