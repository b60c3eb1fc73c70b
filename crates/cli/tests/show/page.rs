//! The page itself: one file that loads nothing, and that no text of a log can break.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use snapbox::{Data, assert_data_eq};

use crate::show::data::data_of;
use crate::show::scene::{events, log, names, show, show_in};

const PARTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../report/src/page");

fn asset(name: &str) -> String {
    fs::read_to_string(Path::new(PARTS).join(name)).unwrap()
}

/// The scripts, in their order in the page.
const SCRIPTS: [&str; 10] = [
    "elements.js",
    "calls.js",
    "filters.js",
    "head.js",
    "transcript.js",
    "details.js",
    "views.js",
    "timeline.js",
    "graph.js",
    "show.js",
];

fn script() -> String {
    SCRIPTS.map(asset).concat()
}

fn style() -> String {
    ["colors.css", "style.css"].map(asset).concat()
}

fn page(name: &str) -> String {
    let shown = show(log(&events(name)), &["--html", "-"]);
    assert_eq!(shown.status, Some(0), "{}", shown.stderr);
    shown.stdout
}

/// Encodes bytes in base64, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let at = |place: usize| u32::from(*three.get(place).unwrap_or(&0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let place = bits >> (18 - 6 * digit) & 63;
            text.push(if digit > three.len() {
                '='
            } else {
                char::from(DIGITS[place as usize])
            });
        }
    }
    text
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(text)))
}

/// With `SNAPSHOTS=overwrite` it writes the policy instead of comparing it.
#[test]
fn the_policy_names_what_may_run() {
    assert_eq!(base64(b"ab"), "YWI=");
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'\n",
        hash(&style()),
        hash(&script())
    );
    let path = Path::new(PARTS).join("policy.txt");
    assert_data_eq!(policy, Data::read_from(&path, None).raw());
}

/// Returns the contents of all elements with a name.
fn elements<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let opened = page.match_indices(&open);
    opened
        .map(|(at, _)| {
            let (_, rest) = page[at..].split_once('>').unwrap();
            rest.split_once(&close).unwrap().0
        })
        .collect()
}

/// A browser may run only the scripts that the policy names, for every log.
#[test]
fn only_our_own_scripts() {
    for name in names() {
        let page = page(&name);
        let policy = asset("policy.txt");
        assert!(page.contains(&format!(
            r#"<meta http-equiv="Content-Security-Policy" content="{}">"#,
            policy.trim_end()
        )));
        let scripts = elements(&page, "script");
        let [_data, ours] = scripts.as_slice() else {
            panic!("{name}: not one script");
        };
        assert_eq!(*ours, script(), "{name}");
        assert_eq!(elements(&page, "style"), [style()], "{name}");
    }
}

/// Texts that look like markup do not become markup, and are shown unchanged.
#[test]
fn hostile_texts() {
    let events = events("hostile");
    let page = page("hostile");
    let frame = asset("page.html");
    for mark in ["<!--", "-->", "onerror=\"", "<img", "\u{2028}", "\u{2029}"] {
        assert!(!page.contains(mark), "{mark:?}");
    }
    assert_eq!(
        page.matches("<script").count(),
        frame.matches("<script").count()
    );
    assert_eq!(
        page.matches("</script").count(),
        frame.matches("</script").count()
    );
    let data = data_of(&page);
    let output = &events.iter().find(|it| it["status"] == "ok").unwrap()["output"];
    assert!(output.as_str().unwrap().contains("</script><script>"));
    assert_eq!(&data["calls"][0]["output"], output);
    // In a log, the names of the page's own parts are only texts.
    assert!(
        data["turns"][0]["segments"][0]["text"]
            .as_str()
            .unwrap()
            .contains("@DATA@ @SCRIPT@")
    );
}

/// Nothing is loaded, and no text of the log becomes markup.
#[test]
fn it_loads_nothing() {
    let parts = ["page.html", "sections.html", "colors.css", "style.css"].map(asset);
    let parts = parts.concat() + &script();
    for word in [
        "http:",
        "https:",
        "@import",
        "url(",
        "src=",
        "import(",
        "fetch(",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    ] {
        assert!(!parts.contains(word), "{word}");
    }
}

#[test]
fn where_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let record = log(&events("three-calls"));
    fs::write(path("run.log"), &record).unwrap();
    fs::write(path("out.html"), "something old").unwrap();
    let shown = show_in(directory.path(), &["run.log", "--html", "out.html"], b"");
    assert_eq!(
        (shown.status, shown.stdout.as_str(), shown.stderr.as_str()),
        (Some(0), "", "")
    );
    let written = fs::read_to_string(path("out.html")).unwrap();
    // The page contains the log, which only its owner can read.
    let mode = fs::metadata(path("out.html")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A second name of the log does not allow overwriting it.
    fs::hard_link(path("run.log"), path("link.html")).unwrap();
    show_in(directory.path(), &["run.log", "--html", "link.html"], b"");
    assert_eq!(fs::read_to_string(path("run.log")).unwrap(), record);
    assert_eq!(written, page("three-calls"));
    // The page is not written over the log.
    let shown = show_in(directory.path(), &["run.log", "--html", "./run.log"], b"");
    assert_eq!(shown.status, Some(2), "{shown:?}");
    assert!(shown.stderr.contains("overwrite the log"), "{shown:?}");
    assert_eq!(fs::read_to_string(path("run.log")).unwrap(), record);
    let shown = show_in(
        directory.path(),
        &["run.log", "--html", "no/such/out.html"],
        b"",
    );
    assert_eq!(shown.status, Some(1), "{shown:?}");
    assert!(
        shown.stderr.contains("cannot write no/such/out.html"),
        "{shown:?}"
    );
}

/// The page shows the diagnostics of the log.
#[test]
fn damage_is_shown() {
    let record = log(&events("three-calls")).replacen("2 words", "3 words", 1);
    let shown = show(record, &["--html", "-"]);
    assert_eq!(shown.status, Some(1));
    assert!(shown.stderr.contains("damaged"), "{}", shown.stderr);
    let data = data_of(&shown.stdout);
    assert!(data["problems"][0].as_str().unwrap().contains("damaged"));
    assert_eq!(data["calls"].as_array().unwrap().len(), 3);
}
