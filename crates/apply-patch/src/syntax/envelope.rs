//! Finds the patch in the text that arrived.
//!
//! Programs that write patches like to wrap them: in a Markdown fence, in a
//! shell heredoc, behind a byte order mark. A wrapper is taken off only when
//! it encloses exactly one patch, so that nothing that was meant is lost.

use super::error::{Arrived, Hint, HunkFault, ParseError, PatchFault};
use super::marker::{BEGIN, END};

/// Something that stood around a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapper<'a> {
    /// A byte order mark before the first line.
    ByteOrderMark,
    /// A Markdown fence, and any text outside it.
    Fence {
        /// The text after the opening fence.
        info: &'a str,
    },
    /// A shell heredoc.
    Heredoc {
        /// The command that would have read it, when one is named.
        command: Option<&'a str>,
        /// The tag without quotes.
        tag: &'a str,
    },
}

/// More wrappers than this around one another are not an accident.
const DEEPEST: usize = 8;

const COMMANDS: [&str; 3] = ["apply_patch", "applypatch", "apply-patch"];

/// A text whose first and last lines are the markers.
#[derive(Debug)]
pub(super) struct Envelope<'a> {
    body: &'a str,
    tabs: Tabs,
    pub(super) wrappers: Vec<Wrapper<'a>>,
}

/// What becomes of leading tabs; the shell drops them below `<<-`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tabs {
    Keep,
    Drop,
}

/// Takes the wrappers off and checks both ends (R10-R12).
pub(super) fn open(text: &str) -> Result<Envelope<'_>, ParseError> {
    let mut envelope = Envelope {
        body: text.trim(),
        tabs: Tabs::Keep,
        wrappers: Vec::new(),
    };
    for _ in 0..DEEPEST {
        if envelope.fault().is_none() || !envelope.unwrap_once() {
            break;
        }
    }
    match envelope.fault() {
        None => Ok(envelope),
        Some(fault) => Err(ParseError::Patch {
            fault,
            hint: diagnose(envelope.body, fault),
            arrived: envelope.arrived(),
        }),
    }
}

impl<'a> Envelope<'a> {
    /// Returns the lines of the patch, without their LF.
    pub(super) fn lines(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let tabs = self.tabs;
        self.body.split('\n').map(move |line| match tabs {
            Tabs::Keep => line,
            Tabs::Drop => line.trim_start_matches('\t'),
        })
    }

    /// Adds to an error of the machine what only the whole text can tell.
    pub(super) fn explain(&self, error: ParseError) -> ParseError {
        match error {
            ParseError::Patch {
                fault: fault @ PatchFault::LastLine,
                ..
            } => ParseError::Patch {
                fault,
                hint: diagnose(self.body, fault),
                arrived: self.arrived(),
            },
            ParseError::Hunk {
                line,
                fault: HunkFault::NotAHeader { line: text },
                hint: None,
            } if starts_unified_diff(&text) => {
                let fault = HunkFault::NotAHeader { line: text };
                ParseError::Hunk {
                    line,
                    fault,
                    hint: Some(Hint::UnifiedDiff),
                }
            }
            other => other,
        }
    }

    fn fault(&self) -> Option<PatchFault> {
        if self.body.is_empty() {
            return Some(PatchFault::LastLine);
        }
        if first_line(self.body).trim() != BEGIN {
            return Some(PatchFault::FirstLine);
        }
        (last_line(self.body).trim() != END).then_some(PatchFault::LastLine)
    }

    fn arrived(&self) -> Arrived {
        Arrived::of(
            first_line(self.body).trim_end(),
            last_line(self.body).trim_end(),
        )
    }

    fn unwrap_once(&mut self) -> bool {
        let found = self
            .body
            .strip_prefix('\u{feff}')
            .map(|rest| (rest, Wrapper::ByteOrderMark))
            .or_else(|| self.heredoc())
            .or_else(|| fence(self.body));
        let Some((inner, wrapper)) = found else {
            return false;
        };
        self.body = inner.trim();
        self.wrappers.push(wrapper);
        true
    }

    fn heredoc(&mut self) -> Option<(&'a str, Wrapper<'a>)> {
        let (first, rest) = self.body.split_once('\n')?;
        let (command, operator) = heredoc_command(first.trim())?;
        let (tabs, word) = match operator.strip_prefix('-') {
            Some(word) => (Tabs::Drop, word),
            None => (Tabs::Keep, operator),
        };
        let tag = heredoc_tag(word.trim_start())?;
        let (inner, last) = rest.rsplit_once('\n')?;
        // The reference accepts whatever ends with its own tag (R12).
        let closes = last.trim() == tag || (tag == "EOF" && last.ends_with(tag));
        if !closes {
            return None;
        }
        if tabs == Tabs::Drop {
            self.tabs = tabs;
        }
        Some((inner, Wrapper::Heredoc { command, tag }))
    }
}

/// Splits `[apply_patch] <<WORD` into the command and what follows `<<`.
fn heredoc_command(line: &str) -> Option<(Option<&str>, &str)> {
    if let Some(operator) = line.strip_prefix("<<") {
        return Some((None, operator));
    }
    let (command, operator) = line.split_once("<<")?;
    let command = command.trim_end();
    COMMANDS
        .contains(&command)
        .then_some((Some(command), operator))
}

/// Reads a heredoc word that is one plain or quoted tag.
fn heredoc_tag(word: &str) -> Option<&str> {
    let quoted = |quote| word.strip_prefix(quote)?.strip_suffix(quote);
    let tag = quoted('\'').or_else(|| quoted('"')).unwrap_or(word);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '!');
    (!tag.is_empty() && tag.chars().all(plain)).then_some(tag)
}

/// Takes the inside of a fence that starts before any marker line and ends
/// after all of them.
fn fence(body: &str) -> Option<(&str, Wrapper<'_>)> {
    let mut rest = body;
    let (fence, info, inside) = loop {
        let (line, after) = rest.split_once('\n')?;
        if let Some((fence, info)) = opening_fence(line) {
            break (fence, info, after);
        }
        if is_marker(line) {
            return None;
        }
        rest = after;
    };
    let mut inner = inside;
    loop {
        let (before, line) = inner.rsplit_once('\n')?;
        if closes_fence(line, fence) {
            return Some((before, Wrapper::Fence { info }));
        }
        if is_marker(line) {
            return None;
        }
        inner = before;
    }
}

fn opening_fence(line: &str) -> Option<(&str, &str)> {
    ['`', '~'].into_iter().find_map(|mark| {
        let info = line.trim_start_matches(mark);
        let fence = line.get(..line.len() - info.len())?;
        (fence.len() >= 3).then_some((fence, info.trim()))
    })
}

fn closes_fence(line: &str, fence: &str) -> bool {
    opening_fence(line).is_some_and(|(closing, info)| info.is_empty() && closing.starts_with(fence))
}

fn is_marker(line: &str) -> bool {
    line.trim_start().starts_with("*** ")
}

/// Tells what a text that is no patch looks like.
fn diagnose(body: &str, fault: PatchFault) -> Option<Hint> {
    if body.is_empty() {
        return Some(Hint::Empty);
    }
    if fault == PatchFault::LastLine {
        return Some(text_after_end(body).unwrap_or(Hint::Truncated));
    }
    let first = first_line(body);
    if first.starts_with(['{', '[', '"']) && body.contains(BEGIN) {
        return Some(Hint::JsonWrapped);
    }
    if body
        .lines()
        .any(|line| line.starts_with("```") || line.starts_with("~~~"))
    {
        return Some(Hint::Fence);
    }
    if heredoc_command(first.trim()).is_some() {
        return Some(Hint::Heredoc);
    }
    if let Some(index) = body.lines().position(|line| line.trim() == BEGIN) {
        return Some(Hint::TextBefore { line: index + 1 });
    }
    body.lines()
        .take(50)
        .any(starts_unified_diff)
        .then_some(Hint::UnifiedDiff)
}

fn text_after_end(body: &str) -> Option<Hint> {
    let mut lines = body.lines().enumerate();
    lines.find(|(_, line)| line.trim() == END)?;
    let (index, _) = lines.find(|(_, line)| !matches!(line.trim(), "" | END))?;
    Some(Hint::TextAfter { line: index + 1 })
}

fn starts_unified_diff(line: &str) -> bool {
    ["diff --git ", "--- ", "+++ ", "@@ -"]
        .iter()
        .any(|start| line.starts_with(start))
}

fn first_line(body: &str) -> &str {
    body.split_once('\n').map_or(body, |(first, _)| first)
}

fn last_line(body: &str) -> &str {
    body.rsplit_once('\n').map_or(body, |(_, last)| last)
}
