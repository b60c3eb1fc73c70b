//! Nothing leads out of the directory, and nothing in it makes a tool wait.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::builtin::scene::{SECRET, Scene};

/// Calls every file tool with this path.
fn calls(path: &str) -> Vec<(&'static str, Vec<(&'static str, &str)>)> {
    vec![
        ("read_file", vec![("path", path)]),
        ("list_files", vec![("path", path)]),
        ("search_files", vec![("pattern", "."), ("path", path)]),
        ("write_file", vec![("path", path), ("content", "owned")]),
        (
            "edit_file",
            vec![
                ("path", path),
                ("old_text", "outside"),
                ("new_text", "owned"),
            ],
        ),
    ]
}

#[tokio::test]
async fn paths_that_lead_out() {
    let scene = Scene::of(&[("dir/file", "inside"), ("a", "inside")]);
    let out = scene.outside();
    let out = out.to_str().unwrap();
    let secret = format!("{out}/secret");
    scene.link(&secret, "absolute");
    scene.link("../out/secret", "relative");
    scene.link("dir/../../out/secret", "winding");
    scene.link(out, "folder");
    scene.link("../../out", "dir/near");
    scene.link("folder/secret", "twice");
    scene.link("/", "root");
    scene.link("/proc/self/cwd", "magic");
    scene.link(format!("{out}/new"), "new");
    let sideways = format!(
        "{}-beside",
        scene.path("").to_str().unwrap().trim_end_matches('/')
    );
    for path in [
        "..",
        "../out/secret",
        "dir/../../out/secret",
        "./../out/secret",
        "dir/../..",
        "../in/../out/secret",
        &secret,
        "/etc/passwd",
        "/",
        "//etc/passwd",
        "/proc/self/environ",
        "/dev/zero",
        &sideways,
        "absolute",
        "relative",
        "winding",
        "folder",
        "folder/secret",
        "folder/new",
        "dir/near/secret",
        "dir/near/../out/secret",
        "twice",
        "root/etc/passwd",
        "magic/Cargo.toml",
        "new",
    ] {
        for (tool, arguments) in calls(path) {
            let found = scene.call(tool, &arguments).await;
            assert!(found.starts_with("error: "), "{tool} {path}: {found}");
            assert!(!found.contains(SECRET), "{tool} {path}: {found}");
            assert!(
                found.contains("is outside the directory"),
                "{tool} {path}: {found}"
            );
        }
    }
    // Nor by listing and searching.
    scene
        .check(
            "search_files",
            &[("pattern", "secret|inside")],
            "a:1: inside\ndir/file:1: inside\n",
        )
        .await;
    assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
    assert_eq!(fs::read_dir(out).unwrap().count(), 1);
}

/// Paths that leave and return, and links that stay inside.
#[tokio::test]
async fn paths_that_stay_inside() {
    let scene = Scene::of(&[("dir/file", "inside\n")]);
    scene.link("dir/file", "link");
    scene.link("link", "dir/../second");
    scene.link("../dir", "dir/self");
    scene.link("round", "round");
    let absolute = scene.path("dir/file");
    for path in [
        "link",
        "second",
        "dir/self/self/file",
        "dir/../dir/./file",
        absolute.to_str().unwrap(),
    ] {
        scene
            .check("read_file", &[("path", path)], "1: inside\n")
            .await;
    }
    for (tool, arguments) in calls("round") {
        scene
            .check_parts(
                tool,
                &arguments,
                &["error: `round`: too many levels of symbolic links"],
            )
            .await;
    }
    // Links are not followed while listing, so there are no endless loops.
    scene
        .check(
            "search_files",
            &[("pattern", "inside")],
            "dir/file:1: inside\n",
        )
        .await;
}

/// Pipes, sockets and devices: no process writes to the pipe, and nothing waits for one.
#[tokio::test]
async fn special_files_are_rejected() {
    let scene = Scene::of(&[("file", "word\n")]);
    let pipe = scene.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let _listener = UnixListener::bind(scene.path("socket")).unwrap();
    for path in ["pipe", "socket"] {
        for (tool, arguments) in calls(path) {
            let called =
                tokio::time::timeout(Duration::from_secs(20), scene.call(tool, &arguments));
            let found = called.await.expect("it does not wait");
            let expected = match tool {
                "list_files" => {
                    format!("error: `{path}` is not a directory (0 bytes)")
                }
                _ => format!("error: `{path}` is a pipe, a socket or a device, not a file"),
            };
            assert_eq!(found, expected, "{tool}");
        }
    }
    scene
        .check(
            "list_files",
            &[],
            "file (5 bytes)\npipe (a pipe)\nsocket (a socket)\n",
        )
        .await;
    scene
        .check("search_files", &[("pattern", ".")], "file:1: word\n")
        .await;
}

/// A directory without a parent: files of the system have no size and no end.
#[tokio::test]
async fn the_files_of_the_system() {
    let builtin = plaincall_agent::builtin::Builtin::in_directory("/proc/self").unwrap();
    let scene = Scene::with(|_| builtin);
    scene
        .check_parts("read_file", &[("path", "status")], &["1: Name:"])
        .await;
    // Its links lead anywhere.
    for path in ["root/etc/passwd", "cwd/Cargo.toml", "exe", "fd/0"] {
        let found = scene.call("read_file", &[("path", path)]).await;
        assert!(found.starts_with("error: "), "{path}: {found}");
    }
    let devices = plaincall_agent::builtin::Builtin::in_directory("/dev").unwrap();
    let scene = Scene::with(|_| devices);
    for path in ["zero", "tty", "full", "urandom"] {
        for (tool, arguments) in calls(path)
            .into_iter()
            .filter(|(tool, _)| *tool != "list_files")
        {
            let called =
                tokio::time::timeout(Duration::from_secs(20), scene.call(tool, &arguments));
            let found = called.await.expect("it does not wait");
            assert!(found.starts_with("error: "), "{tool} {path}: {found}");
        }
    }
}

/// While a path is swapped as fast as possible, no call ever reads or changes anything outside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_that_are_swapped() {
    let scene = Scene::of(&[("good/secret", "inside\n"), ("file", "inside\n")]);
    let is_over = Arc::new(AtomicBool::new(false));
    let (place, out, over) = (scene.path(""), scene.outside(), Arc::clone(&is_over));
    let swapping = std::thread::spawn(move || {
        let (swapped, spare) = (place.join("swapped"), place.join("spare"));
        let mut swaps = 0_u32;
        while !over.load(Ordering::Relaxed) {
            for target in [
                place.join("good").strip_prefix(&place).unwrap().to_owned(),
                out.clone(),
            ] {
                let _ = fs::remove_file(&spare);
                std::os::unix::fs::symlink(target, &spare).unwrap();
                fs::rename(&spare, &swapped).unwrap();
                swaps += 1;
            }
        }
        swaps
    });
    let mut inside = 0;
    for round in 0..60 {
        let new = format!("swapped/new-{round}");
        for (tool, arguments) in [
            ("read_file", vec![("path", "swapped/secret")]),
            ("list_files", vec![("path", "swapped")]),
            (
                "search_files",
                vec![("pattern", "secret|inside"), ("path", "swapped")],
            ),
            (
                "write_file",
                vec![("path", new.as_str()), ("content", "owned")],
            ),
            (
                "edit_file",
                vec![
                    ("path", "swapped/secret"),
                    ("old_text", "outside"),
                    ("new_text", "owned"),
                ],
            ),
        ] {
            let found = scene.call(tool, &arguments).await;
            assert!(!found.contains(SECRET), "{tool}: {found}");
            inside += usize::from(!found.starts_with("error: "));
        }
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(swapping.join().unwrap() > 100);
    assert!(inside > 0);
    let left: Vec<_> = fs::read_dir(scene.outside()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(
        fs::read_to_string(scene.outside().join("secret")).unwrap(),
        SECRET
    );
}

/// A directory that is removed and replaced: the tools stay with the one that was opened.
#[tokio::test]
async fn the_directory_is_replaced() {
    let scene = Scene::of(&[("file", "first\n")]);
    let here = scene.path("");
    let here = here.to_str().unwrap().trim_end_matches('/');
    fs::rename(here, format!("{here}-moved")).unwrap();
    std::os::unix::fs::symlink(scene.outside(), here).unwrap();
    scene
        .check("read_file", &[("path", "file")], "1: first\n")
        .await;
    let found = scene.call("read_file", &[("path", "secret")]).await;
    assert!(
        found.starts_with("error: `secret` does not exist"),
        "{found}"
    );
}
