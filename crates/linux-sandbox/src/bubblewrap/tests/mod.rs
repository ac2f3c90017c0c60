//! Whole argument vectors, and mounts that are not as they should be: what both
//! kinds of tests are made of.

mod rendered;
mod verified;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use sandbox_policy::facts::{FileId, RootKind};
use sandbox_policy::plan::{
    AttachTarget, Capability, Identity, MaskForm, MountOp, PinnedRoot, Requirement, RootIndex,
    ViewMode,
};
use sandbox_policy::{AbsolutePath, Access, Network, Plan, Policy, Purpose};

use crate::bubblewrap::features::Features;
use crate::bubblewrap::handoff::{HandOff, Numbers, Task};
use crate::bubblewrap::render::{Place, PlaceKind, Table, way};
use crate::command::{Command, Environment, Program, Stdin};
use crate::error::Errno;

fn path(text: &str) -> AbsolutePath {
    AbsolutePath::new(text).unwrap()
}

fn id(ino: u64) -> FileId {
    FileId { dev: 1, ino }
}

/// A plan that is made of the default policy, with other operations put in.
fn plan(mounts: Vec<MountOp>, identity: Identity, network: Network) -> Plan {
    let policy = Policy::workspace(path("/var/tmp"));
    let facts = crate::gather(&policy, Purpose::Patch).unwrap();
    let mut base = sandbox_policy::plan(&policy, &facts, Purpose::Patch).unwrap();
    let mut requirements = vec![
        Requirement::MountNamespace,
        Requirement::PidNamespace,
        Requirement::IpcNamespace,
    ];
    if network == Network::None {
        requirements.push(Requirement::NetworkNamespace);
    }
    if matches!(identity, Identity::UserNamespace { .. }) {
        requirements.push(Requirement::UserNamespace);
    }
    let root = |real: &str, ino, access| PinnedRoot {
        real: path(real),
        id: id(ino),
        kind: RootKind::Directory,
        access,
    };
    base.purpose = Purpose::Command;
    base.roots = vec![
        root("/w", 10, Access::Write),
        root("/usr", 20, Access::Read),
    ];
    base.mounts = mounts;
    base.network = network;
    base.identity = identity;
    base.requirements = requirements;
    base
}

fn user() -> Identity {
    Identity::UserNamespace { uid: 7, gid: 8 }
}

fn attach(root: usize) -> MountOp {
    MountOp::AttachRoot {
        root: RootIndex(root),
        target: AttachTarget::Pinned,
    }
}

fn protect(text: &str, ino: u64) -> MountOp {
    MountOp::Protect {
        path: path(text),
        id: id(ino),
    }
}

fn mask(text: &str, ino: u64, form: MaskForm) -> MountOp {
    MountOp::Mask {
        path: path(text),
        id: id(ino),
        form,
    }
}

fn missing(text: &str, access: Access) -> MountOp {
    MountOp::HoldMissing {
        path: path(text),
        access,
    }
}

/// What `run` asks for in a repository.
fn usual() -> Vec<MountOp> {
    vec![
        MountOp::MakePrivate,
        MountOp::CloneRoot(RootIndex(0)),
        MountOp::View(ViewMode::ReadOnly),
        MountOp::SecureStandardDescriptors,
        MountOp::PrivateDev,
        MountOp::FreshProc,
        MountOp::PrivateTmp(path("/tmp")),
        attach(0),
        MountOp::PinAncestor(path("/w/sub")),
        protect("/w/sub/.git", 12),
    ]
}

fn old() -> Features {
    Features {
        version: "0.4.0".into(),
        as_pid_1: true,
        fresh_proc: true,
        ..Features::default()
    }
}

fn debian() -> Features {
    Features {
        args_fd: true,
        perms: true,
        ..old()
    }
}

fn new() -> Features {
    Features {
        argv0: true,
        bind_fd: true,
        ..debian()
    }
}

fn place(ino: u64, kind: PlaceKind, fd: Option<i32>) -> Option<Place> {
    Some(Place {
        id: id(ino),
        kind,
        is_read_only: false,
        fd,
    })
}

/// Invents a table: descriptors count from 20, links are named, `gone` is not
/// there, and empty files count from 90.
fn table(plan: &Plan, features: &Features, links: &[&str]) -> Table {
    let mut table = Table::default();
    for (position, operation) in plan.mounts.iter().enumerate() {
        let at = operation.path(&plan.roots);
        let named = |names: &[&str]| at.is_some_and(|at| names.iter().any(|it| *at == path(it)));
        let kind = match named(links) {
            true => PlaceKind::Link,
            false => PlaceKind::Directory,
        };
        let number = i32::try_from(position).unwrap();
        let found = match operation {
            MountOp::AttachRoot { root, .. } => {
                place(plan.roots[root.0].id.ino, kind, Some(20 + number))
            }
            MountOp::PinAncestor(_) => place(11, kind, Some(20 + number)),
            MountOp::Protect { id, .. } => {
                let fd = (kind == PlaceKind::Directory).then_some(20 + number);
                place(id.ino, kind, fd)
            }
            MountOp::HoldMissing { .. } if named(&["/w/gone"]) => None,
            MountOp::HoldMissing { .. } => place(13, kind, None),
            MountOp::Mask { id, .. } => place(id.ino, kind, None),
            _ => None,
        };
        table.ways.push(way(operation, found.as_ref(), features));
        table.places.push(found);
        table.empty_files.push(Some(90 + number));
    }
    table
}

fn handoff(mounts: Vec<MountOp>, links: &[&str]) -> HandOff {
    let plan = plan(mounts, user(), Network::None);
    let table = table(&plan, &new(), links);
    let command = Command {
        program: Program::Named("x".into()),
        args: vec!["x".into(), OsStr::from_bytes(b"\xff").into()],
        environment: Environment {
            path: Some("/bin".into()),
            vars: vec![("A".into(), OsStr::from_bytes(b"\xfe=").into())],
        },
        stdin: Stdin::Inherit,
        inherit: None,
        cwd: "/".into(),
    };
    let cwd = OsStr::from_bytes(b"/w/\xfd");
    HandOff {
        plan,
        places: table.places,
        ways: table.ways,
        has_fresh_proc: true,
        task: Task::of(&command, cwd.into()),
        numbers: Numbers {
            hello: 4,
            status: 5,
            stderr: 6,
            stdin: Some(7),
            inherit: None,
            watched: None,
        },
    }
}

#[test]
fn a_message_arrives_as_it_was_sent() {
    let sent = handoff(usual(), &[]);
    let bytes = sent.encode().unwrap();
    assert_eq!(HandOff::decode(&bytes), Ok(sent));
    assert!(HandOff::decode(&bytes[..bytes.len() - 1]).is_err());
    assert_eq!(HandOff::decode(b"garbage"), Err(Errno(libc::EPROTO)));
    let command = handoff(usual(), &[]).task.into_command(None);
    assert_eq!(command.cwd.as_os_str().as_bytes(), b"/w/\xfd");
    assert_eq!(command.args[1].as_bytes(), b"\xff");
}
