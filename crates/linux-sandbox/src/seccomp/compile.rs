//! From rules to one program.

use std::collections::BTreeMap;

use sandbox_policy::Network;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use crate::seccomp::rules::{ALWAYS, Rule, Test, for_network};

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;

/// The lowest number of the x32 interface: the same calls by other numbers.
const X32_BIT: u32 = 0x4000_0000;

/// Compiles the filter for a network.
pub(crate) fn compile(network: Network) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for rule in ALWAYS.iter().chain(for_network(network)) {
        let tests = rules.entry(rule.call).or_default();
        if !rule.tests.is_empty() {
            tests.push(condition(rule)?);
        }
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, ARCH)?;
    let mut program = prefix();
    program.append(&mut filter.try_into()?);
    Ok(program)
}

fn condition(rule: &Rule) -> Result<SeccompRule, BackendError> {
    let word = SeccompCmpArgLen::Dword;
    let tests = rule.tests.iter().map(|test| match *test {
        Test::Equal(argument, value) => {
            SeccompCondition::new(argument, word.clone(), SeccompCmpOp::Eq, value.into())
        }
        Test::Differs(argument, value) => {
            SeccompCondition::new(argument, word.clone(), SeccompCmpOp::Ne, value.into())
        }
        Test::Masked(argument, mask, value) => {
            let masked = SeccompCmpOp::MaskedEq(mask.into());
            SeccompCondition::new(argument, word.clone(), masked, value.into())
        }
    });
    SeccompRule::new(tests.collect::<Result<_, _>>()?)
}

/// Returns the instructions that stand before the compiled program: calls that
/// must look as if the kernel did not have them.
///
/// `clone3` hides its flags behind a pointer, so C libraries must fall back to
/// `clone`. The compiled program has only one action for what matches, and a
/// second filter would double the cost. A foreign architecture is not told
/// apart here: it gets "no such call" for these numbers and is killed for all
/// others.
fn prefix() -> BpfProgram {
    let load = |offset| sock_filter {
        code: 0x20,
        jt: 0,
        jf: 0,
        k: offset,
    };
    let jump = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let absent = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    let jump_if_equal = 0x15;
    let jump_if_at_least = 0x35;
    vec![
        load(0),
        jump(jump_if_equal, libc::SYS_clone3 as u32, 1, 0),
        jump(jump_if_at_least, X32_BIT, 0, 1),
        sock_filter {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: absent,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program on one call, as the kernel does.
    fn evaluate(program: &[sock_filter], call: i64, arch: u32, args: [u64; 6]) -> u32 {
        let word = |offset: u32| match offset {
            0 => call as u32,
            4 => arch,
            16.. => {
                let bits = args[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) {
                    bits as u32
                } else {
                    (bits >> 32) as u32
                }
            }
            _ => panic!("offset {offset}"),
        };
        let (mut accumulator, mut next) = (0u32, 0usize);
        loop {
            let op = &program[next];
            next += 1;
            let jump = |holds: bool| usize::from(if holds { op.jt } else { op.jf });
            match op.code {
                0x20 => accumulator = word(op.k),
                0x54 => accumulator &= op.k,
                0x05 => next += op.k as usize,
                0x15 => next += jump(accumulator == op.k),
                0x25 => next += jump(accumulator > op.k),
                0x35 => next += jump(accumulator >= op.k),
                0x06 => return op.k,
                code => panic!("instruction {code:#x}"),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    const NATIVE: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const NATIVE: u32 = 0xc000_00b7;
    const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    const ABSENT: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

    /// Returns arguments that make all tests hold, with noise above 32 bits.
    fn matching(rule: &Rule) -> [u64; 6] {
        let mut args = [0xdead_beef_0000_0000; 6];
        for test in rule.tests {
            match *test {
                Test::Equal(at, value) | Test::Masked(at, _, value) => {
                    args[usize::from(at)] |= u64::from(value);
                }
                Test::Differs(at, _) => args[usize::from(at)] |= 0x7777,
            }
        }
        args
    }

    #[test]
    fn every_rule_refuses_what_it_names_and_nothing_else() {
        for network in [Network::None, Network::Host] {
            let program = compile(network).unwrap();
            for rule in ALWAYS.iter().chain(for_network(network)) {
                let args = matching(rule);
                assert_eq!(
                    evaluate(&program, rule.call, NATIVE, args),
                    REFUSED,
                    "{rule:?}"
                );
                let foreign = evaluate(&program, rule.call, 0x4000_0003, args);
                assert_eq!(foreign, libc::SECCOMP_RET_KILL_PROCESS, "{rule:?}");
            }
        }
    }

    #[test]
    fn ordinary_calls_pass() {
        let program = compile(Network::None).unwrap();
        let passes = |call, args| evaluate(&program, call, NATIVE, args) == libc::SECCOMP_RET_ALLOW;
        let (inet, netlink, unix) = (libc::AF_INET as u64, libc::AF_NETLINK as u64, 1);
        assert!(passes(libc::SYS_read, [0; 6]));
        assert!(passes(libc::SYS_ptrace, [0; 6]));
        assert!(passes(
            libc::SYS_clone,
            [libc::SIGCHLD as u64, 0, 0, 0, 0, 0]
        ));
        assert!(passes(
            libc::SYS_unshare,
            [libc::CLONE_FILES as u64, 0, 0, 0, 0, 0]
        ));
        assert!(passes(libc::SYS_ioctl, [0, libc::TCGETS, 0, 0, 0, 0]));
        assert!(passes(
            libc::SYS_mknodat,
            [0, 0, u64::from(libc::S_IFIFO), 0, 0, 0]
        ));
        assert!(passes(libc::SYS_socket, [inet, 1, 0, 0, 0, 0]));
        assert!(passes(libc::SYS_socket, [netlink, 3, 0, 0, 0, 0]));
        assert!(passes(libc::SYS_socketpair, [unix, 1, 0, 0, 0, 0]));
        assert!(!passes(libc::SYS_socket, [unix, 1, 0, 0, 0, 0]));
        let datagram = libc::SOCK_DGRAM as u64 | libc::SOCK_CLOEXEC as u64;
        assert!(!passes(libc::SYS_socketpair, [unix, datagram, 0, 0, 0, 0]));
        let host = compile(Network::Host).unwrap();
        let unix_call = [unix, datagram, 0, 0, 0, 0];
        let allowed = libc::SECCOMP_RET_ALLOW;
        assert_eq!(
            evaluate(&host, libc::SYS_socket, NATIVE, unix_call),
            allowed
        );
    }

    #[test]
    fn some_calls_look_absent() {
        let program = compile(Network::None).unwrap();
        assert_eq!(evaluate(&program, libc::SYS_clone3, NATIVE, [0; 6]), ABSENT);
        assert_eq!(
            evaluate(&program, 0x4000_0000 | libc::SYS_read, NATIVE, [0; 6]),
            ABSENT
        );
    }
    #[test]
    fn no_rule_hides_behind_another() {
        for network in [Network::None, Network::Host] {
            let mut always = Vec::new();
            let mut tested = Vec::new();
            for rule in ALWAYS.iter().chain(for_network(network)) {
                let list = if rule.tests.is_empty() {
                    &mut always
                } else {
                    &mut tested
                };
                list.push(rule.call);
            }
            always.sort_unstable();
            let length = always.len();
            always.dedup();
            assert_eq!(always.len(), length, "a call is listed twice");
            assert!(tested.iter().all(|call| !always.contains(call)));
        }
    }
}
