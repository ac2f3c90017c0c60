//! Any patch on any tree is planned or refused; see `sandpatch_fuzz::plan`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sandpatch_fuzz::plan::check(input));
