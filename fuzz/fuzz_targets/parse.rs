//! Any text is a patch or an error, never a panic; see `sandpatch_fuzz::parse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| sandpatch_fuzz::parse::check(text));
