//! Any text is a patch or an error, never a panic.
#![no_main]

use apply_patch::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = parse(text) {
        // Messages quote the input, so they are part of what must not panic.
        let _ = (error.to_string(), error.details());
    }
});
