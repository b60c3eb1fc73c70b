//! Runs the commands that the README names, with an installed command.

use std::path::Path;

use super::started;
use crate::dist::VERSION;
use crate::step::{Server, copy, output};
use crate::workspace::{command, read, root};

/// The start of the first example, and the end of its output.
const EXAMPLE: &str = "cargo run -- ";
const RESULTS: &str = "10 calls: 10 ok";
/// The gateway without a model, and the request to it.
const GATEWAY: &str = "serve --upstream replay:examples/gateway/replies.jsonl";
const REQUEST: &str =
    "curl http://127.0.0.1:8080/v1/chat/completions -d @examples/gateway/request.json";
const PROBE: &str = "probe reference:block --quick";
const SHOW: &str = "show run.log --html run.html";

/// Runs the first example.
pub(crate) fn check_example(start: &[String], home: &Path) -> Result<(), String> {
    let version = output(started(start, home).arg("--version"))?;
    contains("--version", &version, &format!("plaincall {VERSION}"))?;
    if !home.join("examples").exists() {
        copy(&root().join("examples"), home)?;
    }
    let readme = read(&root().join("README.md"))?;
    let example = readme.lines().find_map(|line| line.strip_prefix(EXAMPLE));
    let example = example.ok_or("README.md has no first example")?;
    // It has no effect on the output, and the page of the run needs it.
    let words = example.split(' ').chain(["--log", "run.log"]);
    let results = output(started(start, home).args(words))?;
    contains(example, &results, RESULTS)
}

/// Runs the other commands, after the first example.
pub(crate) fn check_commands(start: &[String], home: &Path) -> Result<(), String> {
    let readme = read(&root().join("README.md"))?;
    let run = |words: &str| output(started(start, home).args(words.split(' ')));
    contains(PROBE, &run(PROBE)?, "Recommended: block")?;
    run(SHOW)?;
    contains(SHOW, &read(&home.join("run.html"))?, "</html>")?;
    let (_, upstream) = GATEWAY.split_at("serve ".len());
    contains("README.md", &readme, upstream)?;
    contains("README.md", &readme, REQUEST)?;
    let mut serve = started(start, home);
    serve
        .args(GATEWAY.split(' '))
        .args(["--listen", "127.0.0.1:0"]);
    let gateway = Server::start(serve, |line| {
        line.strip_prefix("note: listening on ")?.split(' ').next()
    })?;
    let request = REQUEST.replace("http://127.0.0.1:8080/v1", &gateway.address);
    let mut request = command(&request);
    request.current_dir(home);
    contains(REQUEST, &output(&mut request)?, "\"tool_calls\"")
}

fn contains(what: &str, text: &str, expected: &str) -> Result<(), String> {
    if text.contains(expected) {
        return Ok(());
    }
    Err(format!("{what}: no {expected:?} in: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that need a model or a published client, which other checks run.
    const ELSEWHERE: [&str; 3] = [
        "probe ollama:qwen3 --quick",
        "serve -- opencode",
        "serve --upstream http://localhost:11434/v1",
    ];

    #[test]
    fn a_check_runs_each_command_that_the_readme_names() {
        let readme = read(&root().join("README.md")).unwrap();
        let code = readme.split('`').chain(readme.lines());
        let commands = code.filter_map(|text| text.lines().next()?.strip_prefix("plaincall "));
        let commands: Vec<&str> = commands
            .map(|line| line.split('#').next().unwrap_or(line).trim_end())
            .collect();
        for known in ELSEWHERE.iter().chain(&[PROBE, SHOW]) {
            assert!(commands.contains(known), "README.md does not name {known}");
        }
        for named in commands {
            assert!(
                ELSEWHERE.contains(&named) || [PROBE, SHOW].contains(&named),
                "no check runs {named}"
            );
        }
    }
}
