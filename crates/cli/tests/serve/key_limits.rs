//! Limits of client keys, in a running process.

use std::fs;

use rustix::process::Signal;

use crate::serve::{Serving, replies};

#[test]
fn limits_of_keys_outlive_a_hangup() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let file = path.to_str().unwrap();
    fs::write(&path, "first\nsecond rate=3\n").unwrap();
    let options = ["--keys", file, "--key-rate", "1", "--key-requests", "8"];
    let mut serving = Serving::start(&replies(), &options, &[]);
    let limited = "HTTP/1.1 429 Too Many Requests";
    let ok = "HTTP/1.1 200 OK";
    for (key, expected) in [
        ("first", ok),
        ("first", limited),
        ("second", ok),
        ("second", ok),
        ("second", ok),
        ("second", limited),
    ] {
        assert_eq!(serving.status(key, "m").0, expected, "{key}");
    }
    let (_, body) = serving.status("first", "m");
    assert!(body.contains("at most 1 per minute"), "{body}");

    for (text, words) in [
        ("first\nsecond  rate=0\n", "keys:2:9: expected `requests=N`"),
        ("first secret-part\n", "keys:1:7: expected `requests=N`"),
        ("first rate=1 rate=2\n", "keys:1:14: expected"),
        ("first requests=x\n", "keys:1:7: expected"),
        (
            "first\n# second\n  requests=5 rate=3\n",
            "keys:3:3: expected a key before its limits",
        ),
    ] {
        fs::write(&path, text).unwrap();
        serving.signal(Signal::HUP);
        let notes = serving.until_note("the old settings stay in use");
        assert!(notes.contains(words), "{notes}");
        assert!(!notes.contains("secret-part"), "{notes}");
    }
    fs::write(&path, "second rate=3 requests=2\nfirst rate=600\nthird\n").unwrap();
    serving.signal(Signal::HUP);
    serving.until_note("settings reloaded");
    assert_eq!(serving.status("second", "m").0, limited);
    assert_eq!(serving.status("third", "m").0, ok);
    fs::write(&path, "# third is old\n#third\n  #third rate=5\nfourth\n").unwrap();
    serving.signal(Signal::HUP);
    serving.until_note("settings reloaded");
    assert_eq!(serving.status("fourth", "m").0, ok);
    for key in ["#third", "third", "#"] {
        assert_eq!(serving.status(key, "m").0, "HTTP/1.1 401 Unauthorized");
    }
    serving.end();
}

#[test]
fn limits_need_keys() {
    let output = crate::serve::plaincall()
        .args(["--upstream", &replies(), "--key-rate", "5"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(
        messages.contains("limits of client keys need client keys"),
        "{messages}"
    );
    let keys = [("PLAINCALL_KEYS", "one rate=1, two requests=5 rate=1")];
    let serving = Serving::start(&replies(), &[], &keys);
    assert_eq!(serving.status("two", "m").0, "HTTP/1.1 200 OK");
    assert_eq!(
        serving.status("two", "m").0,
        "HTTP/1.1 429 Too Many Requests"
    );
    assert_eq!(serving.status("one", "m").0, "HTTP/1.1 200 OK");
    serving.end();
}
