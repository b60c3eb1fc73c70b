//! `write_file`, `edit_file`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use plaincall_agent::plaincall::Stop;

use crate::builtin::scene::{Scene, call};

#[tokio::test]
async fn whole_files() {
    let scene = Scene::of(&[("old", "before"), ("dir/x", "")]);
    scene.link("old", "link");
    scene.link("dir/new", "dangling");
    for (path, content, expected, there) in [
        ("a", "one\n", "created `a`: 4 bytes\n", "a"),
        (
            "old",
            "one",
            "replaced `old`: 3 bytes, previously 6; no newline at end of file\n",
            "old",
        ),
        (
            "deep/er/b",
            "",
            "created `deep/er/b`: 0 bytes\n",
            "deep/er/b",
        ),
        (
            "./c",
            "\u{feff}a\r\nb\r\u{0}",
            "created `./c`: 9 bytes; no newline at end of file\n",
            "c",
        ),
        (
            "link",
            "by link\n",
            "replaced `link`: 8 bytes, previously 3\n",
            "old",
        ),
        ("dir/../d", "x\n", "created `dir/../d`: 2 bytes\n", "d"),
    ] {
        let arguments = [("path", path), ("content", content)];
        scene.check("write_file", &arguments, expected).await;
        assert_eq!(scene.content(there), content, "{path}");
    }
    assert!(
        fs::symlink_metadata(scene.path("link"))
            .unwrap()
            .is_symlink()
    );
    for (path, expected) in [
        ("", "error: \"\" is a directory; add a file name"),
        (
            "dir",
            "error: `dir` is a directory, not a file; `list_files` lists its contents",
        ),
        ("new/", "error: `new/` ends with a slash; add a file name"),
        ("new/..", "error: `new/..` is a directory; add a file name"),
        (
            "old/x",
            "error: `old/x`: part of this path is a file, not a directory; `list_files` lists what exists",
        ),
        ("dangling", "error: `dangling` is a broken link"),
        (
            "a\u{0}b",
            "error: \"a\\u{0}b\" contains a NUL character; remove it",
        ),
    ] {
        scene
            .check("write_file", &[("path", path), ("content", "x")], expected)
            .await;
    }
    let long = "x".repeat(300);
    scene
        .check_parts(
            "write_file",
            &[("path", &long), ("content", "x")],
            &["the path is too long"],
        )
        .await;
    // A failed call leaves nothing behind.
    assert_eq!(
        scene.names("."),
        ["a", "c", "d", "dangling", "deep", "dir", "link", "old"]
    );
    assert_eq!(scene.names("dir"), ["x"]);
}

/// The permissions of a file with an access list are the most that anyone in the list may do, and the list is not kept.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn access_lists() {
    let scene = Scene::of(&[("f", "old\n")]);
    // Version 2; then the kind (owner, user, group, mask, others), the permissions, and the user.
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (who, may, user) in [
        (1, 6, !0),
        (2, 6, 12_345),
        (4, 0, !0),
        (16, 6, !0),
        (32, 0, !0),
    ] {
        list.extend(u16::to_le_bytes(who));
        list.extend(u16::to_le_bytes(may));
        list.extend(u32::to_le_bytes(user));
    }
    let flags = rustix::fs::XattrFlags::empty();
    let name = "system.posix_acl_access";
    // Not every file system supports access lists.
    if rustix::fs::setxattr(scene.path("f"), name, &list, flags).is_err() {
        return;
    }
    let mode = || fs::metadata(scene.path("f")).unwrap().mode() & 0o7777;
    assert_eq!(mode(), 0o660);
    scene
        .check(
            "write_file",
            &[("path", "f"), ("content", "new\n")],
            "replaced `f`: 4 bytes, previously 4\n",
        )
        .await;
    assert_eq!(mode(), 0o600);
}

/// The permissions of a file stay, and a read-only file is not replaced.
#[tokio::test]
async fn permissions() {
    let scene = Scene::of(&[("script", "old"), ("locked", "old"), ("shut/x", "old")]);
    let mode = |path: &str, mode| {
        fs::set_permissions(scene.path(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("script", 0o751);
    mode("locked", 0o444);
    scene
        .check(
            "write_file",
            &[("path", "script"), ("content", "new\n")],
            "replaced `script`: 4 bytes, previously 3\n",
        )
        .await;
    assert_eq!(
        fs::metadata(scene.path("script")).unwrap().mode() & 0o7777,
        0o751
    );
    // The owner stays too, if the process may change owners.
    let (user, group) = (Some(12_345), Some(23_456));
    if std::os::unix::fs::chown(scene.path("script"), user, group).is_ok() {
        mode("script", 0o4640);
        scene
            .check(
                "edit_file",
                &[
                    ("path", "script"),
                    ("old_text", "new"),
                    ("new_text", "newer"),
                ],
                "edited `script`: 1 occurrence replaced at line 1\n",
            )
            .await;
        let about = fs::metadata(scene.path("script")).unwrap();
        assert_eq!((Some(about.uid()), Some(about.gid())), (user, group));
        assert_eq!(about.mode() & 0o7777, 0o4640);
    }
    let refused = "error: `locked` cannot be written: permission denied";
    scene
        .check(
            "write_file",
            &[("path", "locked"), ("content", "new\n")],
            refused,
        )
        .await;
    scene
        .check(
            "edit_file",
            &[("path", "locked"), ("old_text", "old"), ("new_text", "new")],
            refused,
        )
        .await;
    assert_eq!(scene.content("locked"), "old");
    mode("shut", 0o500);
    // Root can write here too.
    if fs::write(scene.path("shut/y"), "").is_err() {
        let refused = "error: `shut/x` cannot be written: permission denied";
        scene
            .check(
                "write_file",
                &[("path", "shut/x"), ("content", "new\n")],
                refused,
            )
            .await;
        assert_eq!(scene.content("shut/x"), "old");
        mode("shut", 0o000);
        let refused = refused.replace("written", "read");
        scene
            .check("read_file", &[("path", "shut/x")], &refused)
            .await;
    }
    mode("shut", 0o700);
}

#[tokio::test]
async fn texts_in_place_of_others() {
    let scene = Scene::new();
    let edited = |lines: &str| format!("edited `f`: 1 occurrence replaced at {lines}\n");
    let kept = |lines: &str| edited(lines).replace('\n', "; line endings kept (CRLF)\n");
    for (before, old, new, expected, after) in [
        ("a b c\n", "b", "x", edited("line 1"), "a x c\n"),
        ("a\nb\nc\n", "b\nc", "", edited("line 2"), "a\n\n"),
        ("a\nb", "b", "b\n", edited("line 2"), "a\nb\n"),
        ("ä\0"[..2].as_ref(), "ä", "ö", edited("line 1"), "ö"),
        // The line ends of the file stay, whether the new text has them or not.
        ("a\r\nb\r\n", "a\nb", "x\ny", kept("line 1"), "x\r\ny\r\n"),
        ("a\r\nb\r\n", "b", "x\ny", kept("line 2"), "a\r\nx\r\ny\r\n"),
        (
            "a\r\nb\r\n",
            "a\r\nb",
            "x\r\ny",
            edited("line 1"),
            "x\r\ny\r\n",
        ),
        ("a\r\nb\r\n", "b", "x", edited("line 2"), "a\r\nx\r\n"),
        ("a\nb\n", "a\r\nb", "x\r\ny", edited("line 1"), "x\ny\n"),
        // If they differ, the written form counts, and then the other one.
        (
            "a\r\nb\nc\n",
            "b\nc",
            "x\ny",
            edited("line 2"),
            "a\r\nx\ny\n",
        ),
        ("a\r\nb\nc\n", "a\nb", "x\ny", kept("line 1"), "x\r\ny\nc\n"),
        (
            "$1 \\n {}",
            "\\n",
            "$0 \\1",
            edited("line 1"),
            "$1 $0 \\1 {}",
        ),
    ] {
        scene.file("f", before);
        scene
            .check(
                "edit_file",
                &[("path", "f"), ("old_text", old), ("new_text", new)],
                &expected,
            )
            .await;
        assert_eq!(scene.content("f"), after, "{before:?} {old:?}");
    }
    for (before, old, new, expected, after) in [
        (
            "a b a\na",
            "a",
            "x",
            "edited `f`: 3 occurrences replaced at lines 1 and 2\n",
            "x b x\nx",
        ),
        (
            "aaaa",
            "aa",
            "b",
            "edited `f`: 2 occurrences replaced at line 1\n",
            "bb",
        ),
        (
            "a",
            "a",
            "aa",
            "edited `f`: 1 occurrence replaced at line 1\n",
            "aa",
        ),
    ] {
        scene.file("f", before);
        scene
            .check(
                "edit_file",
                &[
                    ("path", "f"),
                    ("old_text", old),
                    ("new_text", new),
                    ("all", "true"),
                ],
                expected,
            )
            .await;
        assert_eq!(scene.content("f"), after, "{before:?} {old:?}");
    }
    // Bytes that are not UTF-8 stay unchanged.
    scene.file("f", b"gr\xfcn a \xff");
    scene
        .check(
            "edit_file",
            &[("path", "f"), ("old_text", "a"), ("new_text", "b")],
            &edited("line 1"),
        )
        .await;
    assert_eq!(fs::read(scene.path("f")).unwrap(), b"gr\xfcn b \xff");
    // What does not fit is refused.
    let refused = "error: `f` is not UTF-8, and `new_text` has characters that are not ASCII, so their bytes are unknown; nothing was changed. Use ASCII only, or convert the file first";
    let arguments = [("path", "f"), ("old_text", "b"), ("new_text", "é")];
    scene.check("edit_file", &arguments, refused).await;
    // The part with CRLF of a file with both.
    scene.file("f", "A\r\nB\n");
    let arguments = [("path", "f"), ("old_text", "A"), ("new_text", "A1\nA2")];
    scene
        .check(
            "edit_file",
            &arguments,
            "edited `f`: 1 occurrence replaced at line 1; line endings kept (CRLF)\n",
        )
        .await;
    assert_eq!(scene.content("f"), "A1\r\nA2\r\nB\n");
}

/// A file that is replaced had other line endings, a byte order mark, or another encoding.
#[tokio::test]
async fn whole_files_in_another_form() {
    let scene = Scene::new();
    for (before, content, changes) in [
        (
            &b"a\r\nb\r\n"[..],
            "a\nc\n",
            "; line endings changed from CRLF to LF",
        ),
        (b"a\r\nb\r\n", "a\r\nc\r\n", ""),
        (b"a\r\nb\n", "a\nc\n", ""),
        (
            b"\xef\xbb\xbfa\n",
            "b\n",
            "; the byte order mark was removed",
        ),
        (b"\xef\xbb\xbfa\n", "\u{feff}b\n", ""),
        (b"caf\xe9\n", "cafe\n", ""),
        (b"caf\xe9\n", "café\n", "; the file is now UTF-8"),
        (
            b"\xff\xfea\0",
            "\u{fffd}\n",
            "; the file was not UTF-8 text before",
        ),
    ] {
        scene.file("f", before);
        let (bytes, old) = (content.len(), before.len());
        let expected = format!("replaced `f`: {bytes} bytes, previously {old}{changes}\n");
        let arguments = [("path", "f"), ("content", content)];
        scene.check("write_file", &arguments, &expected).await;
    }
    scene.file("f", b"caf\xe9\n");
    let arguments = [("path", "f"), ("content", "caf\u{fffd} au lait\n")];
    let refused = "error: `f` has bytes that are not UTF-8, which `read_file` shows as \u{fffd}; `content` has this character, and would overwrite them. Nothing was changed; change single places with `edit_file`";
    scene.check("write_file", &arguments, refused).await;
    assert_eq!(fs::read(scene.path("f")).unwrap(), b"caf\xe9\n");
}

#[tokio::test]
async fn texts_that_stand_nowhere_or_too_often() {
    let scene = Scene::new();
    let absent = "error: `old_text` was not found in `f`; nothing was changed. ";
    let code = "fn main() {\n    let first = 1;\n    let second = 2;\n}\n";
    for (file, old, new, expected) in [
        ("a a\na", "a", "b", "error: `old_text` occurs 3 times in `f` (lines 1 and 2); nothing was changed. Add surrounding lines to `old_text`, or set `all` to true to replace all".to_owned()),
        ("aaa", "aa", "b", "error: `old_text` occurs 2 times in `f` (lines 1); nothing was changed. Add surrounding lines to `old_text`, or set `all` to true to replace all".to_owned()),
        (code, "let first = 2;", "x", format!("{absent}Closest to its first line is line 2:\n    let first = 1;\nRead these lines again and copy them exactly.")),
        (code, "let first = 1;\nlet second = 2;", "x", format!("{absent}It matches lines 2 to 3 except for whitespace. Copy exactly:\n    let first = 1;\n    let second = 2;")),
        ("a\tb =  1;\nc", "a b = 1;\n c", "x", format!("{absent}It matches lines 1 to 2 except for whitespace. Copy exactly:\na\tb =  1;\nc")),
        (code, "}\n\n", "x", format!("{absent}It matches line 4 except for whitespace. Copy exactly:\n}}")),
        (code, "2:     let first = 1;\n3:     let second = 2;", "x", format!("{absent}It matches without the line numbers; remove them.")),
        (code, "class Zebra:", "x", format!("{absent}No line is similar to its first line; read the file again and copy the text exactly.")),
        (code, "   \t ", "x", format!("{absent}Include at least one character that is not whitespace.")),
        ("", "a", "b", format!("{absent}No line is similar to its first line; read the file again and copy the text exactly.")),
        (code, "", "x", "error: `old_text` is empty; copy the text to replace from `f`; to write a whole file, use `write_file`".to_owned()),
        ("a", "a", "a", "error: `old_text` and `new_text` are the same; nothing was changed".to_owned()),
    ] {
        scene.file("f", file);
        scene.check("edit_file", &[("path", "f"), ("old_text", old), ("new_text", new)], &expected).await;
        assert_eq!(scene.content("f"), file);
    }
    let many = "a\n".repeat(3_000);
    scene.file("f", &many);
    scene
        .check_parts(
            "edit_file",
            &[("path", "f"), ("old_text", "a\na"), ("new_text", "b")],
            &["(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more)"],
        )
        .await;
    // An invalid value is reported soon, even for a malicious file.
    scene.file("f", "ab\n".repeat(300_000));
    let old = format!("{}x", "ab\n".repeat(2_000));
    scene
        .check_parts(
            "edit_file",
            &[("path", "f"), ("old_text", &old), ("new_text", "b")],
            &["was not found in `f`"],
        )
        .await;
}

/// A small call cannot create a file that exceeds the memory.
#[tokio::test]
async fn texts_that_become_too_long() {
    let scene = Scene::of(&[("f", &"a".repeat(1 << 20))]);
    let edit = |new_text: &str| {
        call(
            "edit_file",
            &[
                ("path", "f"),
                ("old_text", "a"),
                ("new_text", new_text),
                ("all", "true"),
            ],
        )
    };
    let found = scene.say(&edit(&"b".repeat(20_000))).await;
    assert_eq!(
        found,
        "error: `f` would exceed 16 MiB with 1048576 occurrences replaced; nothing was changed. Use a shorter `new_text`, or replace fewer"
    );
    assert_eq!(scene.content("f").len(), 1 << 20);
    let found = scene.say(&edit("bc")).await;
    assert_eq!(
        found,
        "edited `f`: 1048576 occurrences replaced at line 1\n"
    );
    assert_eq!(scene.content("f"), "bc".repeat(1 << 20));
}

/// Concurrent changes of one file: none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_at_the_same_time() {
    let scene = Scene::new();
    let words: Vec<String> = (0..40).map(|n| format!("<{n}>")).collect();
    scene.file("f", words.join("\n"));
    let mut run = scene.run();
    let mut turn = run.turn();
    for word in &words {
        turn.feed(call(
            "edit_file",
            &[("path", "f"), ("old_text", word), ("new_text", "done")],
        ));
    }
    let results = turn.finish(Stop::Natural).await;
    assert!(results.all_ok(), "{results:?}");
    assert_eq!(scene.content("f"), vec!["done"; 40].join("\n"));
}

/// A call that ends early leaves the file unchanged, or has replaced it; never a part, and no other file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_changes() {
    let scene = Scene::of(&[("f", "before")]);
    let content = "x".repeat(8 << 20);
    for pause in [0, 1, 4, 16] {
        let mut run = scene.run();
        let canceller = run.canceller();
        let mut turn = run.turn();
        turn.feed(call("write_file", &[("path", "f"), ("content", &content)]));
        let cancelling = async {
            tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
            canceller.cancel();
        };
        let (results, ()) = tokio::join!(turn.finish(Stop::Natural), cancelling);
        assert_eq!(results.len(), 1);
        drop(run);
        // The edit is cancelled at the next piece.
        let begun = std::time::Instant::now();
        while scene.names(".") != ["f"] {
            assert!(begun.elapsed().as_secs() < 20, "{:?}", scene.names("."));
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        let found = scene.content("f");
        assert!(
            found == "before" || found == content,
            "{} bytes",
            found.len()
        );
    }
}
