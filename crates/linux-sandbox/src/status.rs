//! The words that process 1 sends to the supervisor: fixed-size records over a
//! pipe, so that they can be sent without allocating and read in one call.

use crate::error::{Errno, Step};
use crate::report::{LandlockStatus, ProcView};

/// The size of a record, in bytes.
const RECORD_BYTES: usize = 12;

/// The most records that one run sends, times their size.
pub(crate) const MAX_BYTES: usize = 5 * RECORD_BYTES;

/// A failed step inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    /// The position of the mount operation, when it was one.
    pub(crate) operation: u16,
    pub(crate) errno: Errno,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// The set-up failed.
    Failed(Failure),
    /// The set-up is complete; the command starts next.
    Enforced {
        landlock: LandlockStatus,
        proc: ProcView,
    },
    /// The command could not be executed.
    ExecFailed(Errno),
    /// The command has read its input, a file, up to here.
    InputOffset(u64),
    /// The command exited.
    Exited(u8),
    /// A signal ended the command.
    Signaled(i32),
}

/// Attaches a step to a failed call inside.
pub(crate) trait At<T> {
    fn at(self, step: Step) -> Result<T, Failure>;
}

impl<T, E: Into<Errno>> At<T> for Result<T, E> {
    fn at(self, step: Step) -> Result<T, Failure> {
        self.map_err(|errno| Failure {
            step,
            operation: u16::MAX,
            errno: errno.into(),
        })
    }
}

impl Record {
    /// Encodes the record.
    pub(crate) fn encode(self) -> [u8; RECORD_BYTES] {
        let (tag, small, operation, value) = match self {
            Self::Failed(failure) => {
                let errno = i64::from(failure.errno.0);
                (1, failure.step as u8, failure.operation, errno)
            }
            Self::Enforced { landlock, proc } => {
                let partial = u8::from(landlock == LandlockStatus::Partial);
                (2, partial, u16::from(proc == ProcView::Host), 0)
            }
            Self::ExecFailed(errno) => (3, 0, 0, errno.0.into()),
            Self::Exited(code) => (4, code, 0, 0),
            Self::Signaled(signal) => (5, 0, 0, signal.into()),
            Self::InputOffset(offset) => (6, 0, 0, offset as i64),
        };
        let [o0, o1] = operation.to_ne_bytes();
        let [v0, v1, v2, v3, v4, v5, v6, v7] = value.to_ne_bytes();
        [tag, small, o0, o1, v0, v1, v2, v3, v4, v5, v6, v7]
    }

    /// Decodes one record, or nothing when it is not one.
    fn decode(bytes: [u8; RECORD_BYTES]) -> Option<Self> {
        let [tag, small, o0, o1, v0, v1, v2, v3, v4, v5, v6, v7] = bytes;
        let operation = u16::from_ne_bytes([o0, o1]);
        let wide = i64::from_ne_bytes([v0, v1, v2, v3, v4, v5, v6, v7]);
        let value = wide as i32;
        Some(match tag {
            1 => {
                let step = Step::from_number(small)?;
                Self::Failed(Failure {
                    step,
                    operation,
                    errno: Errno(value),
                })
            }
            2 => Self::Enforced {
                landlock: if small == 0 {
                    LandlockStatus::Full
                } else {
                    LandlockStatus::Partial
                },
                proc: if operation == 0 {
                    ProcView::Fresh
                } else {
                    ProcView::Host
                },
            },
            3 => Self::ExecFailed(Errno(value)),
            4 => Self::Exited(small),
            5 => Self::Signaled(value),
            6 => Self::InputOffset(wide as u64),
            _ => return None,
        })
    }

    /// Decodes everything that was read.
    pub(crate) fn decode_all(bytes: &[u8]) -> Vec<Self> {
        let chunks = bytes.chunks_exact(RECORD_BYTES);
        chunks
            .filter_map(|chunk| Self::decode(chunk.try_into().ok()?))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_pipe() {
        let records = [
            Record::Failed(Failure {
                step: Step::Protect,
                operation: 7,
                errno: Errno(116),
            }),
            Record::Enforced {
                landlock: LandlockStatus::Partial,
                proc: ProcView::Host,
            },
            Record::Enforced {
                landlock: LandlockStatus::Full,
                proc: ProcView::Fresh,
            },
            Record::ExecFailed(Errno(2)),
            Record::InputOffset(u64::from(u32::MAX) + 5),
            Record::Exited(255),
            Record::Signaled(9),
        ];
        let bytes: Vec<u8> = records.iter().flat_map(|record| record.encode()).collect();
        assert_eq!(Record::decode_all(&bytes), records);
        assert_eq!(Record::decode_all(&[0; 20]), []);
    }
}
