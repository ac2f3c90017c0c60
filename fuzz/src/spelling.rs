//! Writes a parsed patch down in its plainest form, to be parsed again.

use apply_patch::syntax::ast::{Body, Chunk, ChunkLine, Operation, Patch};

/// Two carriage returns are dropped from each line of a patch. With two
/// behind every line, those that belong to the content stay.
const LINE_END: &str = "\r\r\n";

const NO_NEWLINE: &str = "\\ No newline at end of file";

/// Writes a patch.
pub fn spell(patch: &Patch<'_>) -> String {
    let mut lines = vec!["*** Begin Patch".to_owned()];
    lines.extend(
        patch
            .environment_id
            .map(|id| format!("*** Environment ID: {id}")),
    );
    for operation in &patch.operations {
        spell_operation(operation, &mut lines);
    }
    lines.push("*** End Patch".to_owned());
    lines.join(LINE_END)
}

fn spell_operation(operation: &Operation<'_>, out: &mut Vec<String>) {
    let path = operation.path;
    match &operation.body {
        Body::Add { lines } => {
            out.push(format!("*** Add File: {path}"));
            out.extend(lines.iter().map(|line| format!("+{line}")));
        }
        Body::Delete => out.push(format!("*** Delete File: {path}")),
        Body::Update { move_to, chunks } => {
            out.push(format!("*** Update File: {path}"));
            out.extend(move_to.map(|to| format!("*** Move to: {}", to.path)));
            for chunk in chunks {
                spell_chunk(chunk, out);
            }
        }
    }
}

fn spell_chunk(chunk: &Chunk<'_>, out: &mut Vec<String>) {
    match chunk.hint {
        Some(hint) => out.push(format!("@@ {}", hint.raw)),
        None if chunk.headers.is_empty() => out.push("@@".to_owned()),
        None => {}
    }
    out.extend(chunk.headers.iter().map(|header| format!("@@ {header}")));
    let is_old = |line: &ChunkLine<'_>| !matches!(line, ChunkLine::Add(_));
    let last_old = chunk.lines.iter().rposition(is_old);
    let tail = chunk.lines.len() - chunk.blank_tail_lines;
    for (index, line) in chunk.lines.iter().enumerate() {
        out.push(match line {
            ChunkLine::Context(_) if index >= tail => String::new(),
            ChunkLine::Context(text) => format!(" {text}"),
            ChunkLine::Remove(text) => format!("-{text}"),
            ChunkLine::Add(text) => format!("+{text}"),
        });
        if chunk.no_newline.old && last_old == Some(index) {
            out.push(NO_NEWLINE.to_owned());
        }
    }
    let said = chunk.no_newline.old && matches!(chunk.lines.last(), Some(ChunkLine::Context(_)));
    if chunk.no_newline.new && !said {
        out.push(NO_NEWLINE.to_owned());
    }
    if chunk.end_of_file {
        out.push("*** End of File".to_owned());
    }
}
