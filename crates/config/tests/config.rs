//! Files as data: their values, and the errors with their locations.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use plaincall_config::servers::expand;
use plaincall_config::{
    AsText, Document, Location, Node, OneOrMore, Origin, Size, Time, TimeOrZero, child,
};
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct File {
    name: Option<String>,
    effect: Option<Effect>,
    timeout: Option<Time>,
    grace: Option<TimeOrZero>,
    limit: Option<Size>,
    tries: Option<NonZeroU32>,
    count: Option<u32>,
    freedom: Option<f64>,
    finishes: bool,
    command: Vec<String>,
    tools: OneOrMore,
    #[serde(alias = "environment")]
    env: BTreeMap<String, AsText>,
    pair: Option<[String; 2]>,
    rules: Vec<Rule>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Effect {
    Read,
    Idempotent,
    Write,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Rule {
    verdict: String,
    #[serde(default)]
    reason: Option<String>,
}

/// Returns the errors of a file, and the values that were read nevertheless.
fn problems(mut document: Document) -> (Vec<String>, Option<File>) {
    let file = document.read::<File>("");
    let problems = match document.finish(()) {
        Ok(()) => Vec::new(),
        Err(error) => error.problems,
    };
    let lines = problems.iter().map(ToString::to_string);
    (lines.collect(), file)
}

fn check(text: &str, expected: &[&str]) {
    let (found, _) = problems(Document::json_or_toml("file", text));
    assert_eq!(found, expected, "{text}");
}

#[test]
fn problems_and_places() {
    check("", &[]);
    check("{}", &[]);
    check(
        "nmae = 'x'\ncolour = 1\n",
        &[
            "line 1, column 1: unknown key `nmae`; did you mean `name`?",
            "line 2, column 1: unknown key `colour`; the keys are name, effect, timeout, grace, limit, tries, count, freedom, finishes, command, tools, env, environment, pair, rules",
        ],
    );
    check(
        "name = 'ä'\n\"ä\" = 1\nname = 2",
        &["line 3, column 1: duplicate key `name`"],
    );
    check(
        "name = x\n[rules\n",
        &[
            "line 1, column 8: string values must be quoted, expected literal string",
            "line 2, column 7: unclosed table, expected `]`",
        ],
    );
    check(
        "name = 1\neffect = 'raed'\ntimeout = true\ngrace = -1\nlimit = '1.5 MiB'\ntries = 0\ncount = -1\nfreedom = 'x'\nfinishes = 'no'\n",
        &[
            "line 1, column 8: `name` is a number; it must be a string",
            "line 2, column 10: `effect` cannot be `raed`; it must be `read`, `idempotent` or `write`; did you mean `read`?",
            "line 3, column 11: `timeout` is true; it must be a duration above 0: seconds, such as 10, or a number with a unit, such as \"500ms\", \"1.5s\", \"2m\", \"1h\"",
            "line 4, column 9: `grace` is the number -1; it must be a duration: seconds, such as 10, or a number with a unit, such as \"500ms\", \"1.5s\", \"2m\", \"1h\"",
            "line 5, column 9: `limit` is the string `1.5 MiB`; it must be a size above 0: bytes, such as 4096, or a number with a unit, such as \"64 KiB\", \"1 MiB\"",
            "line 6, column 9: `tries` is the number 0; it must be an integer of at least 1",
            "line 7, column 9: `count` is the number -1; it must be an integer of at least 0",
            "line 8, column 11: `freedom` is the string `x`; it must be a number",
            "line 9, column 12: `finishes` is the string `no`; it must be true or false",
        ],
    );
    check(
        "command = ['a', 3, 'b', []]\ntools = [1]\npair = ['a']\neffect = 5\n[env]\nA = 1\nB = []\n",
        &[
            "line 1, column 17: an element of `command` is a number; it must be a string",
            "line 1, column 25: an element of `command` is an empty array; it must be a string",
            "line 2, column 10: an element of `tools` is a number; it must be a string",
            "line 3, column 8: `pair` is an array; it must be an array of length 2",
            "line 4, column 10: `effect` is the number 5; it must be `read`, `idempotent` or `write`",
            "line 7, column 5: `B` is an empty array; it must be a string",
        ],
    );
    // A missing key is reported at the table, unless it may be a misspelled or invalid one.
    check(
        "[[rules]]\nreason = 'x'\n[[rules]]\nverdit = 'y'\n[[rules]]\nverdict = 1\n",
        &[
            "line 1, column 1: missing key `verdict`",
            "line 4, column 1: unknown key `verdit`; did you mean `verdict`?",
            "line 6, column 11: `verdict` is a number; it must be a string",
        ],
    );
    check(
        "rules = 5",
        &["line 1, column 9: `rules` is a number; it must be an array"],
    );
    check(
        "rules = [1979-05-27]",
        &["line 1, column 10: an element of `rules` is a date or time; it must be a table"],
    );
    check(
        "env = {}\nenvironment = {}",
        &["line 2, column 1: duplicate key `env`, also set under another name"],
    );
}

#[test]
fn json() {
    check(
        "\u{feff}// c\n{\"name\": \"x\", /* } */ \"env\": {\"A\": 1.50, \"B\": true,},}",
        &[],
    );
    check(
        "{\"name\": \"x\",\n \"name\": \"y\"}",
        &["line 2, column 2: duplicate key `name`"],
    );
    check(
        "{\"ä\": \"ä\",\n \"name\": \"ä\" 5}",
        &["line 2, column 13: invalid JSON: expected comma"],
    );
    check(
        "{",
        &["line 1, column 1: invalid JSON: unterminated object"],
    );
    check(
        "/* only */",
        &["line 1, column 1: the file must contain a JSON object or array"],
    );
    check(
        "{'name': 'x', \"count\": \"0x1\"}",
        &["line 1, column 24: `count` is the string `0x1`; it must be an integer of at least 0"],
    );
    check("{\"name\": null}", &[]);
    check(
        "{\"timeout\": null, \"command\": null}",
        &["line 1, column 30: `command` is null; it must be an array"],
    );
    let (_, file) = problems(Document::json(
        "file",
        "{\"env\": {\"A\": 1.50, \"B\": true}}",
    ));
    let env = file.unwrap().env;
    assert_eq!((&*env["A"].0, &*env["B"].0), ("1.50", "true"));
    let deep = format!("{{\"name\": {}1", "[".repeat(100_000));
    assert_eq!(problems(Document::json("file", deep)).0.len(), 1);
}

#[test]
fn valid_files_are_read() {
    let text = "name = 'x'\ncount = 'many'\ncommand = ['a', 1, 'b']\ntimeout = '1.5s'\ntools = 't'\nlimit = 0x10";
    let (_, file) = problems(Document::toml("file", text));
    let expected = File {
        name: Some("x".into()),
        command: vec!["a".into(), "b".into()],
        timeout: Some(Time(Duration::from_millis(1500))),
        tools: OneOrMore(vec!["t".into()]),
        limit: Some(Size(16)),
        ..File::default()
    };
    assert_eq!(file.unwrap(), expected);
    let mut document = Document::toml("file", "a.b = 1\n[c]\n'x/y' = { d = 1.25, e = [true] }");
    assert_eq!(
        document.read::<serde_json::Value>("/c"),
        Some(json!({"x/y": {"d": 1.25, "e": [true]}}))
    );
    assert_eq!(document.read::<u32>("/a/b"), Some(1));
    assert_eq!(document.read::<u32>("/a/c"), None);
    assert_eq!(document.keys(""), ["a", "c"]);
    document.problem(&Location::value(child("/c", "x/y") + "/e/0"), "in the list");
    document.problem(&Location::value("/c/x~1y/f/g"), "not there");
    document.problem(&Location::Within("/c".into(), "y".into(), 0), "within");
    let error = document.finish(()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "file: line 2, column 1: within\nfile: line 3, column 1: not there\nfile: line 3, column 26: in the list"
    );
    assert_eq!(error.problems[2].pointer, "/c/x~1y/e/0");
}

/// The name of a program's own type means nothing.
#[test]
fn types_of_any_name_are_read_alike() {
    #[derive(Debug, Deserialize)]
    struct Effects(BTreeMap<String, String>);
    #[derive(Debug, Deserialize)]
    struct AsText(String);
    #[derive(Debug, Deserialize)]
    struct OneOrMore(Vec<String>);
    #[derive(Debug, Deserialize)]
    struct RetryTable {
        attempts: u32,
    }
    let mut document = Document::toml(
        "file",
        "a = 'read'\nb = 5\nc.attempts = 2\nd = ['x']\ne.x = 'y'",
    );
    assert_eq!(document.read::<AsText>("/a").unwrap().0, "read");
    assert_eq!(document.read::<OneOrMore>("/d").unwrap().0, ["x"]);
    assert_eq!(document.read::<Effects>("/e").unwrap().0["x"], "y");
    assert_eq!(document.read::<RetryTable>("/c").unwrap().attempts, 2);
    assert!(document.read::<Effects>("/a").is_none());
    assert!(document.read::<OneOrMore>("/a").is_none());
    assert!(document.read::<AsText>("/b").is_none());
    assert!(document.read::<RetryTable>("/b").is_none());
}

#[test]
fn layers() {
    let file = |name: &str, text: &str| Document::toml(name, text).root().clone();
    let mut all = file("a.toml", "name = 'a'\ncount = 1\n[env]\nA = 'a'\nB = 'a'");
    all.overlay(file("b.toml", "\nname = 'b'\n[env]\nB = 'b'\nC = 'b'\n"));
    all.set(
        "/env/C",
        Node::new(json!("v"), Origin::Variable("PLAINCALL_C".into())),
    );
    all.set(
        "/limit",
        Node::new(json!(5), Origin::Option("--limit".into())),
    );
    let origins = ["/name", "/count", "/env/A", "/env/B", "/env/C", "/limit"];
    assert_eq!(
        origins.map(|at| all.get(at).unwrap().origin.to_string()),
        [
            "b.toml, line 2",
            "a.toml, line 2",
            "a.toml, line 4",
            "b.toml, line 4",
            "the environment variable PLAINCALL_C",
            "the option --limit"
        ]
    );
    let read: File = all.read().unwrap();
    assert_eq!(
        (read.name.as_deref(), read.count, read.limit),
        (Some("b"), Some(1), Some(Size(5)))
    );
    assert_eq!(read.env.len(), 3);
    all.set("/limit", Node::new(json!("x"), Origin::Default));
    assert_eq!(all.read::<File>().unwrap_err()[0].0, "/limit");
}

#[test]
fn times_and_sizes() {
    for (text, expected) in [
        ("10", Some(10_000)),
        ("0.25", Some(250)),
        ("500ms", Some(500)),
        ("0.3s", Some(300)),
        ("1.5 s", Some(1500)),
        ("2m", Some(120_000)),
        ("1.1h", Some(3_960_000)),
        ("25h", Some(90_000_000)),
        ("0", Some(0)),
        ("0ms", Some(0)),
        ("", None),
        ("s", None),
        ("-1s", None),
        ("+1s", None),
        ("1e5s", None),
        ("inf", None),
        ("1.2.3s", None),
        (".5s", None),
        ("10 days", None),
        ("99999999999h", None),
        ("99999999999999999999999s", None),
    ] {
        let time = text
            .parse::<TimeOrZero>()
            .ok()
            .map(|time| time.0.as_millis());
        assert_eq!(time, expected, "{text}");
        let above_zero = text.parse::<Time>().ok().map(|time| time.0.as_millis());
        assert_eq!(above_zero, expected.filter(|time| *time > 0), "{text}");
    }
    for (text, expected) in [
        ("200000", Some(200_000)),
        ("1B", Some(1)),
        ("64 KiB", Some(64 << 10)),
        ("32MiB", Some(32 << 20)),
        ("1GiB", Some(1 << 30)),
        ("0", None),
        ("16k", None),
        ("1 MB", None),
        ("64KB", None),
        ("1.5MiB", None),
        ("MiB", None),
        ("-1", None),
        ("99999999999 GiB", None),
    ] {
        assert_eq!(
            text.parse::<Size>().ok().map(|size| size.0),
            expected,
            "{text}"
        );
    }
}

#[test]
fn variables() {
    let variable = |name: &str| match name {
        "A" => Some("one".to_owned()),
        "NONE" => Some(String::new()),
        "TRICK" => Some("${A}".to_owned()),
        _ => None,
    };
    for (text, expected) in [
        ("plain $A ${A}/${env:A}", "plain $A one/one"),
        (
            "${B:-two}${NONE:-three}${NONE}${A:-four}${B:-}",
            "twothreeone",
        ),
        // An inserted value is not expanded again.
        ("${TRICK}", "${A}"),
    ] {
        assert_eq!(expand(text, &variable).unwrap(), expected, "{text}");
    }
    assert_eq!(
        expand("${B} ${input:key} ${y=tulip} ${y:tulip} ${A", &variable).unwrap_err(),
        [
            "the environment variable `B` is not set; set it, or use `${B:-default}`",
            "invalid `${input:}`; use `${NAME}` for an environment variable",
            "invalid `${y=}`; use `${NAME}` for an environment variable",
            "invalid `${y:}`; use `${NAME}` for an environment variable",
            "`${` has no `}`",
        ]
    );
}

/// 1 MiB of problems of one kind.
#[test]
fn large_files_are_read_in_linear_time() {
    let lines = |size: usize, line: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for number in 0.. {
            if text.len() > size {
                break;
            }
            writeln!(text, "{}", line(number)).unwrap();
        }
        text
    };
    let texts = |size: usize| {
        [
            lines(size, &|number| format!("wrong{number} = 1")),
            format!(
                "[env]\n{}",
                lines(size, &|number| format!("K{number} = []"))
            ),
            lines(size, &|number| format!("[[rules]]\nverdict = {number}")),
            format!(
                "{{\"command\": [{}1]}}",
                lines(size, &|number| format!("{number},"))
            ),
        ]
    };
    let time = |text: &str| {
        let begun = Instant::now();
        let (found, _) = problems(Document::json_or_toml("file", text.to_owned()));
        assert!(found.len() >= 25, "{}", found.len());
        begun.elapsed()
    };
    for (short, long) in texts(1 << 17).into_iter().zip(texts(1 << 20)) {
        // Eight times the text takes eight times as long, or 64 times if the time is not linear. Other work may disturb a try.
        let is_linear = (0..10).any(|_| time(&long) < 24 * time(&short));
        assert!(is_linear, "{}", short.get(..40).unwrap());
    }
}
