//! Prepares a process before exec: makes a system call fail in it, or makes it not ignore a signal.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the process fail with `EIO` when it writes more than a megabyte of a mapping to the medium: a pool is opened
/// and created as usual, but closing it fails.
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
        // SAFETY: the call reads only its numbers.
        let given_up = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        // SAFETY: the program and its instructions live until the call returns, and the kernel copies them.
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
    // SAFETY: between fork and exec, `refuse` makes two system calls and uses no lock and no heap.
    unsafe { command.pre_exec(refuse) }
}

/// Makes SIGINT have its default action. If the tests run in the background, they may have been started to ignore it;
/// the process would inherit that, and the program leaves a signal ignored that it was started to ignore.
pub fn hear_interrupts(command: &mut Command) -> &mut Command {
    let hear = || {
        // SAFETY: the call sets the signal's default action, and no handler.
        match unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) } {
            libc::SIG_ERR => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec, `hear` makes one system call and uses no lock and no heap.
    unsafe { command.pre_exec(hear) }
}
