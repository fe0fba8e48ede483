//! A cache in front of a slow source: entries expire, and survive a restart of the process.
//!
//! A sweeper removes expired entries in the background; a reader never sees one, swept or not.
//!
//! `cargo run -p wollemi --example cache`

use std::error::Error;
use std::path::Path;
use std::time::Duration;
use wollemi::{Db, Expiring, Sweeper};

struct Cache {
    entries: Expiring,
    life: Duration,
    /// Removes expired entries while the cache lives.
    _sweeper: Sweeper,
}

impl Cache {
    fn open(path: &Path, life: Duration) -> Result<Cache, wollemi::Error> {
        let entries = Expiring::new(Db::open(path)?.map("pages")?);
        let sweeper = entries.sweeper(Duration::from_millis(20))?;
        Ok(Cache {
            entries,
            life,
            _sweeper: sweeper,
        })
    }

    /// Returns the page from the cache, or makes it.
    fn page(&self, url: &str, make: impl Fn(&str) -> String) -> Result<String, wollemi::Error> {
        if let Some(page) = self.entries.get(url)? {
            return Ok(String::from_utf8_lossy(&page).into_owned());
        }
        let page = make(url);
        self.entries.upsert(url, &page, Some(self.life))?;
        Ok(page)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("cache.pool");
    let made = std::cell::Cell::new(0);
    let make = |url: &str| {
        made.set(made.get() + 1);
        format!("<h1>{url}</h1>")
    };

    let cache = Cache::open(&path, Duration::from_secs(3600))?;
    for _ in 0..3 {
        cache.page("/index", make)?;
    }
    assert_eq!(made.get(), 1);
    drop(cache);

    // The cache is warm right after a restart: nothing is loaded.
    let cache = Cache::open(&path, Duration::from_millis(30))?;
    assert_eq!(cache.page("/index", make)?, "<h1>/index</h1>");
    assert_eq!(made.get(), 1);

    // An entry with a short life is recomputed after its expiry, and the sweeper removes it meanwhile.
    cache.page("/news", make)?;
    while cache.entries.map().contains("/news")? {
        std::thread::sleep(Duration::from_millis(10));
    }
    cache.page("/news", make)?;
    println!("{} pages made for 6 requests", made.get());
    assert_eq!(made.get(), 3);
    Ok(())
}

#[cfg(test)]
mod tests {
    /// Runs the example, whose assertions check it.
    #[test]
    fn runs() {
        super::main().expect("it runs");
    }
}
