//! Stops a process at a chosen system call: kills it there, or makes that one
//! call fail (`ptrace(2)`).
//!
//! A general tracer does the same for about 30 ms a run. Here a run costs a few
//! milliseconds, so that *every* call of a transaction can be a test.
//! The calls are counted in each run from a landmark, not from the start: what
//! the loader and the allocator do first differs between runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, AddressType, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::limited::{Ended, Outcome};
use crate::sys;

/// From where calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landmark {
    /// The first call of the program.
    Start,
    /// The first `openat` or `openat2` that makes a file: the staging begins.
    Staging,
}

/// Which side of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The kernel has not begun with it.
    Before,
    /// The kernel has done it, the program does not know yet.
    After,
}

/// What happens to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing: its calls are written down.
    Watch,
    /// `SIGKILL` at the call with this index.
    Kill(usize, Side),
    /// The call with this index is not made and fails with this error.
    Fail(usize, Errno),
}

/// One call, as it was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number in the kernel's table.
    pub number: i64,
    /// Its arguments.
    pub arguments: [u64; 3],
}

impl Call {
    /// The name of a call that the tests speak of, else its number.
    #[must_use]
    pub fn name(&self) -> String {
        let known = NAMES.iter().find(|(number, _)| *number == self.number);
        known.map_or_else(
            || format!("call {}", self.number),
            |(_, name)| (*name).to_owned(),
        )
    }
}

const NAMES: [(i64, &str); 39] = [
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_lseek, "lseek"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_openat2, "openat2"),
    (libc::SYS_close, "close"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_symlinkat, "symlinkat"),
    (libc::SYS_renameat, "renameat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_fchmod, "fchmod"),
    (libc::SYS_fchown, "fchown"),
    (libc::SYS_fchownat, "fchownat"),
    (libc::SYS_fsetxattr, "fsetxattr"),
    (libc::SYS_fgetxattr, "fgetxattr"),
    (libc::SYS_getxattr, "getxattr"),
    (libc::SYS_fremovexattr, "fremovexattr"),
    (libc::SYS_listxattr, "listxattr"),
    (libc::SYS_utimensat, "utimensat"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_newfstatat, "newfstatat"),
    (libc::SYS_fstat, "fstat"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_readlinkat, "readlinkat"),
    (libc::SYS_faccessat2, "faccessat2"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_fchdir, "fchdir"),
    (libc::SYS_getrandom, "getrandom"),
];

/// What a traced process did.
#[derive(Debug)]
pub struct Traced {
    /// How it ended, and what it wrote.
    pub outcome: Outcome,
    /// Every call from the landmark on, until the end.
    pub calls: Vec<Call>,
    /// The call that the plan named, when the process came so far.
    pub hit: Option<Call>,
}

/// Runs `command` with `input` under a plan.
///
/// # Panics
/// When the process cannot be started or traced.
#[must_use]
pub fn run(mut command: Command, input: &[u8], from: Landmark, plan: Plan) -> Traced {
    let mut stdin = tempfile::tempfile().expect("input file");
    stdin.write_all(input).expect("write the input");
    stdin.rewind().expect("rewind");
    let mut stdout = tempfile::tempfile().expect("output file");
    let mut stderr = tempfile::tempfile().expect("output file");
    command
        .stdin(stdin)
        .stdout(Stdio::from(stdout.try_clone().expect("clone")))
        .stderr(Stdio::from(stderr.try_clone().expect("clone")));
    sys::be_traced(&mut command);
    let mut child = command.spawn().expect("start the tracee");
    let mut tracer = Tracer::new(Pid::from_raw(child.id().cast_signed()), from, plan);
    let ended = tracer.follow();
    // It is reaped already, which this cannot know.
    let _ = child.try_wait();
    Traced {
        outcome: Outcome {
            ended,
            stdout: contents(&mut stdout),
            stderr: contents(&mut stderr),
        },
        calls: tracer.calls,
        hit: tracer.hit,
    }
}

fn contents(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().expect("rewind");
    file.read_to_end(&mut bytes).expect("read output");
    bytes
}

/// What a thread of the tracee is in the middle of.
#[derive(Clone, Copy)]
enum Within {
    Call,
    /// A call whose end the plan waits for.
    Chosen,
}

struct Tracer {
    main: Pid,
    plan: Plan,
    counting: bool,
    calls: Vec<Call>,
    hit: Option<Call>,
    threads: BTreeMap<Pid, Within>,
}

impl Tracer {
    fn new(main: Pid, from: Landmark, plan: Plan) -> Self {
        Self {
            main,
            plan,
            counting: from == Landmark::Start,
            calls: Vec::new(),
            hit: None,
            threads: BTreeMap::new(),
        }
    }

    /// Lets the process run from stop to stop until it is gone.
    fn follow(&mut self) -> Ended {
        let first = waitpid(self.main, Some(WaitPidFlag::__WALL)).expect("the first stop");
        assert_eq!(first, WaitStatus::Stopped(self.main, Signal::SIGTRAP));
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_EXITKILL;
        ptrace::setoptions(self.main, options).expect("trace options");
        go_on(self.main, None);
        // Only this thread's own children: other tests run beside it.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        loop {
            match waitpid(Pid::from_raw(-1), Some(flags)).expect("wait for the tracee") {
                WaitStatus::PtraceSyscall(pid) => {
                    self.stopped_at_call(pid);
                    go_on(pid, None);
                }
                WaitStatus::Exited(pid, code) if pid == self.main => return Ended::Code(code),
                WaitStatus::Signaled(pid, signal, _) if pid == self.main => {
                    return Ended::Signal(signal as i32);
                }
                // A new thread begins with this stop.
                WaitStatus::Stopped(pid, Signal::SIGSTOP) | WaitStatus::PtraceEvent(pid, ..) => {
                    go_on(pid, None);
                }
                WaitStatus::Stopped(pid, signal) => go_on(pid, Some(signal)),
                _ => {}
            }
        }
    }

    fn stopped_at_call(&mut self, pid: Pid) {
        match self.threads.remove(&pid) {
            None => {
                let within = self.begins(pid);
                self.threads.insert(pid, within);
            }
            Some(Within::Call) => {}
            Some(Within::Chosen) => self.ends_chosen(pid),
        }
    }

    fn begins(&mut self, pid: Pid) -> Within {
        let Some(call) = call_of(pid) else {
            return Within::Call;
        };
        self.counting |= makes_a_file(pid, call);
        if !self.counting {
            return Within::Call;
        }
        let index = self.calls.len();
        self.calls.push(call);
        match self.plan {
            Plan::Kill(at, Side::Before) if at == index => {
                self.hit = Some(call);
                self.kill();
                Within::Call
            }
            Plan::Kill(at, Side::After) if at == index => {
                self.hit = Some(call);
                Within::Chosen
            }
            Plan::Fail(at, _) if at == index => {
                self.hit = Some(call);
                suppress(pid);
                Within::Chosen
            }
            _ => Within::Call,
        }
    }

    fn ends_chosen(&mut self, pid: Pid) {
        match self.plan {
            Plan::Kill(..) => self.kill(),
            Plan::Fail(_, errno) => set_result(pid, -i64::from(errno as i32)),
            Plan::Watch => {}
        }
    }

    fn kill(&self) {
        kill(self.main, Signal::SIGKILL).expect("kill the tracee");
    }
}

/// Continues a stopped thread; one that was killed meanwhile is gone.
fn go_on(pid: Pid, signal: Option<Signal>) {
    match ptrace::syscall(pid, signal) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => panic!("continue {pid}: {error}"),
    }
}

fn call_of(pid: Pid) -> Option<Call> {
    let registers = ptrace::getregs(pid).ok()?;
    Some(Call {
        number: registers.orig_rax.cast_signed(),
        arguments: [registers.rdi, registers.rsi, registers.rdx],
    })
}

fn makes_a_file(pid: Pid, call: Call) -> bool {
    let flags = match call.number {
        libc::SYS_openat => call.arguments[2],
        // The structure begins with the flags.
        libc::SYS_openat2 => ptrace::read(pid, call.arguments[2] as AddressType)
            .unwrap_or_default()
            .cast_unsigned(),
        _ => return false,
    };
    let is_set = |wanted: i32| {
        flags & u64::from(wanted.cast_unsigned()) == u64::from(wanted.cast_unsigned())
    };
    is_set(libc::O_CREAT) || is_set(libc::O_TMPFILE)
}

/// Makes the kernel skip the call that a thread begins.
fn suppress(pid: Pid) {
    let mut registers = ptrace::getregs(pid).expect("registers");
    registers.orig_rax = u64::MAX;
    ptrace::setregs(pid, registers).expect("set registers");
}

fn set_result(pid: Pid, result: i64) {
    let mut registers = ptrace::getregs(pid).expect("registers");
    registers.rax = result.cast_unsigned();
    ptrace::setregs(pid, registers).expect("set registers");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn index_of(traced: &Traced, number: i64, output: u64) -> usize {
        let is_it = |call: &Call| call.number == number && call.arguments[0] == output;
        traced.calls.iter().position(is_it).expect("the call")
    }

    #[test]
    fn a_watched_process_does_what_it_does_alone() {
        let traced = run(shell("cat; exit 3"), b"in", Landmark::Start, Plan::Watch);
        assert_eq!(traced.outcome.ended, Ended::Code(3));
        assert_eq!(traced.outcome.stdout, b"in");
        assert!(traced.calls.len() > 10 && traced.hit.is_none());
    }

    #[test]
    fn a_process_is_killed_on_either_side_of_a_call() {
        let watched = run(shell("echo said"), b"", Landmark::Start, Plan::Watch);
        let index = index_of(&watched, libc::SYS_write, 1);
        for (side, said) in [(Side::Before, ""), (Side::After, "said\n")] {
            let plan = Plan::Kill(index, side);
            let traced = run(shell("echo said"), b"", Landmark::Start, plan);
            assert_eq!(traced.outcome.ended, Ended::Signal(9), "{side:?}");
            assert_eq!(traced.outcome.stdout, said.as_bytes(), "{side:?}");
            assert_eq!(traced.hit.expect("hit").name(), "write");
        }
    }

    #[test]
    fn one_call_fails_and_is_not_made() {
        let script = "echo said || exit 7; echo more";
        let watched = run(shell(script), b"", Landmark::Start, Plan::Watch);
        let index = index_of(&watched, libc::SYS_write, 1);
        let plan = Plan::Fail(index, Errno::ENOSPC);
        let traced = run(shell(script), b"", Landmark::Start, plan);
        assert_eq!(traced.outcome.stdout, b"");
        assert_eq!(traced.outcome.ended, Ended::Code(7));
    }

    #[test]
    fn counting_begins_where_a_file_is_made() {
        let top = crate::place::top();
        let script = format!("cat </dev/null; : > {}/new", top.path().display());
        let traced = run(shell(&script), b"", Landmark::Staging, Plan::Watch);
        assert!(makes(&traced.calls[0]), "{:?}", traced.calls);
        let plan = Plan::Kill(0, Side::Before);
        std::fs::remove_file(top.path().join("new")).expect("remove");
        let killed = run(shell(&script), b"", Landmark::Staging, plan);
        assert_eq!(killed.outcome.ended, Ended::Signal(9));
        assert!(!top.path().join("new").exists());
    }

    fn makes(call: &Call) -> bool {
        let flag = u64::from(libc::O_CREAT.cast_unsigned());
        call.number == libc::SYS_openat && call.arguments[2] & flag != 0
    }
}
