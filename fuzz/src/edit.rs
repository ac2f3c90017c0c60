//! An edit changes the lines that it names, where they stand, and nothing else.
//!
//! The input is the body of an update section, a NUL byte, and the file.

use apply_patch::edit::{Changed, EditError, Edited, Landing};
use apply_patch::options::{FinalNewline, OnAmbiguous};
use apply_patch::syntax::ast::{Body, Chunk, ChunkLine};
use apply_patch::{Options, edit, parse};

use crate::file::{File, equal};

/// Checks one input in both dialects.
pub fn check(input: &[u8]) {
    let Some(end) = input.iter().position(|byte| *byte == 0) else {
        return;
    };
    let (Ok(body), old) = (std::str::from_utf8(&input[..end]), &input[end + 1..]) else {
        return;
    };
    let text = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
    let Ok(parsed) = parse(&text) else { return };
    for operation in &parsed.patch.operations {
        let Body::Update { chunks, .. } = &operation.body else {
            continue;
        };
        for options in [Options::safe(), Options::codex()] {
            check_edit(old, chunks, &options);
        }
    }
}

fn check_edit(old: &[u8], chunks: &[Chunk<'_>], options: &Options) {
    let result = edit(old, chunks, options);
    assert_eq!(edit(old, chunks, options), result, "not deterministic");
    let file = File::decode(old);
    match (&result, &file) {
        (Ok(edited), Some(file)) => {
            assert_eq!(edited.changed == Changed::Nothing, edited.bytes == old);
            check_result(file, chunks, options, edited);
            check_idle(chunks, options, edited);
        }
        (Ok(_), None) => panic!("edited a file that cannot be decoded"),
        (Err(error), _) => {
            let _ = (error.message("f"), error.details("f"));
            if let (EditError::Chunks(_), Some(file), [chunk]) = (error, &file, chunks) {
                check_refusal(file, chunk);
            }
        }
    }
}

/// Context alone changes nothing.
fn check_idle(chunks: &[Chunk<'_>], options: &Options, edited: &Edited) {
    let context = |line: &ChunkLine<'_>| matches!(line, ChunkLine::Context(_));
    let idle = |chunk: &Chunk<'_>| {
        chunk.lines.iter().all(context) && !chunk.no_newline.old && !chunk.no_newline.new
    };
    if options.final_newline == FinalNewline::Keep && chunks.iter().all(idle) {
        assert_eq!(edited.changed, Changed::Nothing);
    }
}

/// What stands in exactly one place is not refused.
fn check_refusal(file: &File, chunk: &Chunk<'_>) {
    let lines = file.lines();
    let pattern = old_lines(without_separators(chunk));
    if is_plain(chunk) && !pattern.is_empty() {
        let exact = apply_patch::locate::MatchKind::Exact;
        let places = (0..lines.len()).filter(|at| stands(exact, &lines, *at, &pattern));
        assert_ne!(places.count(), 1, "refused although it fits");
    }
}

/// A line of the result: its content, and its end where that is sure.
type Line<'a> = (&'a [u8], Option<&'a [u8]>);

fn check_result(file: &File, chunks: &[Chunk<'_>], options: &Options, edited: &Edited) {
    let old = file.lines();
    assert_eq!(edited.landings.len(), chunks.len());
    let mut landings: Vec<&Landing> = edited.landings.iter().collect();
    landings.sort_by_key(|landing| landing.first_line);
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut next = 0;
    let keep = |(content, end)| (content, Some(end).filter(|end: &&[u8]| !end.is_empty()));
    for landing in landings {
        let at = landing.first_line - 1;
        assert!(next <= at && at <= old.len(), "chunks overlap");
        let script = landed_script(&old, &chunks[landing.chunk], landing);
        if options.on_ambiguous == OnAmbiguous::Refuse && chunks.len() == 1 {
            check_unique(&old, &chunks[0], &script, landing);
        }
        lines.extend(old[next..at].iter().copied().map(keep));
        next = at;
        for line in &script {
            match line {
                ChunkLine::Context(_) => lines.push(keep(old[next])),
                ChunkLine::Remove(_) => {}
                ChunkLine::Add(text) => lines.push((text.as_bytes(), None)),
            }
            next += usize::from(!matches!(line, ChunkLine::Add(_)));
        }
    }
    lines.extend(old[next..].iter().copied().map(keep));
    let new = file.like(&edited.bytes).expect("the encoding changed");
    let end = walk(&new.text, &lines, &old, chunks.iter().any(says_no_newline));
    if !lines.is_empty() {
        check_final_newline(&old, chunks, options, lines[lines.len() - 1], end);
    }
}

/// Walks over the result, which must consist of these lines, and returns the last end.
fn walk<'n>(new: &'n [u8], lines: &[Line<'_>], old: &[(&[u8], &[u8])], said: bool) -> &'n [u8] {
    let mut rest = new;
    let mut last: &[u8] = b"";
    for (index, (content, sure)) in lines.iter().enumerate() {
        let is_last = index + 1 == lines.len();
        rest = rest.strip_prefix(*content).expect("a line changed");
        let ends: [&[u8]; 3] = [b"\r\n", b"\n", b"\r"];
        let end = ends
            .into_iter()
            .find(|end| rest.starts_with(end))
            .unwrap_or(b"");
        match sure {
            Some(sure) if is_last && said => assert!(end == *sure || end.is_empty()),
            Some(sure) => assert_eq!(end, *sure, "a line end changed"),
            None if end.is_empty() => assert!(is_last, "two lines became one"),
            None => assert!(
                old.iter().any(|line| line.1 == end) || is_endless(old) && end == b"\n",
                "an end that the file does not have"
            ),
        }
        (last, rest) = rest.split_at(end.len());
    }
    assert!(rest.is_empty(), "something came from nowhere");
    last
}

fn is_endless(old: &[(&[u8], &[u8])]) -> bool {
    old.iter().all(|line| line.1.is_empty())
}

fn check_final_newline(
    old: &[(&[u8], &[u8])],
    chunks: &[Chunk<'_>],
    options: &Options,
    last: Line<'_>,
    end: &[u8],
) {
    let terminated = old.last().is_none_or(|line| !line.1.is_empty());
    let said = chunks.iter().rev().find(|chunk| says_no_newline(chunk));
    let wanted = match said {
        Some(chunk) => !chunk.no_newline.new,
        None if options.final_newline == FinalNewline::Add => true,
        // A line that stays keeps its own end.
        None => terminated || last.1.is_some(),
    };
    assert_eq!(!end.is_empty(), wanted, "the final newline");
}

/// A chunk without any further clue landed where nothing else was possible.
fn check_unique(
    old: &[(&[u8], &[u8])],
    chunk: &Chunk<'_>,
    script: &[ChunkLine<'_>],
    landing: &Landing,
) {
    let pattern = old_lines(script);
    if is_plain(chunk) && !pattern.is_empty() {
        let places = (0..old.len()).filter(|at| stands(landing.kind, old, *at, &pattern));
        assert_eq!(places.count(), 1, "an ambiguous place was taken");
    }
}

/// Tells whether only its lines say where a chunk belongs.
fn is_plain(chunk: &Chunk<'_>) -> bool {
    chunk.headers.is_empty() && chunk.hint.is_none() && !ends_file(chunk)
}

fn ends_file(chunk: &Chunk<'_>) -> bool {
    chunk.end_of_file || says_no_newline(chunk)
}

fn says_no_newline(chunk: &Chunk<'_>) -> bool {
    chunk.no_newline.old || chunk.no_newline.new
}

/// Finds out which form of the chunk stands where it landed.
fn landed_script<'a>(
    old: &[(&[u8], &[u8])],
    chunk: &Chunk<'a>,
    landing: &Landing,
) -> Vec<ChunkLine<'a>> {
    let bare = without_separators(chunk);
    if old_lines(bare).is_empty() {
        return bare.to_vec();
    }
    let whole = ends_file(chunk).then(|| chunk.lines.clone());
    let forms = [whole, Some(bare.to_vec()), without_final_blank(bare)];
    let at = landing.first_line - 1;
    let fits = |form: &Vec<ChunkLine<'a>>| {
        let pattern = old_lines(form);
        let at_end = !ends_file(chunk) || at + pattern.len() == old.len();
        !pattern.is_empty() && at_end && stands(landing.kind, old, at, &pattern)
    };
    let fitting = forms.into_iter().flatten().find(fits);
    fitting.expect("landed where its lines do not stand")
}

fn stands(
    kind: apply_patch::locate::MatchKind,
    lines: &[(&[u8], &[u8])],
    at: usize,
    pattern: &[&[u8]],
) -> bool {
    let there = lines.get(at..at + pattern.len());
    there.is_some_and(|there| {
        let mut pairs = there.iter().zip(pattern);
        pairs.all(|(line, wanted)| equal(kind, line.0, wanted))
    })
}

fn without_separators<'c, 'a>(chunk: &'c Chunk<'a>) -> &'c [ChunkLine<'a>] {
    &chunk.lines[..chunk.lines.len() - chunk.blank_tail_lines]
}

fn old_lines<'a>(script: &[ChunkLine<'a>]) -> Vec<&'a [u8]> {
    let old = script.iter().filter_map(|line| match line {
        ChunkLine::Context(text) | ChunkLine::Remove(text) => Some(text.as_bytes()),
        ChunkLine::Add(_) => None,
    });
    old.collect()
}

/// A blank line that ends the old lines may be missing in the file. It is then
/// also left out of the new lines if they end with one, and comes if they do not.
fn without_final_blank<'a>(script: &[ChunkLine<'a>]) -> Option<Vec<ChunkLine<'a>>> {
    let is_old = |line: &ChunkLine<'_>| !matches!(line, ChunkLine::Add(_));
    let last = script.iter().rposition(is_old)?;
    let mut script = script.to_vec();
    match script[last] {
        ChunkLine::Context("") if last + 1 < script.len() => script[last] = ChunkLine::Add(""),
        ChunkLine::Context("") | ChunkLine::Remove("") => drop(script.remove(last)),
        _ => return None,
    }
    let additions = script.len() > last;
    if additions && script.last() == Some(&ChunkLine::Add("")) {
        script.pop();
    }
    Some(script)
}
