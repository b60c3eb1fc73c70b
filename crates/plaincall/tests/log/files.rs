//! Logs as files: permissions to create, read and write them.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plaincall::{Log, log::LogError};
use tempfile::TempDir;

use crate::log::events::{begin, every_kind, lines, torn_fields};

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    (directory, path)
}

fn message(log: Result<Log, LogError>) -> String {
    log.unwrap_err().to_string()
}

#[test]
fn a_new_log_is_empty_and_private() {
    let (_directory, path) = place();
    let log = Log::create(&path).unwrap();
    assert_eq!((log.history(), log.torn()), (&[][..], None));
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[test]
fn a_file_that_exists_is_never_written_over() {
    let (_directory, path) = place();
    fs::write(&path, "mine").unwrap();
    let expected = format!(
        "the file `{}` already exists: name a new file, or resume its run",
        path.display()
    );
    assert_eq!(message(Log::create(&path)), expected);
    let other = "this is not the log of a run: it does not start like one; name a file that `plaincall run --log FILE` wrote";
    assert_eq!(message(Log::resume(&path)), other);
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_log_belongs_to_one_run() {
    let (_directory, path) = place();
    let expected = format!(
        "another run is using the log `{}`: wait until it ends, or stop it",
        path.display()
    );
    let log = Log::create(&path).unwrap();
    assert_eq!(message(Log::resume(&path)), expected);
    drop(log);

    fs::write(&path, lines(&[begin()])).unwrap();
    let log = Log::resume(&path).unwrap();
    assert_eq!(message(Log::resume(&path)), expected);
    drop(log);
    Log::resume(&path).unwrap();
}

#[test]
fn a_log_is_resumed_with_its_history() {
    let (_directory, path) = place();
    let mut events = vec![begin()];
    events.extend(every_kind());
    let whole = lines(&events);
    fs::write(&path, &whole).unwrap();
    let log = Log::resume(&path).unwrap();
    assert_eq!((log.history(), log.torn()), (&*events, None));
    drop(log);
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);
}

#[test]
fn a_torn_end_is_removed_from_the_file() {
    let (_directory, path) = place();
    let whole = lines(&[begin()]);
    fs::write(&path, &whole).unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"n\":1,\"ev").unwrap();
    drop(file);
    let log = Log::resume(&path).unwrap();
    assert_eq!(log.history(), [begin()]);
    assert_eq!(log.torn().map(torn_fields), Some((2, 10, false)));
    drop(log);
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);
}

#[test]
fn an_unusable_file_is_not_changed() {
    let (_directory, path) = place();
    let whole = lines(&[begin(), begin()]);
    for bytes in ["", "{\"n\":0,", "{}\n", &whole] {
        fs::write(&path, bytes).unwrap();
        assert!(Log::resume(&path).is_err(), "{bytes}");
        assert_eq!(fs::read_to_string(&path).unwrap(), bytes);
    }
    fs::write(&path, "").unwrap();
    let empty = "the log is empty: its run stopped before it wrote anything; remove the file and start again";
    assert_eq!(message(Log::resume(&path)), empty);
}

/// The message has the operation and the file.
fn check(log: Result<Log, LogError>, path: &Path, what: &str) {
    let message = message(log);
    let begins = format!("the log `{}` could not be {what}: ", path.display());
    assert!(message.starts_with(&begins), "{message}");
}

#[test]
fn system_errors_are_reported() {
    let (directory, path) = place();
    check(Log::resume(&path), &path, "opened");
    check(Log::resume(directory.path()), directory.path(), "opened");
    let nowhere = directory.path().join("no such folder").join("run.jsonl");
    check(Log::create(&nowhere), &nowhere, "created");
    assert!(!nowhere.exists());
    #[cfg(unix)]
    assert_eq!(
        message(Log::resume("/dev/null")),
        "this is not the log of a run: it is not a regular file"
    );
}

#[test]
fn a_log_is_opened_as_what_it_is() {
    let (_directory, path) = place();
    // The file does not exist, is empty, or has a run to resume.
    let log = Log::open(&path).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // An empty log is locked too.
    let in_use = format!(
        "another run is using the log `{}`: wait until it ends, or stop it",
        path.display()
    );
    assert_eq!(message(Log::open(&path)), in_use);
    assert_eq!(Log::remove(&path).unwrap_err().to_string(), in_use);
    drop(log);
    assert!(Log::open(&path).unwrap().history().is_empty());
    fs::write(&path, lines(&[begin()])).unwrap();
    assert_eq!(Log::open(&path).unwrap().history(), [begin()]);
    fs::write(&path, "mine").unwrap();
    let other = "this is not the log of a run: it does not start like one; name a file that `plaincall run --log FILE` wrote";
    assert_eq!(message(Log::open(&path)), other);
    Log::remove(&path).unwrap();
    assert!(!path.exists());
    let gone = Log::remove(&path).unwrap_err().to_string();
    assert!(gone.contains("could not be opened"), "{gone}");
}

#[test]
fn a_log_that_is_removed_meanwhile_has_no_owner() {
    let (_directory, path) = place();
    fs::write(&path, lines(&[begin()])).unwrap();
    // Concurrent opens and removals: an open log is always the file at the path.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let Ok(log) = Log::open(&path) else { continue };
                    assert!(path.exists());
                    drop(log);
                }
            });
            scope.spawn(|| {
                for _ in 0..20 {
                    // Another thread has it, or it was removed.
                    let _ = Log::remove(&path);
                }
            });
        }
    });
}
