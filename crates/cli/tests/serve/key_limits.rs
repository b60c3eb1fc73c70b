//! Limits of client keys, in a running process.

use std::fs;

use rustix::process::Signal;

use crate::serve::{Serving, configuration, replies};

#[test]
fn limits_of_keys_outlive_a_hangup() {
    let text = "[serve]\nkeys_file = 'keys'\nkey_rate = 1\nkey_requests = 8\n";
    let (folder, file) = configuration(text);
    let path = folder.path().join("keys");
    fs::write(&path, "first-key-000000\nsecond-key-00000 rate=3\n").unwrap();
    let mut serving = Serving::start(&replies(), &["--config", &file], &[]);
    let limited = "HTTP/1.1 429 Too Many Requests";
    let ok = "HTTP/1.1 200 OK";
    for (key, expected) in [
        ("first-key-000000", ok),
        ("first-key-000000", limited),
        ("second-key-00000", ok),
        ("second-key-00000", ok),
        ("second-key-00000", ok),
        ("second-key-00000", limited),
    ] {
        assert_eq!(serving.status(key, "m").0, expected, "{key}");
    }
    let (_, body) = serving.status("first-key-000000", "m");
    assert!(body.contains("at most 1 per minute"), "{body}");

    for (text, words) in [
        (
            "first-key-000000\nsecond-key-00000  rate=0\n",
            "keys:2:19: expected `requests=N`",
        ),
        (
            "first-key-000000 secret-part\n",
            "keys:1:18: expected `requests=N`",
        ),
        ("first-key-000000 rate=1 rate=2\n", "keys:1:25: expected"),
        ("first-key-000000 requests=x\n", "keys:1:18: expected"),
        (
            "first-key-000000\n  fifteen-chars-1 rate=5\n",
            "keys:2:3: this key has only 15 characters; use at least 16 (to make one, use `openssl rand",
        ),
        (
            "first-key-000000\n# second-key-00000\n  requests=5 rate=3\n",
            "keys:3:3: expected a key before its limits",
        ),
    ] {
        fs::write(&path, text).unwrap();
        serving.signal(Signal::HUP);
        let notes = serving.until_note("the old settings stay in use");
        assert!(notes.contains(words), "{notes}");
        assert!(!notes.contains("secret-part"), "{notes}");
    }
    // A file that never ends is read up to a limit.
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    serving.signal(Signal::HUP);
    let notes = serving.until_note("the old settings stay in use");
    assert!(
        notes.contains("keys: it has more than 1048576 bytes"),
        "{notes}"
    );
    fs::remove_file(&path).unwrap();
    fs::write(
        &path,
        "second-key-00000 rate=3 requests=2\nfirst-key-000000 rate=600\nthird-key-000000\n",
    )
    .unwrap();
    serving.signal(Signal::HUP);
    serving.until_note("settings reloaded");
    assert_eq!(serving.status("second-key-00000", "m").0, limited);
    assert_eq!(serving.status("third-key-000000", "m").0, ok);
    fs::write(
        &path,
        "# third-key-000000 is old\n#third-key-000000\n  #third-key-000000 rate=5\nfourth-key-00000\n",
    )
    .unwrap();
    serving.signal(Signal::HUP);
    serving.until_note("settings reloaded");
    assert_eq!(serving.status("fourth-key-00000", "m").0, ok);
    for key in ["#third-key-000000", "third-key-000000", "#"] {
        assert_eq!(serving.status(key, "m").0, "HTTP/1.1 401 Unauthorized");
    }
    serving.end();
}

#[test]
fn limits_need_keys() {
    let (_folder, file) = configuration("[serve]\nkey_rate = 5");
    let output = crate::serve::plaincall()
        .args(["--upstream", &replies(), "--config", &file])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(
        messages.contains("limits of client keys need client keys"),
        "{messages}"
    );
    let keys = [(
        "PLAINCALL_KEYS",
        "key-number-one-1 rate=1, key-number-two-2 requests=5 rate=1",
    )];
    let serving = Serving::start(&replies(), &[], &keys);
    assert_eq!(serving.status("key-number-two-2", "m").0, "HTTP/1.1 200 OK");
    assert_eq!(
        serving.status("key-number-two-2", "m").0,
        "HTTP/1.1 429 Too Many Requests"
    );
    assert_eq!(serving.status("key-number-one-1", "m").0, "HTTP/1.1 200 OK");
    serving.end();
}
