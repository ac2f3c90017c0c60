//! Any file takes any update or refuses it, and context alone changes nothing.
#![no_main]

use apply_patch::edit::{Changed, EditError};
use apply_patch::syntax::ast::{Body, ChunkLine};
use apply_patch::{Options, edit, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], &str)| {
    let (file, body) = input;
    let text = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
    let Ok(parsed) = parse(&text) else { return };
    for operation in &parsed.patch.operations {
        let Body::Update { chunks, .. } = &operation.body else {
            continue;
        };
        for options in [Options::safe(), Options::codex()] {
            match edit(file, chunks, &options) {
                Ok(edited) => {
                    let context = |line: &ChunkLine<'_>| matches!(line, ChunkLine::Context(_));
                    let idle = chunks.iter().all(|chunk| {
                        chunk.lines.iter().all(context)
                            && !chunk.no_newline.old
                            && !chunk.no_newline.new
                    });
                    if idle && options == Options::safe() {
                        assert_eq!(edited.changed, Changed::Nothing);
                    }
                }
                Err(EditError::Chunks(failures)) => {
                    for failure in failures {
                        let _ = (failure.message("f"), failure.details());
                    }
                }
                Err(EditError::Encoding(error)) => drop(error.to_string()),
            }
        }
    }
});
