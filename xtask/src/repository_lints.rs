//! Repository lints: the rules of ARCHITECTURE.md that no compiler checks.

mod departures;
pub(crate) mod links;
mod names;
mod readme;
mod reasons;
pub(crate) mod words;

use std::path::Path;

use crate::workspace::{at, files, read};

/// The maximum lines of code of a file, without blank lines, comments and tests.
const CODE_LINES: usize = 600;

/// The maximum lines of sources of each crate: all lines of `src/`, including comments, blank lines and tests. A commit
/// that raises one must state the reason.
const SOURCE_LINES: &[(&str, usize)] = &[
    ("agent", 13_070),
    ("call", 25_540),
    ("cli", 20_470),
    ("config", 3_830),
    ("gateway", 14_570),
    ("http", 880),
    ("plaincall", 13_820),
    ("plan", 2_490),
    ("probe", 3_850),
    ("report", 2_260),
    ("syntax", 7_150),
    ("table", 1_040),
    ("wire", 4_260),
];

/// The allowed dependencies of each crate.
const DEPENDENCIES: &str = include_str!("../dependencies.txt");

/// The pure crates. `gateway` is pure except for its server.
const PURE: &[&str] = &[
    "syntax", "plan", "call", "wire", "config", "gateway", "table", "report",
];
/// The parts of them that are not pure.
const NOT_PURE: &[&str] = &["crates/gateway/src/server.rs", "crates/gateway/src/server/"];
/// Allowed exceptions: the system's random numbers come with its errors.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("crates/gateway/src/key.rs", "std::io"),
    ("crates/gateway/src/key.rs", "getrandom"),
];
/// Words that may appear in only one part of `agent`, and that part.
const ONE_PLACE: &[(&str, &str)] = &[
    ("rmcp", "crates/agent/src/mcp"),
    ("sse_stream", "crates/agent/src/mcp"),
    ("cap_std", "crates/agent/src/builtin"),
];
const IMPURE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "std::time",
    "getrandom",
    "hyper",
    "plaincall_http",
    "tokio",
];

/// Parts of the default markers that code outside `syntax` must not spell.
const MARKER_STRINGS: &[&str] = &[
    "GADGET_START",
    "GADGET_END",
    "!!!ARG",
    "\u{1F6E0}",
    "[/end]",
];

/// Checks every repository lint.
///
/// # Errors
/// Lists every violation.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut broken = Vec::new();
    let sources =
        ["crates", "integrations", "testing"].map(|folder| files(&root.join(folder), "rs"));
    for file in sources.concat() {
        let text = read(&file)?;
        let name = file
            .strip_prefix(root)
            .unwrap_or(&file)
            .display()
            .to_string();
        let code = code_lines(&text);
        if code.len() > CODE_LINES {
            broken.push(format!(
                "{name}: {} lines of code, at most {CODE_LINES}",
                code.len()
            ));
        }
        let is_test = name.contains("/tests/")
            || name.contains("testing/oracle/")
            || name.contains("testing/properties/")
            || name.contains("testing/testkit/");
        if !is_test {
            broken.extend(impure(&name, &code));
            broken.extend(astray(&name, &code));
        }
        if !is_test && !name.contains("crates/syntax/") {
            for (number, line) in &code {
                let found = MARKER_STRINGS
                    .iter()
                    .filter(|marker| line.contains(**marker));
                broken.extend(found.map(|marker| {
                    format!("{name}:{number}: only `syntax` may contain a marker string ({marker})")
                }));
            }
        }
    }
    broken.extend(heavy(root)?);
    for line in DEPENDENCIES.lines().filter(|line| !line.starts_with('#')) {
        let krate = line.split(':').next().unwrap_or_default();
        let manifest = read(&root.join("crates").join(krate).join("Cargo.toml"))?;
        broken.extend(forbidden(line, &manifest));
    }
    broken.extend(links::broken(root, &files(root, "md"))?);
    broken.extend(readme::problems(root)?);
    broken.extend(reasons::missing(root)?);
    broken.extend(departures::wrong(root)?);
    broken.extend(names::unknown(root)?);
    broken.extend(words::banned(root)?);
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "repository lints are broken:\n{}",
            broken.join("\n")
        ))
    }
}

/// Returns the crates that exceed their line limit, or have none.
fn heavy(root: &Path) -> Result<Vec<String>, String> {
    let mut heavy = Vec::new();
    let folder = root.join("crates");
    let crates = folder.read_dir().map_err(at(&folder))?;
    for path in crates.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut lines = 0;
        for file in files(&path.join("src"), "rs") {
            lines += read(&file)?.lines().count();
        }
        match SOURCE_LINES.iter().find(|(krate, _)| *krate == name) {
            Some((_, most)) if lines <= *most => {}
            Some((_, most)) => heavy.push(format!(
                "crates/{name}: {lines} lines of sources, at most {most}"
            )),
            None => heavy.push(format!("crates/{name}: add a limit for its source lines")),
        }
    }
    Ok(heavy)
}

/// Returns the impure modules that a pure file uses. The root of a crate may re-export what its impure part needs.
fn impure(name: &str, code: &[(usize, &str)]) -> Vec<String> {
    let is_in = |krate: &&str| name.starts_with(&format!("crates/{krate}/"));
    if !PURE.iter().any(is_in) || NOT_PURE.iter().any(|part| name.starts_with(part)) {
        return Vec::new();
    }
    let mut broken = Vec::new();
    for (number, line) in code {
        let found = IMPURE.iter().filter(|module| {
            line.contains(**module)
                && !EXCEPTIONS.contains(&(name, **module))
                && *line != "use std::time::Duration;"
        });
        broken.extend(found.map(|module| {
            format!("{name}:{number}: this file must be pure and must not use {module}")
        }));
    }
    broken
}

/// Returns the words in a file of `agent` that belong to another part.
fn astray(name: &str, code: &[(usize, &str)]) -> Vec<String> {
    if !name.starts_with("crates/agent/") {
        return Vec::new();
    }
    let mut broken = Vec::new();
    for (number, line) in code {
        let found = ONE_PLACE
            .iter()
            .filter(|(word, place)| line.contains(word) && !name.starts_with(place));
        broken.extend(
            found.map(|(word, place)| format!("{name}:{number}: only {place} uses {word}")),
        );
    }
    broken
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

/// Returns the dependencies of a crate that its line of [`DEPENDENCIES`] does not allow.
fn forbidden(line: &str, manifest: &str) -> Vec<String> {
    let (krate, allowed) = line.split_once(':').unwrap_or((line, ""));
    let mut names = dependencies(manifest);
    names.retain(|name| !allowed.split(' ').any(|allowed| allowed == name));
    let message = |name| format!("crates/{krate}/Cargo.toml: {krate} must not depend on {name}");
    names.into_iter().map(message).collect()
}

/// Returns the names in `[dependencies]` and in tables like `[dependencies.serde]`.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[') {
            is_inside = line == "[dependencies]";
            let name = table.strip_prefix("dependencies.");
            names.extend(
                name.and_then(|name| name.split(']').next())
                    .map(str::to_owned),
            );
        } else if is_inside && !line.is_empty() && !line.starts_with('#') {
            names.extend(line.split(['.', '=', ' ']).next().map(str::to_owned));
        }
    }
    names
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
    fn dependencies_are_those_of_their_section() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\nmemchr.workspace = true\nserde = { }\n\n[dependencies.tokio]\nversion = \"1\"\n[dev-dependencies]\ninsta = \"1\"\n";
        assert_eq!(dependencies(manifest), ["memchr", "serde", "tokio"]);
    }

    #[test]
    fn dependencies_must_be_allowed() {
        let manifest = "[dependencies]\nmemchr = \"2\"\nregex = \"1\"\n";
        let expected = "crates/plan/Cargo.toml: plan must not depend on regex";
        assert_eq!(forbidden("plan: memchr", manifest), [expected]);
        assert_eq!(forbidden("plan: memchr regex", manifest), [""; 0]);
        let krates = DEPENDENCIES.lines().filter(|line| line.contains(':'));
        assert_eq!(krates.count(), SOURCE_LINES.len() - 1, "all but `cli`");
    }

    #[test]
    fn pure_files_use_only_pure_modules() {
        let table = [
            ("crates/plan/src/plan.rs", "use std::time::Instant;", 1),
            ("crates/plaincall/src/run.rs", "use std::time::Instant;", 0),
            ("crates/gateway/src/reply.rs", "use tokio::sync::Mutex;", 1),
            ("crates/gateway/src/reply/round.rs", "std::fs::read(x)", 1),
            ("crates/gateway/src/server.rs", "use std::io;", 0),
            ("crates/gateway/src/server/chat.rs", "use std::io;", 0),
            ("crates/gateway/src/key.rs", "use std::io;", 0),
            ("crates/gateway/src/key.rs", "use std::fs;", 1),
        ];
        for (name, line, count) in table {
            assert_eq!(impure(name, &[(1, line)]).len(), count, "{name}: {line}");
        }
    }

    #[test]
    fn words_of_one_part_appear_nowhere_else() {
        let table = [
            ("crates/agent/src/mcp/client.rs", "use rmcp::Peer;", 0),
            ("crates/agent/src/agent.rs", "use rmcp::Peer;", 1),
            ("crates/gateway/src/server.rs", "use rmcp::Peer;", 0),
        ];
        for (name, line, count) in table {
            assert_eq!(astray(name, &[(1, line)]).len(), count, "{name}: {line}");
        }
    }
}
