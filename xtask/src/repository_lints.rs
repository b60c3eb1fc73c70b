//! Repository lints: the rules of ARCHITECTURE.md that no compiler checks.

pub(crate) mod links;
mod names;
mod pages;
pub(crate) mod words;

use std::path::Path;

use serde_json::Value;

use crate::step::output;
use crate::workspace::{cargo, entries, files, name_below, no_problems, read};

/// The maximum lines of code of a file, without blank lines, comments and tests.
const CODE_LINES: usize = 600;

/// The maximum lines of sources of each crate: all lines of `src/`, including comments, blank lines and tests. A commit
/// that raises one must state the reason.
const SOURCE_LINES: &[(&str, usize)] = &[
    ("agent", 14_010),
    ("cli", 20_985),
    ("config", 4_357),
    ("gateway", 17_110),
    ("grammar", 4_884),
    ("http", 955),
    ("names", 632),
    ("plaincall", 14_214),
    ("plan", 2_550),
    ("probe", 4_567),
    ("prompt", 4_810),
    ("reply", 8_846),
    ("report", 2_265),
    ("syntax", 7_345),
    ("table", 1_135),
    ("tool", 9_316),
    ("wire", 4_627),
];

/// The allowed dependencies of each crate.
const DEPENDENCIES: &str = include_str!("../dependencies.txt");

/// The pure crates. `gateway` is pure except for its server.
const PURE: &str = "crates/syntax/ crates/names/ crates/plan/ crates/tool/ crates/reply/ crates/prompt/ crates/grammar/ crates/wire/ crates/config/ crates/gateway/ crates/table/ crates/report/";

/// Words that code must not contain, except in tests: the words, the folders, the exceptions, and where the words belong.
const RULES: [[&str; 4]; 5] = [
    [
        "std::env std::fs std::net std::process std::thread std::time hyper plaincall_http tokio",
        PURE,
        "crates/gateway/src/server",
        "crates that are not pure",
    ],
    // The system's random numbers come with its errors.
    [
        "std::io getrandom",
        PURE,
        "crates/gateway/src/server crates/gateway/src/key.rs",
        "crates that are not pure",
    ],
    [
        "rmcp sse_stream",
        "crates/agent/",
        "crates/agent/src/mcp",
        "`mcp`",
    ],
    [
        "cap_std",
        "crates/agent/",
        "crates/agent/src/builtin",
        "`builtin`",
    ],
    // Parts of the default markers.
    [
        "GADGET_START GADGET_END !!!ARG \u{1F6E0} [/end]",
        "",
        "crates/syntax/",
        "`syntax`",
    ],
];
/// The length of a time, which needs no clock.
const DURATION: &str = "use std::time::Duration;";

const TESTS: &str = "/tests/ testing/oracle/ testing/properties/ testing/testkit/";

/// Checks every repository lint.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut broken = Vec::new();
    let sources = ["crates", "integrations", "testing"];
    for file in sources
        .map(|folder| files(&root.join(folder), "rs"))
        .concat()
    {
        let text = read(&file)?;
        let name = name_below(root, &file);
        let code = code_lines(&text);
        if code.len() > CODE_LINES {
            let lines = code.len();
            broken.push(format!(
                "{name}: {lines} lines of code, at most {CODE_LINES}"
            ));
        }
        if !TESTS.split(' ').any(|part| name.contains(part)) {
            broken.extend(misplaced(&name, &code));
        }
    }
    broken.extend(heavy(root)?);
    let metadata = output(&mut cargo("metadata --no-deps --format-version 1"))?;
    broken.extend(forbidden(DEPENDENCIES, &metadata)?);
    broken.extend(links::broken(root, &files(root, "md"))?);
    broken.extend(pages::problems(root)?);
    broken.extend(names::unknown(root)?);
    broken.extend(words::banned(root)?);
    no_problems("repository lints are broken:", &broken)
}

/// Returns the words of a file that [`RULES`] forbid there.
fn misplaced(name: &str, code: &[(usize, &str)]) -> Vec<String> {
    let mut broken = Vec::new();
    for [words, files, exceptions, place] in RULES {
        let is_in = |folders: &str| folders.split(' ').any(|folder| name.starts_with(folder));
        if !is_in(files) || is_in(exceptions) {
            continue;
        }
        for (number, line) in code.iter().filter(|(_, line)| *line != DURATION) {
            let found = words.split(' ').filter(|word| line.contains(word));
            let message = |word| format!("{name}:{number}: only {place} may use {word}");
            broken.extend(found.map(message));
        }
    }
    broken
}

/// Returns the crates that exceed their line limit, or have none.
fn heavy(root: &Path) -> Result<Vec<String>, String> {
    let mut heavy = Vec::new();
    for path in entries(&root.join("crates"))? {
        let name = name_below(&root.join("crates"), &path);
        let mut lines = 0;
        for file in files(&path.join("src"), "rs") {
            lines += read(&file)?.lines().count();
        }
        let limit = SOURCE_LINES.iter().find(|(krate, _)| *krate == name);
        let most = limit.map_or(0, |(_, most)| *most);
        if lines > most {
            heavy.push(format!(
                "crates/{name}: {lines} lines of sources, at most {most}"
            ));
        }
    }
    Ok(heavy)
}

/// Returns the numbered lines of code: no blank lines or comments, up to the tests at the end of the file.
fn code_lines(text: &str) -> Vec<(usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with("//"))
        .collect()
}

/// Returns the dependencies that the lists of crates do not allow, by the metadata of cargo.
fn forbidden(lists: &str, metadata: &str) -> Result<Vec<String>, String> {
    let metadata: Value = serde_json::from_str(metadata).map_err(|error| error.to_string())?;
    let array = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let packages = array(&metadata["packages"]);
    let mut forbidden = Vec::new();
    for line in lists.lines().filter(|line| !line.starts_with('#')) {
        let (krate, allowed) = line.split_once(':').unwrap_or((line, ""));
        let manifest = format!("crates/{krate}/Cargo.toml");
        let ends = |package: &&Value| {
            let path = package["manifest_path"].as_str();
            path.is_some_and(|path| path.ends_with(&manifest))
        };
        let package = packages.iter().find(ends);
        let package = package.ok_or_else(|| format!("{manifest}: there is no such crate"))?;
        for dependency in array(&package["dependencies"]) {
            let name = dependency["name"].as_str().unwrap_or_default();
            // Those of tests and builds have a kind.
            if dependency["kind"].is_null() && !allowed.split(' ').any(|it| it == name) {
                forbidden.push(format!("{manifest}: {krate} must not depend on {name}"));
            }
        }
    }
    Ok(forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_what_is_neither_blank_nor_comment_nor_test() {
        let text = "//! Doc.\n\nfn a() {}\n    // why\nfn b() {}\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(code_lines(text), [(3, "fn a() {}"), (5, "fn b() {}")]);
    }

    #[test]
    fn dependencies_must_be_allowed() {
        let metadata = r#"{"packages":[{"manifest_path":"/a/crates/plan/Cargo.toml","dependencies":
            [{"name":"memchr","kind":null},{"name":"regex","kind":null},{"name":"insta","kind":"dev"}]}]}"#;
        let expected = "crates/plan/Cargo.toml: plan must not depend on regex";
        assert_eq!(forbidden("plan: memchr", metadata).unwrap(), [expected]);
        assert_eq!(forbidden("plan: memchr regex", metadata).unwrap(), [""; 0]);
        assert!(forbidden("none: memchr", metadata).is_err());
        let krates = DEPENDENCIES.lines().filter(|line| line.contains(':'));
        assert_eq!(krates.count(), SOURCE_LINES.len() - 1, "all but `cli`");
    }

    #[test]
    fn words_appear_in_their_places() {
        let table = [
            ("crates/plan/src/plan.rs", "use std::time::Instant;", 1),
            ("crates/plan/src/plan.rs", "use std::time::Duration;", 0),
            ("crates/plaincall/src/run.rs", "use std::time::Instant;", 0),
            ("crates/gateway/src/reply.rs", "use tokio::sync::Mutex;", 1),
            ("crates/gateway/src/reply/round.rs", "std::fs::read(x)", 1),
            ("crates/gateway/src/server.rs", "use std::io;", 0),
            ("crates/gateway/src/server/chat.rs", "use std::io;", 0),
            ("crates/gateway/src/key.rs", "use std::io;", 0),
            ("crates/gateway/src/key.rs", "use std::fs;", 1),
            ("crates/agent/src/mcp/client.rs", "use rmcp::Peer;", 0),
            ("crates/agent/src/agent.rs", "use rmcp::Peer;", 1),
            ("crates/gateway/src/server.rs", "use rmcp::Peer;", 0),
            ("crates/cli/src/main.rs", "\"[/end]\"", 1),
            ("crates/syntax/src/emoji.rs", "\"[/end]\"", 0),
        ];
        for (name, line, count) in table {
            assert_eq!(misplaced(name, &[(1, line)]).len(), count, "{name}: {line}");
        }
    }
}
