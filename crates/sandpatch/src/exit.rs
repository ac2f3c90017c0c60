//! Exit codes: a documented part of the interface, decided in one place.

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: applied, or the command succeeded.
    Success,
    /// 1: the patch does not apply; of the reference's front doors, any failure.
    DoesNotApply,
    /// 2: the command line is wrong.
    Usage,
    /// 3: the policy refuses a target: outside the roots, protected, or special.
    Refused,
    /// 125: the sandbox could not be set up.
    NoSandbox,
    /// 126: the command could not be executed.
    NotExecutable,
    /// 127: the command was not found.
    NotFound,
    /// The command's own code.
    Command(u8),
    /// 128 + n: signal n ended the command.
    Signal(u8),
}

impl Exit {
    /// Returns the number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::DoesNotApply => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::NoSandbox => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Command(code) => code,
            Self::Signal(number) => 128u8.saturating_add(number),
        }
    }

    /// Returns the code that the reference's front doors use in its place: 0, 1 or 2.
    pub const fn as_reference(self) -> Self {
        match self {
            Self::Refused | Self::NoSandbox => Self::DoesNotApply,
            other => other,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stable() {
        let table = [
            (Exit::Success, 0),
            (Exit::DoesNotApply, 1),
            (Exit::Usage, 2),
            (Exit::Refused, 3),
            (Exit::NoSandbox, 125),
            (Exit::NotExecutable, 126),
            (Exit::NotFound, 127),
            (Exit::Command(42), 42),
            (Exit::Signal(9), 137),
        ];
        for (exit, code) in table {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }

    #[test]
    fn the_reference_knows_three_codes() {
        assert_eq!(Exit::Refused.as_reference().code(), 1);
        assert_eq!(Exit::NoSandbox.as_reference().code(), 1);
        assert_eq!(Exit::Usage.as_reference().code(), 2);
        assert_eq!(Exit::Success.as_reference().code(), 0);
    }
}
