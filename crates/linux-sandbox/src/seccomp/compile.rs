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

    #[test]
    fn both_networks_compile_into_one_program() {
        for network in [Network::None, Network::Host] {
            let program = compile(network).unwrap();
            assert!(program.len() < 400, "{}", program.len());
        }
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
