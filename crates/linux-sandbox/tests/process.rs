//! How commands start and end, and what they may do to other processes.

#![allow(clippy::print_stderr, clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Identity, Place, as_each, is_root, text};

#[test]
fn endings_are_passed_on() {
    as_each(|place| {
        let code = |words: &[&str]| place.command(words).status().unwrap().code();
        assert_eq!(code(&["--", "true"]), Some(0));
        assert_eq!(code(&["--", "sh", "-c", "exit 37"]), Some(37));
        assert_eq!(code(&["--", "sh", "-c", "kill -TERM $$"]), Some(143));
        assert_eq!(code(&["--", "sh", "-c", "kill -KILL $$"]), Some(137));
        assert_eq!(code(&["--", "no-such-program"]), Some(127));
        assert_eq!(code(&["--", "/etc/passwd"]), Some(126));
    });
}

#[test]
fn nothing_is_left_to_gain() {
    as_each(|place| {
        let output = place.sh("cat /proc/self/status");
        let status = text(&output.stdout);
        let value = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().to_owned()
        };
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(value(set), "0000000000000000", "{set}");
        }
        assert_eq!(
            (value("NoNewPrivs:"), value("Seccomp:")),
            ("1".into(), "2".into())
        );
        // 32 and 33 belong to the C library, which sets them itself.
        let ignored = u64::from_str_radix(&value("SigIgn:"), 16).unwrap();
        assert_eq!(ignored & 0x7fff_ffff, 0);
        assert_eq!(value("SigBlk:"), "0000000000000000");
    });
}

#[test]
fn ids_stay_what_they_are() {
    as_each(|place| {
        let inside = text(&place.sh("id -u; id -g; touch mine; stat -c %u mine").stdout);
        let owner = match place.identity {
            Identity::Ordinary => 12345,
            Identity::Caller => nix::unistd::geteuid().as_raw(),
        };
        assert_eq!(inside.lines().next(), Some(owner.to_string().as_str()));
        assert_eq!(inside.lines().last(), Some(owner.to_string().as_str()));
    });
}

#[test]
fn the_patch_stage_of_root_keeps_four_capabilities() {
    as_each(|place| {
        if !is_root() || place.identity != Identity::Caller {
            return;
        }
        let words = ["--patch", "--", "grep", "^Cap", "/proc/self/status"];
        let shown = text(&place.command(&words).output().unwrap().stdout);
        for set in ["CapPrm:", "CapEff:", "CapInh:", "CapAmb:"] {
            assert!(
                shown.contains(&format!("{set}\t000000000000001b")),
                "{shown}"
            );
        }
    });
}

#[test]
fn other_processes_are_out_of_sight() {
    as_each(|place| {
        let output =
            place.sh("ls /proc | grep -c '^[0-9]'; kill -0 $PPID; sleep 9 & kill $!; echo $?");
        let shown = text(&output.stdout);
        let mut lines = shown.lines();
        let seen: u32 = lines.next().unwrap().parse().unwrap();
        assert!(seen <= 5, "{seen} processes are seen");
        assert_eq!(lines.next(), Some("0"), "own children can be signalled");
    });
}

#[test]
fn background_processes_end_with_the_command() {
    as_each(|place| {
        let script = "(setsid sh -c 'echo up > up; sleep 1; echo late > late' >/dev/null 2>&1 &);
            while [ ! -e up ]; do sleep 0.01; done";
        assert!(place.sh(script).status.success());
        sleep(Duration::from_millis(1500));
        assert!(place.ws.join("up").exists() && !place.ws.join("late").exists());
    });
}

#[test]
fn signals_are_passed_on() {
    as_each(|place| {
        let script = "trap 'exit 42' TERM; trap 'echo usr1' USR1; echo ready;
            while :; do sleep 0.02; done";
        let mut command = place.command(&["--", "/bin/sh", "-c", script]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        kill(pid, Signal::SIGUSR1).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "usr1");
        kill(pid, Signal::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(42));
    });
}

#[test]
fn killing_the_supervisor_leaves_nothing() {
    as_each(|place| {
        let script = "echo 0 > beat; echo ready; n=0; while :; do n=$((n+1)); echo $n > beat; sleep 0.02; done";
        let mut command = place.command(&["--", "/bin/sh", "-c", script]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        child.kill().unwrap();
        child.wait().unwrap();
        let limit = Instant::now() + Duration::from_secs(5);
        loop {
            let before = fs::read_to_string(place.ws.join("beat")).unwrap();
            sleep(Duration::from_millis(300));
            if fs::read_to_string(place.ws.join("beat")).unwrap() == before {
                break;
            }
            assert!(
                Instant::now() < limit,
                "the command outlives its supervisor"
            );
        }
    });
}

/// Prints which of the descriptors 3 to 9 are open, and writes to 3.
const PROBE_FDS: &str = "for n in 3 4 5 6 7 8 9; do (: >&$n) 2>/dev/null && echo $n; done
    echo added >&3";

#[test]
fn a_patch_stage_inherits_one_descriptor_at_most() {
    as_each(|place| {
        let file = place.out.join("record");
        place.write(&file, "old\n");
        let path = file.to_str().unwrap();
        let with = ["--patch", "--inherit", path, "--", "sh", "-c", PROBE_FDS];
        let output = place.command(&with).output().unwrap();
        assert_eq!(text(&output.stdout), "3", "{output:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "old\nadded\n");

        let without = ["--patch", "--", "sh", "-c", PROBE_FDS];
        let output = place.command(&without).output().unwrap();
        assert_eq!(text(&output.stdout), "", "{output:?}");
        assert!(!output.status.success(), "nothing is there to write to");
        assert_eq!(fs::read_to_string(&file).unwrap(), "old\nadded\n");
    });
}

#[test]
fn descriptors_of_the_caller_do_not_get_in_the_way() {
    as_each(|place| {
        let file = place.out.join("record");
        place.write(&file, "");
        let path = file.to_str().unwrap();
        // All of 3 to 9 are taken before the sandbox opens anything.
        let crowded = "exec 3</etc/passwd 4<&3 5<&3 6<&3 7<&3 8<&3 9<&3; exec \"$@\"";
        let started = place.command(&["--patch", "--inherit", path, "--", "sh", "-c", PROBE_FDS]);
        let output = place.through_shell(crowded, &started).output().unwrap();
        assert_eq!(text(&output.stdout), "3", "{output:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "added\n");
        // The executable itself is held by descriptor, and takes the first free number.
        let again = ["--patch", "--inherit", path, "--self", "--", "run", "--bad"];
        let output = place.command(&again).output().unwrap();
        assert!(text(&output.stderr).contains("usage: run"), "{output:?}");
    });
}

#[test]
fn a_command_inherits_nothing() {
    as_each(|place| {
        let file = place.out.join("record");
        place.write(&file, "old\n");
        let path = file.to_str().unwrap();
        let words = ["--inherit", path, "--", "sh", "-c", "echo added >&3"];
        let output = place.command(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert!(text(&output.stderr).contains("failed to hand a descriptor on"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "old\n");
    });
}

const CONNECT: &str = "import socket,sys
s=socket.socket(int(sys.argv[1]))
s.connect(eval(sys.argv[2]))";

fn connect(place: &Place, options: &[&str], family: i32, address: &str) -> bool {
    let family = family.to_string();
    let mut words = options.to_vec();
    words.extend(["--", "python3", "-c", CONNECT, &family, address]);
    place
        .command(&words)
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

#[test]
fn the_network_is_what_the_policy_says() {
    if Command::new("python3").arg("-V").output().is_err() {
        eprintln!("SKIPPED: python3 is missing");
        return;
    }
    as_each(|place| {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("('127.0.0.1',{})", tcp.local_addr().unwrap().port());
        let path = place.out.join("socket");
        let _unix = UnixListener::bind(&path).unwrap();
        place.give(&path);
        let socket = format!("{path:?}");
        assert!(!connect(place, &[], libc::AF_INET, &address));
        assert!(!connect(place, &[], libc::AF_UNIX, &socket));
        assert!(
            connect(place, &["--host-network"], libc::AF_INET, &address),
            "control"
        );
        assert!(
            connect(place, &["--host-network"], libc::AF_UNIX, &socket),
            "control"
        );
        let own = "import socket\ns=socket.create_server(('127.0.0.1',0))\n\
            socket.create_connection(s.getsockname())";
        assert!(
            place
                .command(&["--", "python3", "-c", own])
                .status()
                .unwrap()
                .success(),
            "loopback"
        );
    });
}

#[test]
fn new_namespaces_are_refused() {
    as_each(|place| {
        let refused = place.sh("unshare -U true");
        assert!(
            text(&refused.stderr).contains("Operation not permitted"),
            "{refused:?}"
        );
        let control = Command::new("unshare").args(["-U", "true"]).status();
        if !control.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED control: this host refuses user namespaces by itself");
        }
    });
}

#[test]
fn a_process_with_threads_is_refused() {
    use linux_sandbox::{Environment, Program, Stdin, Step};
    use sandbox_policy::{AbsolutePath, Policy, Purpose};

    let policy = Policy::workspace(AbsolutePath::new("/var/tmp").unwrap());
    let facts = linux_sandbox::gather(&policy, Purpose::Command).unwrap();
    let Ok(plan) = sandbox_policy::plan(&policy, &facts, Purpose::Command) else {
        return;
    };
    let command = linux_sandbox::Command {
        program: Program::Named("true".into()),
        args: vec!["true".into()],
        environment: Environment::default(),
        stdin: Stdin::Inherit,
        inherit: None,
        cwd: "/var/tmp".into(),
    };
    let error = std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || stopped.recv());
        let error = linux_sandbox::run(&plan, command).unwrap_err();
        drop(stop);
        error
    });
    assert_eq!(error.step, Step::OneThread);
}
