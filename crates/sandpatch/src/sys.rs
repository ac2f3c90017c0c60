//! The one place for calls that the safe wrappers do not offer.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

use nix::sys::signal::{SigHandler, Signal, signal};
use rustix::mm::{Advice, madvise};

/// Closes every descriptor above 2, which its caller left open.
///
/// It is called before this process opens anything that it still uses.
pub fn close_all_above_standard() -> std::io::Result<()> {
    use nix::libc::{SYS_close_range, syscall};
    // SAFETY: numbers only. Descriptors above 2 have no owner in this process:
    // it has opened nothing yet, and what it inherited it does not use.
    match unsafe { syscall(SYS_close_range, 3, u32::MAX, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Takes the descriptor that the outer stage handed on; called once at most.
pub fn inherited_file() -> std::fs::File {
    use std::os::fd::FromRawFd;
    // SAFETY: the outer stage says that the descriptor is open and ours, nothing
    // else in this process has it, and the caller asks once. Were it not open,
    // every use of it would fail with EBADF.
    unsafe { std::fs::File::from_raw_fd(linux_sandbox::INHERITED_FD) }
}

/// Makes writes beyond the file-size limit fail with EFBIG in place of ending the process.
///
/// A patch must be taken back when a write fails; a signal would leave it half done (setrlimit(2)).
pub fn ignore_file_size_signal() {
    // SAFETY: SIG_IGN runs no code of ours, so nothing can be interrupted in an
    // inconsistent state; no other thread exists that could rely on a handler.
    let previous = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    // Only an invalid signal number fails, and this one is valid.
    debug_assert!(previous.is_ok());
}

/// Gives large buffers large pages: a file and its new content are touched from
/// end to end, and a page fault for every 4 KiB costs more than the copying.
struct LargePages;

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

/// The usual size of a large page; where it is another one the advice does no harm.
const LARGE_PAGE_BYTES: usize = 2 << 20;

// SAFETY: every call is handed on to `System` with the layout that it was made
// with, but for a stricter alignment of large blocks, which `free` and
// `realloc` do not need to know (malloc(3), posix_memalign(3)).
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let aligned = layout.align_to(LARGE_PAGE_BYTES);
        let Some(aligned) = aligned
            .ok()
            .filter(|_| layout.size() >= 2 * LARGE_PAGE_BYTES)
        else {
            // SAFETY: the caller's obligations are the same.
            return unsafe { System.alloc(layout) };
        };
        // SAFETY: the size is not zero.
        let block = unsafe { System.alloc(aligned) };
        if !block.is_null() {
            let whole = layout.size() / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
            // SAFETY: the range lies inside the new block; advice changes no content.
            let _ = unsafe { madvise(block.cast(), whole, Advice::LinuxHugepage) };
        }
        block
    }

    // The default would fill with zeros what the kernel has just given so.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are the same.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's obligations are the same.
        unsafe { System.realloc(block, layout, size) }
    }
}
