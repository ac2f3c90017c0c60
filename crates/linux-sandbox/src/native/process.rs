//! What the supervisor must know about itself before it forks.

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::error::Errno;

/// The state of the calling process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) threads: u32,
    /// Ignored signals, bit 0 for signal 1.
    pub(crate) ignored: u64,
}

impl Process {
    /// Reads `/proc/self/stat`: one file says both how many threads there are
    /// and which signals are ignored.
    pub(crate) fn current() -> Result<Self, Errno> {
        let fd = openat(
            CWD,
            c"/proc/self/stat",
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let mut buffer = [0; 1024];
        let length = rustix::io::read(&fd, &mut buffer)?;
        Self::parse(buffer.get(..length).unwrap_or_default()).ok_or(Errno(libc::EPROTO))
    }

    /// Parses the line; the program name may hold anything, so fields are
    /// counted from the last parenthesis.
    fn parse(line: &[u8]) -> Option<Self> {
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        // Field 3 comes first; the threads are field 20, the ignored signals 33.
        let threads = fields.nth(17)?.parse().ok()?;
        let ignored = fields.nth(12)?.parse().ok()?;
        Some(Self { threads, ignored })
    }

    /// Returns the numbers of the ignored signals.
    pub(crate) fn ignored_signals(&self) -> impl Iterator<Item = i32> + '_ {
        (1..=31).filter(|signal| self.ignored >> (signal - 1) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_fields_from_the_last_parenthesis() {
        let line = b"7 (a) 9 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 3 18 19 20 21 22 23 24 \
            25 26 27 28 29 4097 31 32\n";
        let process = Process::parse(line).unwrap();
        assert_eq!(
            process,
            Process {
                threads: 3,
                ignored: 4097
            }
        );
        assert_eq!(process.ignored_signals().collect::<Vec<_>>(), [1, 13]);
        assert_eq!(Process::parse(b"7 (a) S 1"), None);
    }
}
