//! Loading a folder: which files are read, in which order, and within which bounds.

use std::os::unix::{fs::symlink, net::UnixListener};

use super::*;

const POD: &str = "apiVersion: v1\nkind: Pod\n";

/// A folder with `files`, each a path and its text.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// The files of the documents, below the folder.
fn files(folder: &Path) -> Vec<String> {
    load(folder, &Bounds::SERVER)
        .complete()
        .unwrap()
        .iter()
        .map(|document| below(folder, &document.location.file))
        .collect()
}

/// The problems, with paths below the folder.
fn problems(folder: &Path) -> Vec<String> {
    load(folder, &Bounds::SERVER)
        .complete()
        .unwrap_err()
        .problems
        .as_slice()
        .iter()
        .map(|problem| below(folder, &problem.to_string()))
        .collect()
}

fn below(folder: &Path, text: &str) -> String {
    text.replace(&format!("{}/", folder.display()), "")
}

#[test]
fn manifests_are_found_in_the_order_of_their_names() {
    let dir = folder(&[
        ("b.yml", POD),
        ("a.yaml", POD),
        ("c/z.json", r#"{"apiVersion": "v1", "kind": "Pod"}"#),
        ("c/d/y.yaml", POD),
        ("README.md", "no: [manifest"),
        ("notes.yaml.bak", "no: [manifest"),
        (".hidden.yaml", "no: [manifest"),
        (".git/config.yaml", "no: [manifest"),
    ]);
    assert_eq!(files(dir.path()), ["a.yaml", "b.yml", "c/d/y.yaml", "c/z.json"]);
    assert_eq!(files(folder(&[]).path()), [""; 0]);
    // A file of any name, where it is asked for.
    let file = dir.path().join("pod.txt");
    fs::write(&file, POD).unwrap();
    assert_eq!(
        load(&file, &Bounds::SERVER).complete().unwrap()[0].location.to_string(),
        format!("{}, document 1, line 1", file.display())
    );
}

#[test]
fn links_are_followed_once_and_circles_end() {
    let dir = folder(&[("real/a.yaml", POD), ("b.yaml", POD)]);
    symlink(dir.path(), dir.path().join("real/up")).unwrap();
    symlink(dir.path().join("real"), dir.path().join("again")).unwrap();
    symlink(dir.path().join("b.yaml"), dir.path().join("c.yaml")).unwrap();
    assert_eq!(files(dir.path()), ["again/a.yaml", "b.yaml"]);
}

#[test]
fn a_mounted_config_map_is_read_once() {
    let dir = folder(&[("..2026_01_01/a.yaml", POD)]);
    symlink("..2026_01_01", dir.path().join("..data")).unwrap();
    symlink("..data/a.yaml", dir.path().join("a.yaml")).unwrap();
    assert_eq!(files(dir.path()), ["a.yaml"]);
}

#[test]
fn one_broken_file_is_enough_and_all_of_them_are_reported() {
    let dir = folder(&[("a.yaml", POD), ("b.yaml", "a: [\n"), ("c/d.yaml", &format!("{POD}---\n{POD}kind: Pod\n"))]);
    fs::write(dir.path().join("e.yaml"), b"apiVersion: v1\nkind: Pod\n---\na: \xff\n").unwrap();
    symlink("nowhere", dir.path().join("f.yaml")).unwrap();
    let _socket = UnixListener::bind(dir.path().join("g.yaml")).unwrap();
    assert_eq!(
        problems(dir.path()),
        [
            "b.yaml, document 1, line 1: unclosed bracket '['",
            "c/d.yaml, document 2, line 6: duplicate key \"kind\": the last one counts",
            "e.yaml, document 2, line 4: expected text in UTF-8 or UTF-16",
            "f.yaml: cannot be read: No such file or directory (os error 2)",
            "g.yaml: expected a regular file",
        ]
    );
}

#[test]
fn files_of_windows_are_read_like_others() {
    let text = "apiVersion: v1\r\nkind: Pod\r\n---\r\napiVersion: v1\r\nkind: ConfigMap\r\n";
    let marked = format!("\u{feff}{text}");
    let dir = folder(&[("crlf.yaml", text), ("mark.yaml", &marked)]);
    let wide: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(dir.path().join("wide.yaml"), wide).unwrap();
    let found: Vec<String> = load(dir.path(), &Bounds::SERVER)
        .complete()
        .unwrap()
        .iter()
        .map(|document| format!("{} {}", below(dir.path(), &document.location.to_string()), document.kind))
        .collect();
    let of = |file: &str| {
        [format!("{file}.yaml, document 1, line 1 Pod"), format!("{file}.yaml, document 2, line 4 ConfigMap")]
    };
    assert_eq!(found, ["crlf", "mark", "wide"].map(of).concat());
}

#[test]
fn what_is_no_folder_is_an_error() {
    let dir = folder(&[]);
    let missing = dir.path().join("missing");
    assert_eq!(
        load(&missing, &Bounds::SERVER).complete().unwrap_err().to_string(),
        format!(
            "cannot load the manifests: {}: cannot be read: No such file or directory (os error 2)",
            missing.display()
        )
    );
    let socket = dir.path().join("socket");
    let _socket = UnixListener::bind(&socket).unwrap();
    assert_eq!(
        load(&socket, &Bounds::SERVER).complete().unwrap_err().to_string(),
        format!("cannot load the manifests: {}: expected a folder or a regular file", socket.display())
    );
}

#[test]
fn sizes_and_numbers_are_bounded() {
    let dir = folder(&[]);
    let large = dir.path().join("large.yaml");
    File::create(&large).unwrap().set_len(Bounds::SERVER.file_bytes as u64 + 1).unwrap();
    assert_eq!(problems(dir.path()), ["large.yaml: expected at most 4194304 bytes"]);

    let dir = folder(&[("a.yaml", POD)]);
    let read = |left| read(&dir.path().join("a.yaml"), &Bounds::SERVER, left);
    assert_eq!((read(POD.len()), read(POD.len() - 1)), (Ok(Some(POD.as_bytes().to_vec())), Ok(None)));

    let deepest = "d/".repeat(MAX_DEPTH - 1);
    let dir = folder(&[(&format!("{deepest}a.yaml"), POD)]);
    assert_eq!(files(dir.path()), [format!("{deepest}a.yaml")]);
    fs::create_dir(dir.path().join(format!("{deepest}d"))).unwrap();
    assert_eq!(problems(dir.path()), [format!("{deepest}d: expected at most 16 nested folders")]);

    let dir = folder(&[]);
    // With the folder itself one too many.
    for number in 0..Bounds::SERVER.files {
        fs::write(dir.path().join(format!("{number:04}.yaml")), "").unwrap();
    }
    assert_eq!(problems(dir.path()), ["4095.yaml: expected at most 4096 manifests and folders"]);
}

/// Files of the kernel that say that they are empty: the log, which waits for more when it is read, is one of them.
#[cfg(target_os = "linux")]
#[test]
fn a_link_to_a_file_of_the_kernel_is_not_waited_for() {
    let dir = folder(&[("a.yaml", POD)]);
    symlink("/proc/version", dir.path().join("b.yaml")).unwrap();
    if File::open("/proc/kmsg").is_ok() {
        symlink("/proc/kmsg", dir.path().join("c.yaml")).unwrap();
    }
    assert_eq!(files(dir.path()), ["a.yaml"]);
}
