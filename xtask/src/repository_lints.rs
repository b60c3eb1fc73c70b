//! Repository lints: the rules of ARCHITECTURE.md that no compiler checks.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{departures, links, names, readme, reasons, words};

/// The maximum lines of code of a file, without blank lines, comments and tests.
const CODE_LINES: usize = 600;

/// The maximum lines of sources of each crate: all lines of `src/`, including comments, blank lines and tests. A commit
/// that raises one must state the reason.
const SOURCE_LINES: &[(&str, usize)] = &[
    // 200 more than before: given messages, transforms and observers, answers that match a schema. 240 more: subagents that
    // continue after a crash. 410 more: requests with a grammar, which fall back to one without.
    ("agent", 13_040),
    // 400 more than before: examples of calls in the prompt.
    // 40 more: argument trees that need no hash for few arguments. 20 more: repair messages without what the
    // results state. 210 more: answers that match a schema. 10 more: a message
    // about an unknown tool begins with the suggestion. 10 more: the entry of one tool.
    // 1,120 more: calls in other formats (`rescue`).
    // 100 more: descriptions within a limit.
    // 3,850 more: grammars for constrained decoding.
    // 820 more: lengths and patterns of strings in grammars, as automata. 210 more: texts as rows of a table.
    // 20 more: later items of a list in the reports of grammars. 30 more: the names of effects.
    // 200 more: texts with a decision about each call, from the Python package.
    // 190 more: the options of a dialect and the counts of rows, from the command and the packages; names of settings.
    // 80 more: the rule that converted a value.
    // 90 more: calls that other tools have read, for both packages.
    // 1,290 more: the decision reads the text outside calls and finds calls in other formats in it.
    ("call", 24_600),
    // 800 more than before: the table, the page, the record and the recommendation of `plaincall probe`.
    // Also wrapped notes, and the number of calls that do not fit into the live view.
    // 80 more: calls of subagents below their call.
    // 1,100 more: the lists of models, local model servers, a client of `serve`, completions, man pages, `--quiet`.
    // 110 more: `ask --schema` and `--agent`.
    // 50 more: the models of named agents, and the agent of a session. 10 more: why a call was approved.
    // 10 more: `--mode`. 420 more: agents as tools of others, with shared tools.
    // 150 more: model servers of `serve`, and SIGHUP.
    // 70 more: limits of client keys in files.
    // 90 more: tokens in `show`, and agents whose built-in tools differ.
    // 60 more: secrets of the file of `serve --models`.
    // 40 more: the changes of a table that `probe` prints, and errors that wrap between words.
    // 120 more: `grammar`. 20 more: `--constrain`.
    // 30 more: blank rows around calls that have not ended. 180 more: only results of `run` in a pipe, the progress of `probe`,
    // and messages for newcomers. 110 more: grammars in `ask`, `chat` and `probe`.
    // 420 more: `extract`. 10 more: the grammar at a switch of the model.
    // 150 more: `extract` with Parquet, and with devices as its output.
    // 10 more: the pages of `show` mark a call that alone was interrupted.
    // 1,750 less: the parts that the inspector needs too are in `report` and `config`. 230 more: `inspect`.
    ("cli", 20_470),
    // 70 more than before: defaults by model name, and examples of calls in `tools.toml`.
    // 100 more: named agents. 20 more: `mode`. 100 more: agents as tools of others.
    // 80 more: model servers of `serve`.
    // 30 more: the budget of a prompt. 50 more: `constrain`.
    // 190 more: the options of a dialect, from `cli`.
    ("config", 3_830),
    // 121 more than before: routing and CORS, in place of axum, tower and tower-http.
    // 20 more: faster search in bodies. 480 more: the byte API, and encoders for several APIs.
    // 1,420 more: the Responses API. 50 more: bodies that produce their own pieces.
    // 1,210 more: Anthropic's Messages. 560 more: native mode. 210 more: reports of invalid calls in every API.
    // 170 more: token counts. 10 more: the request for a repair round as its bytes.
    // 90 more: pointers into requests of every API.
    // 660 more: several model servers, their list of models, reloading.
    // 400 more: limits of client keys, one type for endpoints, requests in transit at shutdown.
    // 150 more: texts inside a streamed call, the texts of the system prompt.
    // 230 more: the budget of a prompt, and the part of it that is kept.
    // 40 more: several keys to redact, secrets in headers, one model of Anthropic's API, long token counts.
    // 10 more: a round, and the calls in a reply's text, in files of their own.
    // 130 more: the client's names of tools in native mode, tools of namespaces that would have the name of another tool.
    // 390 more: grammars in requests. 140 more: requests read without known tools, and the search of bodies.
    // 10 more: what the byte API knows about a request and an error, for hosts in other languages.
    // 150 more: one registration and one timer for each stream, and chunks that need not be read.
    // 80 more: token counts in the byte API.
    // 400 more: the translation inside a client library, 100 of them documents; from the Python package.
    // 80 more: paths and headers that a transport rejects; names of settings.
    // 80 more: bodies that are not JSON but may be an object for a server, and repeated keys.
    // 20 more: complete answers with reasoning after a call.
    ("gateway", 14_490),
    // 30 more: one timer for a response, and rejected grammars, which the agent and the gateway had each.
    ("http", 880),
    // Also tools that delegate, calls that tools submit after the reply, and the replies of subagents in the log.
    // 30 more: why a call was approved, in the log.
    // 120 more: tokens of replies in the log, 40 of them from `agent`.
    // 880 more: runs for engines that journal their inputs (`durable`).
    // 170 more, 90 of them from the integration of Restate: answers of people, fingerprints of tools, calls that alone were
    // interrupted.
    // 30 more: edits are checked before they are taken.
    ("plaincall", 13_820),
    // 190 more: the plan of one reply, from the Python package.
    ("plan", 2_490),
    // The comparison of `plaincall probe`: arms, world, judge, figures, reference models.
    // 50 more: the arm with a grammar.
    ("probe", 3_850),
    // What `show` and `check` know about a log and a text, from `cli`.
    // 60 more: splits by their index, with what was tried; logs with other line ends.
    ("report", 2_260),
    // 10 more than before: UTF-8 that is checked in long steps.
    // 10 more: options of a dialect that grammars need.
    // 30 more: with what a near miss can begin. 120 more: content that a caller may read without the parser.
    // 240 more: the fence after the last value, and the end of each format of calls.
    ("syntax", 7_070),
    // Tables of calls, for the Python package and `extract`.
    // 40 more: texts that are read by their keys.
    ("table", 1_040),
    // 360 more: the types of the Responses API.
    // 400 more: requests, events, errors and models of Messages. 20 more: pieces of native calls.
    // 120 more: chunks that differ only in their text.
    ("wire", 4_240),
];

/// The allowed dependencies of each crate.
const KNOWS: &[(&str, &[&str])] = &[
    ("syntax", &["memchr"]),
    ("plan", &[]),
    (
        "call",
        &[
            "indexmap",
            "jsonschema",
            "plaincall-syntax",
            "regex-lite",
            "schemars",
            "serde",
            "serde_json",
            "strsim",
        ],
    ),
    (
        "table",
        &[
            "arrow-array",
            "arrow-buffer",
            "arrow-cast",
            "arrow-schema",
            "plaincall-call",
            "plaincall-syntax",
            "serde_json",
        ],
    ),
    (
        "report",
        &[
            "memchr",
            "plaincall",
            "plaincall-call",
            "plaincall-config",
            "plaincall-syntax",
            "serde",
            "serde_json",
        ],
    ),
    (
        "probe",
        &[
            "plaincall",
            "plaincall-agent",
            "serde",
            "serde_json",
            "tokio",
            "toml",
        ],
    ),
    ("wire", &["memchr", "serde", "serde_json"]),
    (
        "config",
        &[
            "clap",
            "indexmap",
            "jsonc-parser",
            "plaincall-call",
            "plaincall-syntax",
            "schemars",
            "serde",
            "serde_json",
            "toml",
        ],
    ),
    (
        "agent",
        &[
            "cap-std",
            "encoding_rs",
            "futures-core",
            "futures-util",
            "getrandom",
            "html5gum",
            "httpdate",
            "memchr",
            "plaincall",
            "plaincall-config",
            "plaincall-http",
            "plaincall-wire",
            "regex",
            "regex-syntax",
            "rmcp",
            "rustix",
            "schemars",
            "serde",
            "serde_json",
            "sse-stream",
            "strsim",
            "tokio",
            "tokio-util",
            "toml",
            "url",
        ],
    ),
    (
        "http",
        &[
            "http",
            "http-body-util",
            "hyper",
            "hyper-rustls",
            "hyper-util",
            "rustls",
            "rustls-platform-verifier",
            "tokio",
            "tower",
        ],
    ),
    (
        "gateway",
        &[
            "bytes",
            "futures-util",
            "getrandom",
            "hmac",
            "http",
            "http-body-util",
            "hyper",
            "hyper-util",
            "memchr",
            "percent-encoding",
            "plaincall-call",
            "plaincall-http",
            "plaincall-syntax",
            "plaincall-wire",
            "serde",
            "serde_json",
            "sha2",
            "tokio",
            "tower-service",
        ],
    ),
    (
        "plaincall",
        &[
            "crc32fast",
            "futures-core",
            "plaincall-call",
            "plaincall-config",
            "plaincall-plan",
            "plaincall-syntax",
            "rustix",
            "schemars",
            "serde",
            "serde_json",
            "tempfile",
            "tokio",
            "tokio-util",
            "toml",
            "tracing",
        ],
    ),
];

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
    for (krate, allowed) in KNOWS {
        let manifest = read(&root.join("crates").join(krate).join("Cargo.toml"))?;
        for dependency in dependencies(&manifest) {
            if !allowed.contains(&dependency.as_str()) {
                broken.push(format!(
                    "crates/{krate}/Cargo.toml: {krate} must not depend on {dependency}"
                ));
            }
        }
    }
    broken.extend(links::broken(root)?);
    broken.extend(readme::problems(root)?);
    broken.extend(reasons::missing(root)?);
    let spec = root.join("spec");
    let page = read(&spec.join(departures::PAGE))?;
    broken.extend(departures::wrong(&departures::files(&spec)?, &page));
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
    let crates = fs::read_dir(root.join("crates")).map_err(|error| format!("crates: {error}"))?;
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

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the files with this extension below the folder, except built and hidden ones.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                found.extend(files(&path, extension));
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
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
