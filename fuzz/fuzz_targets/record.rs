//! Any bytes are an undo record or none; see `sandpatch_fuzz::record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sandpatch_fuzz::record::check(input));
