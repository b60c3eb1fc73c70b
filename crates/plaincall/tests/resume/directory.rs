//! The run's scratch directory after a crash.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use plaincall::log::{LineEncoder, read_log};
use plaincall::tool::ToolSpec;
use plaincall::{AllowAll, Command, Log, Recovery, Run, RunEvent, Stop, Tool, Toolbox};

use crate::resume::play::{edges, words};
use crate::resume::scene::{Reply, Scene, Seen};

fn build(parent: &Path, log: Log, word: Recovery) -> Run {
    let builder = Scene::new([]).builder(&Seen::default(), log, word);
    builder.directory_in(parent).build().unwrap()
}

/// Creates a directory as a run does.
fn private(path: &Path) {
    fs::DirBuilder::new().mode(0o700).create(path).unwrap();
}

/// Leaves a log that ends with the start of a call that writes, and the directory of its run.
async fn crash(parent: &Path, path: &Path) -> PathBuf {
    let mut run = build(parent, Log::create(path).unwrap(), Recovery::Unknown);
    let directory = run.directory().unwrap().to_owned();
    let mut turn = run.turn();
    for piece in Reply::of("a=send").pieces {
        turn.feed(piece);
    }
    turn.finish(Stop::Natural).await;
    run.close().await.unwrap();
    assert!(!directory.exists());
    let log = fs::read(path).unwrap();
    let events = read_log(&log).unwrap().events;
    let start = events
        .iter()
        .position(|event| matches!(event, RunEvent::Start(_)));
    fs::write(path, &log[..edges(&log)[start.unwrap()]]).unwrap();
    private(&directory);
    fs::write(directory.join("half"), "done").unwrap();
    directory
}

#[tokio::test(start_paused = true)]
async fn it_is_taken_again_and_removed_when_all_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let directory = crash(folder.path(), &path).await;
    for word in [Recovery::Unknown, words()[0].clone()] {
        let mut run = build(folder.path(), Log::resume(&path).unwrap(), word.clone());
        assert_eq!(run.directory().unwrap(), directory);
        let results = run.resume_turn().finish(Stop::Natural).await;
        run.close().await.unwrap();
        let is_known = word != Recovery::Unknown;
        assert_eq!(results.all_ok(), is_known);
        assert_eq!(directory.exists(), !is_known, "{word:?}");
        if !is_known {
            assert_eq!(fs::read_to_string(directory.join("half")).unwrap(), "done");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_gone_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let directory = crash(folder.path(), &path).await;
    fs::remove_dir_all(&directory).unwrap();
    let log = Log::resume(&path).unwrap();
    let builder = Scene::new([]).builder(&Seen::default(), log, Recovery::Unknown);
    let error = builder.build().unwrap_err().to_string();
    assert!(error.contains(directory.to_str().unwrap()), "{error}");
}

/// A completed conversation continues, and its commands have a directory again.
#[tokio::test(start_paused = true)]
async fn one_that_was_removed_at_the_end_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut run = build(
        folder.path(),
        Log::create(&path).unwrap(),
        Recovery::Unknown,
    );
    let directory = run.directory().unwrap().to_owned();
    for _ in 0..3 {
        assert!(directory.is_dir());
        let mut turn = run.turn();
        for piece in Reply::of("a=send").pieces {
            turn.feed(piece);
        }
        assert!(turn.finish(Stop::Natural).await.all_ok());
        run.close().await.unwrap();
        assert!(!directory.exists());
        run = build(
            folder.path(),
            Log::resume(&path).unwrap(),
            Recovery::Unknown,
        );
        assert_eq!(run.directory().unwrap(), directory);
    }
    run.close().await.unwrap();
    // Nothing is created where a run like this would not have created it.
    for place in [None, Some("/elsewhere")] {
        let log = Log::resume(&path).unwrap();
        let mut builder = Scene::new([]).builder(&Seen::default(), log, Recovery::Unknown);
        if let Some(place) = place {
            builder = builder.directory_in(place);
        }
        assert!(builder.build().is_err());
        assert!(!directory.exists());
    }
}

/// A log is an ordinary file: the directory that it names is removed only if a run like this has created it.
#[tokio::test(start_paused = true)]
async fn one_that_is_not_ours_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let parent = folder.path().join("parent");
    private(&parent);
    let directory = crash(&parent, &path).await;
    let (events, bytes) = {
        let bytes = fs::read(&path).unwrap();
        (read_log(&bytes).unwrap().events, bytes)
    };
    let elsewhere = folder.path().join("plaincall-abcdef");
    let renamed = parent.join("precious");
    private(&elsewhere);
    private(&renamed);
    let target = folder.path().join("target");
    private(&target);
    let climbing = parent.join("plaincall-x/../../target");
    private(&parent.join("plaincall-x"));
    let dotted = parent.join("plaincall-x/..");
    for named in [&elsewhere, &renamed, &climbing, &dotted, &parent] {
        let mut encoder = LineEncoder::default();
        let mut log = String::new();
        for event in &events {
            let mut event = event.clone();
            if let RunEvent::Run(begin) = &mut event {
                let directory = begin.directory.as_mut().unwrap();
                directory.path = named.to_str().unwrap().to_owned();
            }
            log.push_str(&encoder.next_line(&event));
        }
        fs::write(&path, log).unwrap();
        let mut run = build(&parent, Log::resume(&path).unwrap(), words()[0].clone());
        assert!(run.resume_turn().finish(Stop::Natural).await.all_ok());
        run.close().await.unwrap();
        assert!(named.is_dir(), "{named:?}");
        assert!(target.is_dir() && parent.is_dir());
    }
    // The right directory, but the builder has no parent directory.
    fs::write(&path, bytes).unwrap();
    let log = Log::resume(&path).unwrap();
    let builder = Scene::new([]).builder(&Seen::default(), log, words()[0].clone());
    let mut run = builder.build().unwrap();
    assert!(run.resume_turn().finish(Stop::Natural).await.all_ok());
    run.close().await.unwrap();
    assert!(directory.is_dir());
}

/// Only their owner can use the directories of runs.
#[tokio::test]
async fn those_that_are_made_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("above/named");
    let toolbox = || plaincall::Toolbox::new([]).unwrap();
    let temporary = Run::builder(toolbox()).directory_in(folder.path());
    let at = Run::builder(toolbox()).directory(&named);
    for builder in [temporary, at] {
        let run = builder.build().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(run.directory().unwrap()), 0o700);
    }
    assert!(named.exists());
}

/// The directory may have been replaced in the meantime.
#[tokio::test(start_paused = true)]
async fn one_that_others_can_use_is_not_taken_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let directory = crash(folder.path(), &path).await;
    let target = folder.path().join("target");
    private(&target);
    let named = |builder: plaincall::RunBuilder| builder.directory(&directory);
    let temporary = |builder: plaincall::RunBuilder| builder.directory_in(folder.path());
    let check = |place: &dyn Fn(plaincall::RunBuilder) -> plaincall::RunBuilder, expected: &str| {
        let log = Log::resume(&path).unwrap();
        let builder = Scene::new([]).builder(&Seen::default(), log, Recovery::Unknown);
        let error = place(builder).build().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains(directory.to_str().unwrap()), "{error}");
    };
    for (mode, is_refused_if_named) in [
        (0o777, true),
        (0o770, true),
        (0o702, true),
        (0o755, false),
        (0o1777, true),
    ] {
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        check(&temporary, "other users can use it");
        if is_refused_if_named {
            check(&named, "other users can use it");
        }
    }
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    // Only root can change the owner of a directory.
    if std::os::unix::fs::chown(&directory, Some(4242), None).is_ok() {
        check(&temporary, "belongs to another user (UID 4242;");
        check(&named, "belongs to another user (UID 4242;");
    }
    fs::remove_dir_all(&directory).unwrap();
    symlink(&target, &directory).unwrap();
    check(&temporary, "is a symbolic link");
    check(&named, "is a symbolic link");
    fs::remove_file(&directory).unwrap();
    fs::write(&directory, "no directory").unwrap();
    check(&temporary, "");
    check(&named, "");
}

/// The commands of a resumed run use the original working directory.
#[tokio::test]
async fn the_current_directory_is_that_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let path = folder.join("log");
    let build = |log: Log, current: &str| {
        let tool = Tool::command(ToolSpec::new("where"), Command::new(["pwd"])).unwrap();
        Run::builder(Toolbox::new([tool]).unwrap())
            .gate(AllowAll)
            .environment([("PATH", "/usr/bin:/bin")])
            .current_directory(folder.join(current))
            .log(log)
            .build()
    };
    for name in ["first", "second"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let first = folder.join("first").display().to_string() + "\n";
    for current in ["first", "second"] {
        let log = if path.exists() {
            Log::resume(&path)
        } else {
            Log::create(&path)
        };
        let mut run = build(log.unwrap(), current).unwrap();
        assert_eq!(run.directories().current, folder.join("first"));
        let mut turn = run.turn();
        turn.feed("!!!GADGET_START:where\n!!!GADGET_END\n");
        let results = turn.finish(Stop::Natural).await;
        assert_eq!(results[0].output.as_deref(), Some(&*first));
        run.close().await.unwrap();
    }
    fs::remove_dir(folder.join("first")).unwrap();
    let error = build(Log::resume(&path).unwrap(), "second").unwrap_err();
    assert!(error.to_string().contains("first"), "{error}");
}
