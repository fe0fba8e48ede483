//! A server over a damaged pool: its clients' requests terminate.

use crate::support::{Running, with_redis};
use index::model::ModelIndex;
use index::{Direction, Error, Guard, Index, Visit};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// An index whose scans return the items out of order, over and over, wherever they begin.
struct Damaged(ModelIndex);

impl Index for Damaged {
    index::delegate!(0: get, write, check);

    fn scan<'g>(
        &'g self,
        _: Bound<&[u8]>,
        _: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let (mut items, behind_record) = (Vec::new(), Bound::Excluded(&b""[..]));
        let other_way = match direction {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        };
        self.0.scan(
            behind_record,
            Bound::Unbounded,
            other_way,
            guard,
            &mut |key, value| {
                items.push((key, value));
                ControlFlow::Continue(())
            },
        )?;
        let again = items.iter().cycle();
        let _ = again
            .map(|&(key, value)| visit(key, value))
            .find(|flow| flow.is_break());
        Ok(())
    }
}

/// Listings report the damage, and so does a scan from cursor to cursor.
#[test]
fn keys_out_of_order_end_listings() {
    let index = ModelIndex::new();
    let server = Running::over(with_redis(), Arc::new(index.clone()));
    server.connect_redis().ask("mset a 1 b 2\r\n", "+OK\r\n");
    server.stop();

    let server = Running::over(with_redis(), Arc::new(Damaged(index)));
    let mut client = server.connect_redis();
    for listing in ["keys *c", "krange - + limit 5000", "krange + - rev limit 5000"] {
        client.send(format!("{listing}\r\n").as_bytes());
        let reply = client.line();
        assert!(
            reply.starts_with("-ERR") && reply.contains("out of order"),
            "{listing}: {reply}"
        );
    }
    let mut cursor = String::from("0");
    for _ in 0..10 {
        client.send(format!("scan {cursor} match *c count 2\r\n").as_bytes());
        let reply = client.line();
        if reply.starts_with("-ERR") {
            assert!(reply.contains("out of order"), "{reply}");
            server.stop();
            return;
        }
        client.line();
        cursor = client.line();
        client.line();
    }
    panic!("the scan does not end");
}
