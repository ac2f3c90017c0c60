//! The hunks between two contents.
//!
//! The cost is bounded: few changes are found in linear time however long the
//! file is, and where everything differs a coarser diff is as good.

use std::ops::Range;
use std::time::{Duration, Instant};

use memchr::memchr_iter;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

/// How many unchanged lines stand around a change.
const CONTEXT_LINES: usize = 3;

/// After this time the rest is shown as replaced; the diff is as right, only longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes the hunks that turn one content into the other.
pub(super) fn write(old: &[u8], new: &[u8], out: &mut Vec<u8>) {
    let (old, new) = (lines(old), lines(new));
    let deadline = Instant::now().checked_add(PATIENCE);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
    for group in group_diff_ops(ops, CONTEXT_LINES) {
        hunk(&group, &old, &new, out);
    }
}

/// Splits after each line feed; a carriage return is content to git.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut start = 0;
    let mut lines: Vec<&[u8]> = memchr_iter(b'\n', bytes)
        .map(|end| {
            let line = &bytes[start..=end];
            start = end + 1;
            line
        })
        .collect();
    if start < bytes.len() {
        lines.push(&bytes[start..]);
    }
    lines
}

fn hunk(group: &[DiffOp], old: &[&[u8]], new: &[&[u8]], out: &mut Vec<u8>) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return;
    };
    let before = first.old_range().start..last.old_range().end;
    let after = first.new_range().start..last.new_range().end;
    out.extend_from_slice(format!("@@ -{} +{} @@\n", span(&before), span(&after)).as_bytes());
    for op in group {
        match op {
            DiffOp::Equal { .. } => body(b' ', &old[op.old_range()], out),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                body(b'-', &old[op.old_range()], out);
                body(b'+', &new[op.new_range()], out);
            }
        }
    }
}

/// Spells a range: no count for one line, and the line before where there is none.
fn span(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn body(mark: u8, lines: &[&[u8]], out: &mut Vec<u8>) {
    for line in lines {
        out.push(mark);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        let mut out = Vec::new();
        write(old.as_bytes(), new.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_missing_final_newline_is_said_on_the_side_that_lacks_it() {
        assert_eq!(
            diff("a\nb", "a\nb\n"),
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
        );
    }

    #[test]
    fn changes_far_apart_are_hunks_of_their_own() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n2\n", "\ntwo\n").replace("\n19\n", "\n");
        assert_eq!(
            diff(&old, &new),
            "@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n\
             @@ -16,5 +16,4 @@\n 16\n 17\n 18\n-19\n 20\n"
        );
    }

    #[test]
    fn long_files_are_compared_in_time() {
        const LINES: usize = 200_000;
        let old: String = (0..LINES).map(|n| format!("{}\n", n % 97)).collect();
        let mut few: Vec<&str> = old.split_inclusive('\n').collect();
        for line in [5, LINES / 2, LINES - 5] {
            few[line] = "changed\n";
        }
        let begun = Instant::now();
        assert_eq!(diff(&old, &few.concat()).matches("@@ -").count(), 3);
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
        let other: String = (0..LINES).map(|n| format!("{}\n", n * 31 % 89)).collect();
        let all = diff(&old, &other);
        assert!(all.lines().count() > LINES);
        assert!(begun.elapsed() < 5 * PATIENCE, "{:?}", begun.elapsed());
    }
}
