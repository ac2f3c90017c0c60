//! Any file takes any update or refuses it; see `sandpatch_fuzz::edit`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sandpatch_fuzz::edit::check(input));
