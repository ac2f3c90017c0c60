//! Who the command is, and what it may do.

use rustix::fs::{CWD, Mode, OFlags, openat};
use sandbox_policy::plan::Identity;
use sandbox_policy::{Plan, Purpose};

use crate::error::{Errno, Step};
use crate::status::{At, Failure};
use crate::sys;

/// The securebits that make user id 0 an ordinary user for `execve`, and their
/// locks: no root, no keeping of capabilities.
const LOCKED_SECUREBITS: i32 = 0b11 | 0b11 << 2 | 0b10 << 4;

/// No ambient capabilities, locked.
const NO_AMBIENT: i32 = 0b11 << 6;

/// Number of the capability that locking needs.
const CAP_SETPCAP: u32 = 8;

/// Maps the caller's ids onto themselves, and nothing else.
pub(crate) fn map_ids(identity: &Identity) -> Result<(), Failure> {
    let Identity::UserNamespace { uid, gid } = identity else {
        return Ok(());
    };
    write_file(c"/proc/self/uid_map", &format!("{uid} {uid} 1")).at(Step::IdentityMap)?;
    write_file(c"/proc/self/setgroups", "deny").at(Step::IdentityMap)?;
    write_file(c"/proc/self/gid_map", &format!("{gid} {gid} 1")).at(Step::IdentityMap)
}

fn write_file(path: &std::ffi::CStr, text: &str) -> Result<(), Errno> {
    let fd = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&fd, text.as_bytes())?;
    // Closed at once: a mount with an open writer cannot become read-only.
    Ok(())
}

/// Drops every capability that is not kept, and the ways to get one back.
///
/// Kept capabilities survive the coming `execve` as ambient ones
/// (capabilities(7)): user id 0 itself counts for nothing any more. With
/// `no_new_privs` nothing else could bring a capability, so the bounding set
/// is limited for commands only, which may look at it.
pub(crate) fn drop_capabilities(plan: &Plan) -> Result<(), Failure> {
    let kept = match &plan.identity {
        Identity::UserNamespace { .. } => &[][..],
        Identity::Privileged { kept } => kept,
    };
    let mask = kept
        .iter()
        .fold(0u64, |mask, capability| mask | 1 << capability.number());
    let is_privileged = matches!(plan.identity, Identity::Privileged { .. });
    if is_privileged && plan.purpose == Purpose::Command {
        limit_bounding_set(mask)?;
    }
    // A stage that was started without any has nothing to lock: its id is not 0.
    let may_lock =
        sys::capabilities().at(Step::DropCapabilities)?.effective >> CAP_SETPCAP & 1 == 1;
    if !is_privileged && !may_lock {
        return sys::keep_capabilities(0).at(Step::DropCapabilities);
    }
    let securebits = if mask == 0 {
        LOCKED_SECUREBITS | NO_AMBIENT
    } else {
        LOCKED_SECUREBITS
    };
    sys::set_securebits(securebits).at(Step::DropCapabilities)?;
    sys::keep_capabilities(mask).at(Step::DropCapabilities)?;
    for capability in kept {
        sys::raise_ambient(capability.number()).at(Step::DropCapabilities)?;
    }
    Ok(())
}

/// Removes one capability after the other until the kernel knows no more.
fn limit_bounding_set(mask: u64) -> Result<(), Failure> {
    for capability in (0..64).filter(|capability| mask >> capability & 1 == 0) {
        match sys::drop_bounding(capability) {
            Err(Errno(libc::EINVAL)) => break,
            other => other.at(Step::DropCapabilities)?,
        }
    }
    Ok(())
}
