//! The cost of requests in write-backs and fences, over the default index: sets of a turn become durable together, by
//! two fences for up to 32 of them, and gets persist nothing.

use crate::support::{Client, Running, with_redis};
use heap::Heap;
use pmem::{Counting, Hardware, Persists, Pool, PoolOptions};
use roart::Roart;
use std::sync::Arc;

const SETS: u64 = 64;

/// Returns the cost of a pipeline whose answers end with `end`.
fn cost(media: &Counting, client: &mut Client, requests: &str, end: &[u8]) -> Persists {
    let before = media.counts();
    client.send(requests.as_bytes());
    client.until(end);
    (media.counts() - before).node
}

#[test]
fn sets_of_a_turn_share_their_fences() {
    let media = Counting::new(Hardware::detect());
    let pool = Pool::anonymous(&PoolOptions::default(), media.clone()).expect("a pool");
    let heap = Heap::new(pool).expect("a heap");
    let index = Roart::<Counting>::create(&heap, b"memcached").expect("an index");
    let server = Running::over(with_redis(), Arc::new(index));
    let (mut memcached, mut redis) = (server.connect(), server.connect_redis());
    let value = "v".repeat(32);
    let sets = |key: &str| -> String {
        (0..SETS)
            .map(|i| format!("set {key}-{i:04} 0 0 32\r\n{value}\r\n"))
            .collect()
    };
    let gets: String = (0..SETS).map(|i| format!("get key-{i:04}\r\n")).collect();
    let redis_sets: String = (0..SETS)
        .map(|i| format!("*3\r\n$3\r\nSET\r\n$8\r\nkey-{i:04}\r\n$32\r\n{value}\r\n"))
        .collect();
    let last = "mn\r\n";
    let inserted = cost(&media, &mut memcached, &(sets("key") + last), b"MN\r\n");
    let replaced = cost(&media, &mut memcached, &(sets("key") + last), b"MN\r\n");
    let by_redis = cost(&media, &mut redis, &(redis_sets + "echo last\r\n"), b"last\r\n");
    let read = cost(&media, &mut memcached, &(gets + last), b"MN\r\n");
    println!(
        "{SETS} sets: inserted {inserted:?}, replaced {replaced:?}, by Redis's {by_redis:?}; as many gets: {read:?}"
    );
    // Four, if all have arrived at once.
    assert!(replaced.fences <= SETS / 4, "{replaced:?}");
    assert!(by_redis.fences <= SETS / 4, "{by_redis:?}");
    // The first ones also create nodes.
    assert!(inserted.fences <= SETS, "{inserted:?}");
    for sets in [inserted, replaced, by_redis] {
        assert!(sets.fences >= 2 && sets.write_backs >= SETS, "{sets:?}");
    }
    assert_eq!((read.write_backs, read.fences), (0, 0));
}
