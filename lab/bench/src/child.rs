//! This program as a child process, to be killed.

use crate::Error;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

/// This program, running with the arguments of this process and additional ones.
pub struct Child(std::process::Child);

impl Child {
    /// Starts the child and waits until it prints the line `expected`.
    pub fn start<A: Into<OsString>>(
        more: impl IntoIterator<Item = A>,
        expected: &str,
    ) -> Result<Child, Error> {
        let mut child = Command::new(std::env::current_exe().map_err(Error::Filler)?)
            .args(std::env::args_os().skip(1))
            .args(more.into_iter().map(Into::into))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::Filler)?;
        let stdout = child.stdout.take();
        let child = Child(child);
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(Error::Filler)?;
        }
        if line.trim_end() == expected {
            Ok(child)
        } else {
            Err(Error::Filler(std::io::Error::other("ended before it was ready")))
        }
    }

    /// Kills the child, as `kill -9` does.
    pub fn kill(mut self) -> Result<(), Error> {
        self.0
            .kill()
            .and_then(|()| self.0.wait())
            .map(drop)
            .map_err(Error::Filler)
    }

    /// Lets the child end by itself; fails if it ends with an error.
    #[cfg(feature = "peers")]
    pub fn end(mut self) -> Result<(), Error> {
        drop(self.0.stdin.take());
        let status = self.0.wait().map_err(Error::Filler)?;
        match status.success() {
            true => Ok(()),
            false => Err(Error::Filler(std::io::Error::other(format!(
                "failed after it was ready: {status}"
            )))),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The child may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// In the child: prints `line` to report that it is ready.
pub fn ready(line: &str) -> Result<(), Error> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(Error::Output)
}

/// In the child: waits until the parent kills it, exits, or closes its standard input.
pub fn wait_for_end() -> Result<(), Error> {
    std::io::stdin()
        .read_to_end(&mut Vec::new())
        .map(drop)
        .map_err(Error::Filler)
}
