//! Runs a program to its end, and describes how it ended.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

/// How a run of the binary ended.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: Vec<u8>,
    pub err: String,
}

/// Runs it to its end, with `input` as its input.
pub fn to_end(command: &mut Command, input: &[u8]) -> Run {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // It may have ended without reading all.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().expect("the binary ends")
    });
    Run::from(output)
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let Some(code) = output.status.code() else {
            panic!("killed by signal {:?}; it said: {err}", output.status.signal());
        };
        Run {
            code,
            out: output.stdout,
            err,
        }
    }
}

impl Run {
    pub fn ok(self) -> Vec<u8> {
        assert_eq!(self.code, 0, "{}{}", String::from_utf8_lossy(&self.out), self.err);
        self.out
    }

    /// Expects this exit code and an error message with these words.
    pub fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "no '{word}' in: {}", self.err);
        }
    }
}

/// Returns the output as text.
pub fn text(out: &[u8]) -> &str {
    std::str::from_utf8(out).expect("UTF-8")
}
