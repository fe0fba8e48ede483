//! SIGINT and SIGTERM, for commands that have a pool open to write or are writing a file: they stop in an orderly way,
//! close the pool, and remove incomplete files. A second signal ends the process at once.
//!
//! `serve` handles signals itself.
//!
//! I1 After a signal the pipe contains a byte. A thread that polls both the pipe and an input misses neither, whichever
//! comes first, and whichever thread the signal interrupts.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use wollemi::Options;

/// The signal received; 0: none.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// The write end of the pipe, for the handler; -1: none.
static PIPE_WRITE: AtomicI32 = AtomicI32::new(-1);

/// Both ends of the pipe, for as long as the process lives.
static PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();

extern "C" fn note(signal: libc::c_int) {
    RECEIVED.store(signal, Relaxed);
    let byte = 0u8;
    // SAFETY: `write` may be called in a signal handler, and reads one byte that is alive. It fails if there is no
    // pipe, and cannot block: each handler runs once.
    unsafe { libc::write(PIPE_WRITE.load(Relaxed), (&raw const byte).cast(), 1) };
}

/// Handles the signals from now on. A signal that the process was started to ignore stays ignored.
pub fn on_signals() {
    if PIPE.get().is_some() {
        return;
    }
    // Without a pipe, a wait for input is not interrupted.
    if let Ok((come, tell)) = io::pipe() {
        PIPE_WRITE.store(tell.as_raw_fd(), Relaxed);
        PIPE.get_or_init(|| (come.into(), tell.into()));
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: zeros are a valid `sigaction`: no handler, no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the call fills the old action, which lives until it returns.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
        if asked != 0 || action.sa_sigaction == libc::SIG_IGN {
            continue;
        }
        let handler: extern "C" fn(libc::c_int) = note;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
        // SAFETY: `note` calls only functions that are allowed in a signal handler.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// Makes checkpoints fail soon after a signal.
pub fn ends_checkpoints(options: Options) -> Options {
    options.end_checkpoints_if(|| signal().is_some())
}

/// Returns the signal received, after which the command must stop.
pub fn signal() -> Option<i32> {
    Some(RECEIVED.load(Relaxed)).filter(|signal| *signal != 0)
}

/// Returns an error once a signal has been received.
pub fn check() -> io::Result<()> {
    match signal() {
        Some(_) => Err(io::Error::other("stopped by a signal")),
        None => Ok(()),
    }
}

/// An input whose reads fail once a signal has been received.
pub struct Stoppable(File);

impl Stoppable {
    /// Returns the standard input. Nothing else may read it.
    pub fn stdin() -> io::Result<Stoppable> {
        Ok(Stoppable(io::stdin().as_fd().try_clone_to_owned()?.into()))
    }

    /// Wraps a file.
    pub fn file(file: File) -> Stoppable {
        Stoppable(file)
    }

    /// Waits for input or a signal.
    fn wait(&self) {
        let Some((come, _)) = PIPE.get() else { return };
        let mut both = [self.0.as_raw_fd(), come.as_raw_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: the call reads and writes two entries that live until it returns. If it fails or is interrupted, the
        // following read reports it.
        unsafe { libc::poll(both.as_mut_ptr(), both.len() as libc::nfds_t, -1) };
    }
}

impl Read for Stoppable {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.wait();
        check()?;
        self.0.read(into)
    }
}
