//! FIFOs, sockets and devices are refused without being opened: opening a FIFO
//! waits for the other end, and opening a device may act on it.

use std::os::unix::net::UnixListener;

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{geteuid, mkfifo};
use sandpatch_tests::Place;

use crate::door::{Escape, add, update};

fn regular(place: &Place) {
    place.write("ws/file", "original\n");
}

fn fifo(place: &Place) {
    regular(place);
    mkfifo(&place.ws().join("pipe"), Mode::from_bits_truncate(0o666)).expect("mkfifo");
}

fn socket(place: &Place) {
    regular(place);
    // The socket file stays when its listener is gone.
    UnixListener::bind(place.ws().join("sock")).expect("bind");
}

#[test]
fn update_a_fifo() {
    Escape {
        setup: &fifo,
        bad: &update("pipe"),
        path: "pipe",
        good: &update("file"),
    }
    .is_refused();
}

#[test]
fn add_onto_a_fifo() {
    Escape {
        setup: &fifo,
        bad: &add("pipe"),
        path: "pipe",
        good: &add("new"),
    }
    .is_refused();
}

#[test]
fn update_a_fifo_through_a_link() {
    Escape {
        setup: &|place| {
            fifo(place);
            place.link("ws/link", "pipe");
        },
        bad: &update("link"),
        path: "link",
        good: &update("file"),
    }
    .is_refused();
}

#[test]
fn update_a_socket() {
    Escape {
        setup: &socket,
        bad: &update("sock"),
        path: "sock",
        good: &update("file"),
    }
    .is_refused();
}

#[test]
fn add_onto_a_socket() {
    Escape {
        setup: &socket,
        bad: &add("sock"),
        path: "sock",
        good: &add("new"),
    }
    .is_refused();
}

#[test]
fn update_a_device() {
    Escape {
        setup: &|place| {
            regular(place);
            let path = place.ws().join("null");
            if geteuid().is_root() {
                let mode = Mode::from_bits_truncate(0o666);
                mknod(&path, SFlag::S_IFCHR, mode, makedev(1, 3)).expect("mknod");
            } else {
                // Without root the next best device is a linked one.
                place.link("ws/null", "/dev/null");
            }
        },
        bad: &update("null"),
        path: "null",
        good: &update("file"),
    }
    .is_refused();
}

#[test]
fn add_through_a_link_to_a_device() {
    Escape {
        setup: &|place| place.link("ws/full", "/dev/full"),
        bad: &add("full"),
        path: "full",
        good: &add("new"),
    }
    .is_refused();
}
