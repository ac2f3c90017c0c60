//! How data travels into the sandbox: by descriptor, never by a file.
//!
//! A pipe holds a little whole, so nobody has to stand by and feed it. A
//! larger one lies in sealed memory; only there does a limit on the size of
//! files (`RLIMIT_FSIZE`) reach it.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::pipe::PipeFlags;

/// What an empty pipe takes without anybody reading, on every host (`pipe(7)`).
const PIPE_BYTES: usize = 64 * 1024;

/// Returns a descriptor from which all of some bytes can be read, once.
pub fn carry(bytes: &[u8]) -> io::Result<OwnedFd> {
    match bytes.len() {
        0..=PIPE_BYTES => piped(bytes),
        _ => sealed(bytes),
    }
}

fn piped(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    let (reader, writer) = rustix::pipe::pipe_with(flags)?;
    let written = rustix::io::write(&writer, bytes);
    match written {
        Ok(size) if size == bytes.len() => {}
        // A user at the limit of all pipe buffers gets short pipes (pipe(7)).
        Ok(_) | Err(rustix::io::Errno::AGAIN) => return sealed(bytes),
        Err(error) => return Err(error.into()),
    }
    // The only writer is closed on the way out, so reading never has to wait.
    Ok(reader)
}

fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("handed-on", flags)?);
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn every_size_arrives_whole() {
        for size in [0, 1, 4095, PIPE_BYTES, PIPE_BYTES + 1, 3 << 20] {
            let patch: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let mut arrived = Vec::new();
            File::from(carry(&patch).unwrap())
                .read_to_end(&mut arrived)
                .unwrap();
            assert!(arrived == patch, "{size} bytes");
        }
    }

    #[test]
    fn what_is_large_cannot_be_changed_on_the_way() {
        let mut file = File::from(carry(&vec![b'x'; PIPE_BYTES + 1]).unwrap());
        assert!(file.write_all(b"y").is_err());
        assert!(file.set_len(0).is_err());
    }
}
