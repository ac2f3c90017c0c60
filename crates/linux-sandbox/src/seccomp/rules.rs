//! The deny list, one entry per system call and reason.
//!
//! Everything else is allowed: commands are programs of all kinds. A refused
//! call fails with `EPERM`, as it would without privileges. Comparisons are on
//! 32 bits wherever the kernel reads 32, so that high bits cannot hide a value.

use libc::c_long;
use sandbox_policy::Network;

/// A comparison of one argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Test {
    /// The argument equals a value.
    Equal(u8, u32),
    /// The argument differs from a value.
    Differs(u8, u32),
    /// The argument, masked, equals a value.
    Masked(u8, u32, u32),
}

/// One rule: the call is refused when all tests hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) call: c_long,
    pub(crate) tests: &'static [Test],
}

const fn always(call: c_long) -> Rule {
    Rule { call, tests: &[] }
}

const fn when(call: c_long, tests: &'static [Test]) -> Rule {
    Rule { call, tests }
}

const NEW_USER: u32 = libc::CLONE_NEWUSER as u32;
const UNIX: u32 = libc::AF_UNIX as u32;
const INET: u32 = libc::AF_INET as u32;
const INET6: u32 = libc::AF_INET6 as u32;
const NETLINK: u32 = libc::AF_NETLINK as u32;
/// The part of a socket type that is not a flag.
const SOCKET_TYPE: u32 = 0xf;
const DATAGRAM: u32 = libc::SOCK_DGRAM as u32;
const RAW: u32 = libc::SOCK_RAW as u32;
/// Not in every libc: `open_tree` that also changes attributes, Linux 6.15.
const SYS_OPEN_TREE_ATTR: c_long = 467;

/// Refused whatever the policy.
pub(crate) const ALWAYS: &[Rule] = &[
    // Mounts would undo the view.
    always(libc::SYS_mount),
    always(libc::SYS_umount2),
    always(libc::SYS_pivot_root),
    always(libc::SYS_open_tree),
    always(SYS_OPEN_TREE_ATTR),
    always(libc::SYS_move_mount),
    always(libc::SYS_mount_setattr),
    always(libc::SYS_fsopen),
    always(libc::SYS_fsconfig),
    always(libc::SYS_fsmount),
    always(libc::SYS_fspick),
    // A user namespace brings every capability back, inside itself; the other
    // namespaces need one, or a capability that is gone.
    when(libc::SYS_unshare, &[Test::Masked(0, NEW_USER, NEW_USER)]),
    when(libc::SYS_clone, &[Test::Masked(0, NEW_USER, NEW_USER)]),
    always(libc::SYS_setns),
    // Keys belong to the user, not to the sandbox.
    always(libc::SYS_keyctl),
    always(libc::SYS_add_key),
    always(libc::SYS_request_key),
    // A ring makes calls that no filter sees.
    always(libc::SYS_io_uring_setup),
    always(libc::SYS_io_uring_enter),
    always(libc::SYS_io_uring_register),
    // Large kernel surfaces with a history, of no use without privileges.
    always(libc::SYS_bpf),
    always(libc::SYS_perf_event_open),
    always(libc::SYS_userfaultfd),
    // Memory of other processes; debuggers still have ptrace in the own
    // process id namespace.
    always(libc::SYS_process_vm_readv),
    always(libc::SYS_process_vm_writev),
    // Opens a file by number, past every mount.
    always(libc::SYS_open_by_handle_at),
    // The kernel itself.
    always(libc::SYS_kexec_load),
    always(libc::SYS_kexec_file_load),
    always(libc::SYS_init_module),
    always(libc::SYS_finit_module),
    always(libc::SYS_delete_module),
    always(libc::SYS_swapon),
    always(libc::SYS_swapoff),
    always(libc::SYS_reboot),
    always(libc::SYS_acct),
    always(libc::SYS_quotactl),
    always(libc::SYS_quotactl_fd),
    // Types into the caller's terminal.
    when(libc::SYS_ioctl, &[Test::Equal(1, 0x5412)]),
    // Pastes into the caller's console.
    when(libc::SYS_ioctl, &[Test::Equal(1, 0x541C)]),
    // Device nodes.
    #[cfg(target_arch = "x86_64")]
    when(
        libc::SYS_mknod,
        &[Test::Masked(1, libc::S_IFMT, libc::S_IFCHR)],
    ),
    #[cfg(target_arch = "x86_64")]
    when(
        libc::SYS_mknod,
        &[Test::Masked(1, libc::S_IFMT, libc::S_IFBLK)],
    ),
    when(
        libc::SYS_mknodat,
        &[Test::Masked(2, libc::S_IFMT, libc::S_IFCHR)],
    ),
    when(
        libc::SYS_mknodat,
        &[Test::Masked(2, libc::S_IFMT, libc::S_IFBLK)],
    ),
    // Netlink other than route: connection tracking, audit, udev.
    when(
        libc::SYS_socket,
        &[Test::Equal(0, NETLINK), Test::Differs(2, 0)],
    ),
];

/// Refused with the host's network: families beside internet, netlink and unix.
const HOST_NETWORK: &[Rule] = &[when(
    libc::SYS_socket,
    &[
        Test::Differs(0, UNIX),
        Test::Differs(0, INET),
        Test::Differs(0, INET6),
        Test::Differs(0, NETLINK),
    ],
)];

/// Refused without network: unix sockets too, since a path on disk reaches
/// services of the host from every namespace. A connected pair of streams
/// reaches nobody else; a pair of datagram sockets can send to any path.
const NO_NETWORK: &[Rule] = &[
    when(
        libc::SYS_socket,
        &[
            Test::Differs(0, INET),
            Test::Differs(0, INET6),
            Test::Differs(0, NETLINK),
        ],
    ),
    when(
        libc::SYS_socketpair,
        &[Test::Masked(1, SOCKET_TYPE, DATAGRAM)],
    ),
    // The kernel makes a datagram socket of this one (unix(7)).
    when(libc::SYS_socketpair, &[Test::Masked(1, SOCKET_TYPE, RAW)]),
];

/// Returns the rules that depend on the network.
pub(crate) fn for_network(network: Network) -> &'static [Rule] {
    match network {
        Network::None => NO_NETWORK,
        Network::Host => HOST_NETWORK,
    }
}
