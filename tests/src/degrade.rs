//! Takes kernel features away from the calling thread and from what it starts,
//! so that the other ways are tested on every host.

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, RenameFlags, openat2, renameat2};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// Takes `openat2` away, as a kernel before 5.6.
///
/// # Panics
/// When it is still there afterwards.
pub fn without_openat2() {
    refuse(libc::SYS_openat2, Vec::new(), Errno::ENOSYS);
    assert!(!has_openat2());
}

/// True when the kernel has `openat2` for us.
///
/// # Panics
/// When the call fails for another reason.
#[must_use]
pub fn has_openat2() -> bool {
    match openat2(AT_FDCWD, "/", OpenHow::new().flags(OFlag::O_PATH)) {
        Ok(_) => true,
        Err(Errno::ENOSYS) => false,
        Err(errno) => panic!("openat2: {errno}"),
    }
}

/// Takes `O_TMPFILE` and the flags of `renameat2` away, as a file system that
/// knows neither.
///
/// # Panics
/// When one of them is still there afterwards.
pub fn without_unnamed_files_and_exchange() {
    let unnamed = u64::from(libc::O_TMPFILE.cast_unsigned());
    let is_unnamed = condition(2, SeccompCmpOp::MaskedEq(unnamed), unnamed);
    refuse(libc::SYS_openat, vec![is_unnamed], Errno::EOPNOTSUPP);
    let has_flags = condition(4, SeccompCmpOp::Ne, 0);
    refuse(libc::SYS_renameat2, vec![has_flags], Errno::EINVAL);
    let flags = OFlag::O_TMPFILE | OFlag::O_WRONLY;
    let opened = nix::fcntl::open("/var/tmp", flags, nix::sys::stat::Mode::empty());
    assert_eq!(opened.map(drop), Err(Errno::EOPNOTSUPP));
    let swapped = renameat2(AT_FDCWD, "/", AT_FDCWD, "/", RenameFlags::RENAME_EXCHANGE);
    assert_eq!(swapped, Err(Errno::EINVAL));
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> SeccompRule {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value);
    SeccompRule::new(vec![condition.expect("a condition")]).expect("a rule")
}

/// Makes a call fail when one of the rules matches, or always without a rule.
fn refuse(call: i64, rules: Vec<SeccompRule>, errno: Errno) {
    let action = SeccompAction::Errno((errno as i32).cast_unsigned());
    let architecture = std::env::consts::ARCH.try_into().expect("an architecture");
    let rules = [(call, rules)].into_iter().collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture);
    let program: BpfProgram = filter.expect("a filter").try_into().expect("a program");
    apply_filter(&program).expect("install the filter");
}
