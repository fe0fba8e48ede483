//! A program that is run to its end, and how it ended.

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output, Stdio};

/// How a run of the binary ended.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: Vec<u8>,
    pub err: String,
}

/// Has the process fail with `EIO` when it writes more than a megabyte of a mapping out to the medium: a pool is opened
/// and created as ever, and then not closed.
pub fn fail_write_out(command: &mut Command) -> &mut Command {
    const MSYNC: u32 = libc::SYS_msync as u32;
    const LEN: u32 = std::mem::offset_of!(libc::seccomp_data, args) as u32 + 8;
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let (load, jump, end) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let mut steps = [
        step(load, 0, 0, 0),
        step(jump | libc::BPF_JEQ, MSYNC, 0, 3),
        step(load, LEN, 0, 0),
        step(jump | libc::BPF_JGT, 1 << 20, 0, 1),
        step(end, libc::SECCOMP_RET_ERRNO | libc::EIO as u32, 0, 0),
        step(end, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let refuse = move || {
        let program = libc::sock_fprog {
            len: steps.len() as u16,
            filter: steps.as_mut_ptr(),
        };
        // SAFETY: the call reads its numbers alone.
        let given_up = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        // SAFETY: the program and its steps live until the call returns, and the kernel copies them.
        let set = unsafe {
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
        };
        match (given_up, set) {
            (0, 0) => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec, `refuse` makes two system calls and touches no lock and no heap.
    unsafe { command.pre_exec(refuse) }
}

/// Runs it to its end, with `input` to read.
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

    /// Expects this exit code and an error text with these words.
    pub fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "no '{word}' in: {}", self.err);
        }
    }
}

/// Text of what was written.
pub fn text(out: &[u8]) -> &str {
    std::str::from_utf8(out).expect("UTF-8")
}
