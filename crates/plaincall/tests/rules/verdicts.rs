//! Verdicts of rules, as tables.

use std::sync::Arc;
use std::time::Duration;

use plaincall::rules::{Rule, Verdict};
use plaincall::tool::bind_arguments;
use plaincall::tool::{Arguments, Parameter, ParameterKind, ToolSpec};
use plaincall::{Effect, Request, Rules, Tool};
use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// A table: rules, a line of dashes, calls with their verdicts, a line of equals signs. A rule is a verdict, a tool, an
/// optional effect, and arguments; a call is a tool, its effect, arguments, `->` and a verdict, or `-` for none. A space is
/// written `\s`; other escapes are those of JSON.
const VERDICTS: &str = include_str!("verdicts.txt");

#[test]
fn verdicts() {
    let mut count = 0;
    for case in VERDICTS.split("\n====\n") {
        let (rules, calls) = case.split_once("\n----\n").unwrap();
        let is_case = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let parsed: Rules = rules.lines().filter(is_case).map(rule).collect();
        for line in calls.lines().filter(is_case) {
            let (call, expected) = line.split_once(" -> ").unwrap();
            let found = match parsed.verdict(&request(call)) {
                None => "-",
                Some(Verdict::Allow) => "allow",
                Some(Verdict::Ask) => "ask",
                Some(Verdict::Deny { .. }) => "deny",
            };
            assert_eq!(found, expected, "{call}\nby\n{rules}");
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

/// Returns how certainly the argument `text` matches: certain matches are allowed, possible ones denied.
fn fit(tool: &Tool, pattern: &str, text: &str) -> &'static str {
    let arguments = Arguments::from_pairs([("text", text)]).unwrap();
    let request = Request::of(tool, Arc::new(arguments));
    let verdict = |rule: Rule| Rules::new([rule.argument("text", pattern)]).verdict(&request);
    if verdict(Rule::allow(["t"])).is_some() {
        "yes"
    } else if verdict(Rule::deny(["t"], "no")).is_some() {
        "maybe"
    } else {
        "no"
    }
}

fn tool() -> Tool {
    let spec = ToolSpec::new("t").parameter(Parameter::new("text", ParameterKind::String));
    of(spec)
}

fn of(spec: ToolSpec) -> Tool {
    Tool::raw(spec, |_, _| async { Ok(String::new()) })
}

/// Checks lines of a pattern, a text and the certainty of the match, separated by bars.
fn fits(table: &str, tool: &Tool) {
    let is_case = |line: &&str| !line.is_empty() && !line.starts_with('#');
    for line in table.lines().filter(is_case) {
        let (pattern, rest) = line.split_once(" | ").unwrap();
        let (written, expected) = rest.rsplit_once(" | ").unwrap();
        assert_eq!(
            fit(tool, &text(pattern), &text(written)),
            expected,
            "{line}"
        );
    }
}

#[test]
fn command_lines() {
    fits(
        include_str!("command_lines.txt"),
        &tool().command_line("text"),
    );
}

/// A line that is four times as long takes about four times as long, not sixteen times. Measures the time of this thread, so
/// other work on the machine does not count.
#[test]
fn long_command_lines_take_linear_time() {
    let tool = tool().command_line("text");
    let time = |line: &str, expected: &str| {
        let begun = clock_gettime(ClockId::ThreadCPUTime);
        assert_eq!(fit(&tool, "rm *", line), expected);
        let elapsed = clock_gettime(ClockId::ThreadCPUTime) - begun;
        Duration::try_from(elapsed).unwrap()
    };
    let rows = [
        ("a ", "", "no"),
        ("sh ", "", "no"),
        ("'sh a' ", "", "no"),
        ("a=b ", "", "no"),
        ("`", "", "no"),
        ("$(", "", "no"),
        ("a ", "rm x", "maybe"),
    ];
    for (unit, end, expected) in rows {
        let line = |count| format!("sh {}{end}", unit.repeat(count));
        let short = time(&line(5_000), expected);
        let long = time(&line(20_000), expected);
        assert!(long < short * 9, "{unit}: {short:?}, then {long:?}");
    }
}

#[test]
fn paths_below_a_directory() {
    fits(
        include_str!("paths.txt"),
        &tool().path_below("text", "/home/me/work"),
    );
}

fn rule(line: &str) -> Rule {
    let mut words = line.split(' ');
    let (verdict, tool) = (words.next().unwrap(), words.next().unwrap());
    let mut rule = match verdict {
        "allow" => Rule::allow([tool]),
        "ask" => Rule::ask([tool]),
        "deny" => Rule::deny([tool], "no"),
        other => panic!("{other}"),
    };
    for word in words {
        rule = match word.split_once('=') {
            Some((pointer, pattern)) => rule.argument(pointer, text(pattern)),
            None => rule.effect(effect(word)),
        };
    }
    rule
}

fn request(call: &str) -> Request {
    let mut words = call.split(' ');
    let (name, effect) = (words.next().unwrap(), effect(words.next().unwrap()));
    let pairs: Vec<(String, String)> = words
        .map(|word| word.split_once('=').unwrap())
        .map(|(pointer, value)| (pointer.to_owned(), text(value)))
        .collect();
    let pairs = pairs.iter().map(|(pointer, value)| (&**pointer, &**value));
    let arguments = Arguments::from_pairs(pairs).unwrap();
    let spec = [
        ("path", ParameterKind::String),
        ("mode", ParameterKind::String),
        ("count", ParameterKind::Number),
        ("flag", ParameterKind::Boolean),
        ("list", ParameterKind::Array),
        ("object", ParameterKind::Object),
        ("any", ParameterKind::Any),
    ]
    .into_iter()
    .fold(ToolSpec::new(name), |spec, (name, kind)| {
        spec.parameter(Parameter::new(name, kind).optional())
    });
    let arguments = bind_arguments(&spec, &arguments).unwrap();
    Request::of(&of(spec.effect(effect)), Arc::new(arguments))
}

fn effect(word: &str) -> Effect {
    match word {
        "read" => Effect::Read,
        "idempotent" => Effect::Idempotent,
        "write" => Effect::Write,
        other => panic!("{other}"),
    }
}

/// Unescapes a text.
fn text(written: &str) -> String {
    let quoted = written.replace("\\\"", "\"").replace('"', "\\\"");
    let quoted = quoted.replace("\\s", " ");
    serde_json::from_str(&format!("\"{quoted}\"")).unwrap()
}

/// Resolves a path without links from a directory.
fn resolved(folder: &str, path: &str) -> String {
    let from = if path.starts_with('/') { "" } else { folder };
    let mut segments: Vec<&str> = Vec::new();
    for segment in from.split('/').chain(path.split('/')) {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    format!("/{}", segments.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Allowed paths are inside the directory, and paths inside it are denied.
    #[test]
    fn paths_stay_where_they_belong(
        segments in proptest::collection::vec("etc|home|me|a|[.]{1,3}|", 1..8),
        blanks in "[ \t]{0,1}",
        folder in "/etc|/home/me|/",
    ) {
        let path = blanks + &segments.join("/");
        let arguments = Arguments::from_pairs([("path", path.as_str())]).unwrap();
        let request = Request::of(&of(ToolSpec::new("a").effect(Effect::Read)), Arc::new(arguments));
        let verdict = |rule: Rule| Rules::new([rule]).verdict(&request);
        let inside = format!("{}/", resolved("/", &folder)).replace("//", "/");
        for pattern in ["etc/**", "me/*", "**/a", "**"] {
            let allowed = verdict(Rule::allow(["a"]).argument("path", pattern)).is_some();
            let target = format!("{}/", resolved(&folder, &path));
            let lies_inside = target.starts_with(&inside);
            prop_assert!(!allowed || lies_inside || path.starts_with('/'), "{} {}", pattern, path);
        }
        // A relative path that leads up may lead to a denied one.
        for (pattern, root) in [("/etc/**", "/etc"), ("/home/me/**", "/home/me")] {
            let goes_up = !path.trim().starts_with('/') && {
                let mut depth = 0_i32;
                path.trim().split('/').any(|segment| {
                    depth += match segment {
                        "" | "." => 0,
                        ".." => -1,
                        _ => 1,
                    };
                    depth < 0
                })
            };
            let target = resolved(&folder, path.trim());
            let is_denied_place = target == root || target.starts_with(&format!("{root}/"));
            let denied = verdict(Rule::deny(["a"], "no").argument("path", pattern)).is_some();
            if is_denied_place && (goes_up || path.trim().starts_with('/')) {
                prop_assert!(denied, "{} {} in {}", pattern, path, folder);
            }
        }
    }
}
