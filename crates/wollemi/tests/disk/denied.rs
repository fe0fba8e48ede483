//! A directory that the process may not use.

use crate::{Place, entries, names, options};
use pmem::pool::LastShutdown;
use pmem::{Hardware, Pool, PoolOptions};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use wollemi::{Error, Options};

/// Runs `run` as an unprivileged user, to whom permissions apply. The superuser switches one thread to such a user;
/// returns `None` where the system cannot change the user of one thread.
fn unprivileged<R: Send>(run: impl FnOnce() -> R + Send) -> Option<R> {
    if !rustix::process::geteuid().is_root() {
        return Some(run());
    }
    #[cfg(target_os = "linux")]
    return std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_uid(nobody).expect("a process of root may change a thread's user");
            run()
        });
        Some(thread.join().expect("no panic"))
    });
    #[cfg(not(target_os = "linux"))]
    None
}

fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("permissions");
}

/// Returns a closed database with one pair, whose pool any user may write.
fn filled() -> Result<Place, Error> {
    let place = Place::new();
    place.open()?.map("m")?.upsert("key", "value")?;
    permit(place.path.parent().expect("a directory"), 0o777);
    permit(&place.path, 0o666);
    Ok(place)
}

/// Returns the content of the pool and of the files beside it.
fn bytes(place: &Place) -> BTreeMap<OsString, Vec<u8>> {
    let read = |path: &Path| std::fs::read(path).expect("a file");
    let beside = names(&place.files()).into_iter();
    let mut files: BTreeMap<_, _> = beside
        .map(|name| (name.clone(), read(&place.files().join(&name))))
        .collect();
    files.insert("the pool".into(), read(&place.path));
    files
}

/// Expects the refusal of an opening: for want of permission, with the name of the directory.
fn expect_denied(place: &Place, opened: Result<(), Error>) {
    let refused = opened.expect_err("no permission").to_string();
    let directory = place.files().display().to_string();
    assert!(refused.contains(&directory), "{refused}");
    assert!(refused.to_lowercase().contains("permission denied"), "{refused}");
}

/// An opening that may not write to the directory, or not look into it, is refused, and changes nothing. A directory
/// that cannot be read is not taken for a missing one.
#[test]
fn a_directory_without_permission_is_refused() -> Result<(), Error> {
    let place = filled()?;
    let process = Options::new().max_size(1 << 30);
    let before = bytes(&place);
    for mode in [0o555, 0o000] {
        for options in [options(), process.clone()] {
            permit(&place.files(), mode);
            let opened = unprivileged(|| options.open(&place.path).map(drop));
            permit(&place.files(), 0o755);
            if let Some(opened) = opened {
                expect_denied(&place, opened);
            }
            assert!(bytes(&place) == before, "mode {mode:o}");
        }
    }
    assert_eq!(
        entries(&place.open()?, "m"),
        [(b"key".to_vec(), b"value".to_vec())]
    );
    Ok(())
}

/// A closed pool can be read where its directory cannot.
#[test]
fn a_closed_pool_is_read_without_its_directory() -> Result<(), Error> {
    let place = filled()?;
    permit(&place.files(), 0o000);
    let read = Options::new().read_only(true);
    let read = unprivileged(|| Ok::<_, Error>(entries(&read.open(&place.path)?, "m")));
    permit(&place.files(), 0o755);
    if let Some(read) = read {
        assert_eq!(read?, [(b"key".to_vec(), b"value".to_vec())]);
    }
    Ok(())
}

/// Where no directory can be made, no database is made.
#[test]
fn nothing_is_made_where_no_directory_can_be() {
    let place = Place::new();
    let folder = place.path.parent().expect("a directory");
    permit(folder, 0o555);
    let opened = unprivileged(|| place.open().map(drop));
    permit(folder, 0o755);
    if let Some(opened) = opened {
        expect_denied(&place, opened);
    }
    assert!(names(folder).is_empty());
}

/// A file under the directory's name is refused and stays, and so does the pool: closed, of level `process`.
#[test]
fn a_file_in_the_directory_s_place_is_refused() -> Result<(), Error> {
    let place = Place::new();
    let process = Options::new().max_size(1 << 30);
    std::fs::write(place.files(), "another program's").expect("written");
    place.open().expect_err("no directory");
    assert!(!place.path.exists());

    process.open(&place.path)?.map("m")?.upsert("key", "value")?;
    let before = std::fs::read(&place.path).expect("a file");
    let refused = place.open().expect_err("no directory").to_string();
    assert!(refused.contains("a.pool.disk"), "{refused}");
    assert!(std::fs::read(&place.path).expect("a file") == before);
    assert_eq!(
        std::fs::read(place.files()).expect("a file"),
        b"another program's"
    );
    let options = PoolOptions {
        read_only: true,
        ..PoolOptions::default()
    };
    let pool = Pool::open(&place.path, &options, Hardware::detect()).expect("a pool");
    assert_eq!(pool.last_shutdown(), LastShutdown::Clean);
    drop(pool);
    assert_eq!(
        entries(&process.open(&place.path)?, "m"),
        [(b"key".to_vec(), b"value".to_vec())]
    );
    Ok(())
}
