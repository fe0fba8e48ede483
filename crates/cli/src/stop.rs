//! SIGINT and SIGTERM, for commands that have a pool open to write or are making a file: they end in order, close the
//! pool, and remove what is not whole. A second signal ends the process at once.
//!
//! `serve` has signals of its own.
//!
//! I1 A byte is in the pipe once a signal has come: a thread that waits for it and for an input misses neither, whichever
//!    comes first, and whichever thread the signal interrupts.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The signal that came; 0: none.
static CAME: AtomicI32 = AtomicI32::new(0);

/// The pipe's end that the handler writes to; -1: none.
static TELL: AtomicI32 = AtomicI32::new(-1);

/// Both ends of the pipe, for as long as the process lives.
static PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();

extern "C" fn note(signal: libc::c_int) {
    CAME.store(signal, Relaxed);
    let byte = 0u8;
    // SAFETY: `write` may be called in a signal handler, and reads one byte that lives. It fails where there is no
    // pipe, and cannot wait: each handler runs once.
    unsafe { libc::write(TELL.load(Relaxed), (&raw const byte).cast(), 1) };
}

/// Notes the signals from now on. A signal that the process was started to ignore stays ignored.
pub fn on_signals() {
    if PIPE.get().is_some() {
        return;
    }
    // Without a pipe, an input that is waited for is not interrupted.
    if let Ok((come, tell)) = io::pipe() {
        TELL.store(tell.as_raw_fd(), Relaxed);
        PIPE.get_or_init(|| (come.into(), tell.into()));
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: zeros are a valid `sigaction`: no handler, no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the call fills the place of the old action, which lives until it returns.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
        if asked != 0 || action.sa_sigaction == libc::SIG_IGN {
            continue;
        }
        let handler: extern "C" fn(libc::c_int) = note;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
        // SAFETY: `note` does only what may be done in a signal handler.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// The signal that came, and so the end that the command is to come to.
pub fn signal() -> Option<i32> {
    Some(CAME.load(Relaxed)).filter(|signal| *signal != 0)
}

/// An error once a signal has come.
pub fn check() -> io::Result<()> {
    match signal() {
        Some(_) => Err(io::Error::other("stopped by a signal")),
        None => Ok(()),
    }
}

/// An input whose reads fail once a signal has come.
pub struct Stoppable(File);

impl Stoppable {
    /// The standard input. Nothing else may read it.
    pub fn stdin() -> io::Result<Stoppable> {
        Ok(Stoppable(io::stdin().as_fd().try_clone_to_owned()?.into()))
    }

    /// A file.
    pub fn file(file: File) -> Stoppable {
        Stoppable(file)
    }

    /// Waits until there is something to read, or a signal comes.
    fn wait(&self) {
        let Some((come, _)) = PIPE.get() else { return };
        let mut both = [self.0.as_raw_fd(), come.as_raw_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: the call reads and writes two entries that live until it returns. Where it fails, or is interrupted,
        // the read that follows tells.
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
