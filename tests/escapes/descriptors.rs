//! What a command can reach through the descriptors that it inherits: nothing
//! but what they were opened for.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use sandpatch_tests::{Identity, Place};

/// Runs a script with a standard input of our choosing.
fn run(place: &Place, script: &str, stdin: Stdio) -> Output {
    let mut command: Command = place.command(place.exe());
    command.args(["run", "--", "sh", "-c", script]);
    command.stdin(stdin).output().unwrap()
}

fn mode(path: PathBuf) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn each(test: impl Fn(&Place, &str)) {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("out/secret", "original\n");
        place.write("ws/.git/config", "config\n");
        test(&place, identity.label());
    }
}

fn open(path: PathBuf) -> Stdio {
    Stdio::from(File::open(path).unwrap())
}

#[test]
fn a_file_for_reading_keeps_its_mode_and_bytes() {
    each(|place, who| {
        let before = mode(place.out().join("secret"));
        let script = "chmod 777 /proc/self/fd/0; echo hacked > /proc/self/fd/0; \
            touch -d @1 /proc/self/fd/0; cat";
        let output = run(place, script, open(place.out().join("secret")));
        assert_eq!(
            output.stdout, b"original\n",
            "{who}: control: it can be read"
        );
        assert_eq!(mode(place.out().join("secret")), before, "{who}");
        assert_eq!(
            fs::read(place.out().join("secret")).unwrap(),
            b"original\n",
            "{who}"
        );
    });
}

#[test]
fn a_directory_leads_nowhere_that_can_be_changed() {
    each(|place, who| {
        let before = mode(place.out().join("secret"));
        let script = "chmod 777 /proc/self/fd/0/out/secret; \
            echo hacked > /proc/self/fd/0/ws/.git/config; echo hacked > /proc/self/fd/0/out/new; \
            cat /proc/self/fd/0/out/secret; echo x > control";
        let top = place.top().to_path_buf();
        let output = run(place, script, open(top.clone()));
        assert_eq!(
            output.stdout, b"original\n",
            "{who}: control: it can be read"
        );
        assert!(place.ws().join("control").exists(), "{who}: control");
        assert_eq!(mode(top.join("out/secret")), before, "{who}");
        assert!(!top.join("out/new").exists(), "{who}");
        assert_eq!(
            fs::read(top.join("ws/.git/config")).unwrap(),
            b"config\n",
            "{who}"
        );
    });
}

#[test]
fn a_protected_file_as_input_stays_protected() {
    each(|place, who| {
        let config = place.ws().join(".git/config");
        let script = "echo hacked > /proc/self/fd/0; echo hacked > /dev/stdin; cat";
        let output = run(place, script, open(config.clone()));
        assert_eq!(output.stdout, b"config\n", "{who}: control: it can be read");
        assert_eq!(fs::read(config).unwrap(), b"config\n", "{who}");
    });
}

#[test]
fn input_is_read_from_and_left_where_a_shell_expects() {
    each(|place, who| {
        place.write("ws/lines", "one\ntwo\nthree\n");
        let script = format!(
            "{{ read -r a; {} run -- sh -c 'read -r b; echo \"inside $b\"'; read -r c; \
             echo \"$a $c\"; }} < lines",
            place.exe().display()
        );
        let mut command: Command = place.command("sh".as_ref());
        let output = command.args(["-c", &script]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, "inside two\none three\n", "{who}");
    });
}

#[test]
fn a_file_that_a_private_tmp_hides_can_still_be_input() {
    each(|place, who| {
        let file = tempfile::Builder::new().tempfile_in("/tmp").unwrap();
        fs::write(file.path(), "hidden\n").unwrap();
        let output = run(place, "cat", Stdio::from(file.reopen().unwrap()));
        // Opened for reading and writing: it is the command's.
        assert_eq!(output.stdout, b"hidden\n", "{who}");
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        let output = run(place, "cat", open(file.path().to_path_buf()));
        assert_eq!(output.stdout, b"hidden\n", "{who}");
    });
}

#[test]
fn a_datagram_socket_is_not_handed_on() {
    each(|place, who| {
        let (mine, theirs) = UnixDatagram::pair().unwrap();
        drop(mine);
        let output = run(place, "echo started", Stdio::from(OwnedFd::from(theirs)));
        assert_eq!(output.status.code(), Some(125), "{who}");
        assert!(output.stdout.is_empty(), "{who}");
    });
}

#[test]
fn only_a_connected_stream_is_handed_on() {
    each(|place, who| {
        let listener = UnixListener::bind(place.top().join("socket")).unwrap();
        let output = run(place, "echo started", Stdio::from(OwnedFd::from(listener)));
        assert_eq!(output.status.code(), Some(125), "{who}");
        let (mine, theirs) = UnixStream::pair().unwrap();
        drop(mine);
        let output = run(
            place,
            "cat; echo started",
            Stdio::from(OwnedFd::from(theirs)),
        );
        assert_eq!(output.stdout, b"started\n", "{who}: control");
    });
}

#[test]
fn a_pair_of_raw_unix_sockets_reaches_no_service() {
    each(|place, who| {
        let address = place.top().join("service");
        let service = UnixDatagram::bind(&address).unwrap();
        service.set_nonblocking(true).unwrap();
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&address, fs::Permissions::from_mode(0o777)).unwrap();
        let code = format!(
            "import socket\nfor kind in (1, 2, 3, 5):\n    try: \
             socket.socketpair(1, kind)[0].sendto(b'hello', {:?})\n    except OSError: pass\n\
             a, b = socket.socketpair(1, 1); a.send(b'x'); print(b.recv(1).decode())",
            address.display().to_string()
        );
        let mut command: Command = place.command(place.exe());
        command.args(["run", "--", "/usr/bin/python3", "-c", &code]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(
            output.stdout, b"x\n",
            "{who}: control: a pair of streams works"
        );
        assert!(
            service.recv(&mut [0; 16]).is_err(),
            "{who}: a message arrived"
        );
    });
}

#[test]
fn a_root_inside_a_root_keeps_its_protected_names() {
    each(|place, who| {
        place.write("ws/sub/.git/config", "config\n");
        let mut command: Command = place.command(place.exe());
        let script = "mv sub sub2 && mkdir -p sub/.git && echo hacked > sub/.git/config; \
            echo x > sub/control";
        command.args(["run", "--writable", "sub", "--", "sh", "-c", script]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{who}: {output:?}");
        assert!(place.ws().join("sub/control").exists(), "{who}: control");
        let config = fs::read(place.ws().join("sub/.git/config")).unwrap();
        assert_eq!(config, b"config\n", "{who}");
    });
}
