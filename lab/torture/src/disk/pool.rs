//! The pools of histories, and how their databases are opened.

use crashkit::Random;
use crashkit::killed::{Image, Told};
use pmem::pool::Uuid;
use pmem::{Memory, Pool, PoolOptions};
use wollemi::{Error, OnDisk, Options};

/// The id of the tortured pools. (`damage` also makes a pool with the next id.)
pub const ID: u128 = 0xdb;

/// The size of a pool in bytes.
const POOL_SIZE: u64 = 8 << 20;

/// Draws the options for opening a database.
pub fn draw_options(random: &mut Random) -> OnDisk {
    OnDisk {
        options: Options::new().recovery_threads(0),
        log: log::LogOptions {
            segment_size: 8192,
            limit: 64 << 10,
            spares: 2,
        },
        run: 2048,
        levels: 4,
        small: *random.pick(&[0, 0, 4096]),
        merged: *random.pick(&[1024, 1 << 20]),
        rebuild_threads: 1 + random.below(2) as usize,
        has_threads: false,
    }
}

/// Opens the pool of an image, or creates one with this id. Returns it with its memory.
pub fn pool(left: Option<&Image>, id: u128, media: Told) -> Result<(Pool<Told>, Memory), Error> {
    match left {
        Some(image) => {
            let memory = image.memory()?;
            Ok((Pool::open_in(&memory, media)?, memory))
        }
        None => {
            let memory = Memory::new(POOL_SIZE)?;
            let options = PoolOptions {
                page_size: 64 << 10,
                uuid: Some(Uuid::from_u128(id)),
                ..PoolOptions::default()
            };
            Ok((Pool::create_in(&memory, &options, media)?, memory))
        }
    }
}
