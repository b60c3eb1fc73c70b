//! Lists banned words in texts and names (CONTRIBUTING.md, "Words").

use std::path::Path;

use crate::repository_lints::{files, read};

/// Banned words and phrases, with their replacements. Names are split into words first.
const BANNED: &[(&str, &str)] = &[
    ("told", "message, record, report"),
    ("tell", "report, show"),
    ("tells", "reports, shows"),
    ("teller", "author"),
    ("hear", "receive, observe"),
    ("hears", "receives, gets"),
    ("heard", "received, observed"),
    ("ears", "observe_untrusted, untrusted text"),
    ("foreign", "untrusted"),
    ("vouch", "assert trust"),
    ("passage", "prompt text"),
    ("taken up", "resumed"),
    ("take up", "resume"),
    ("takes up", "resumes"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("call off", "cancel"),
    ("called off", "cancelled"),
    ("calls off", "cancels"),
    ("calling off", "cancelling"),
    ("broke off", "was truncated"),
    ("breaks off", "is truncated"),
    ("cut off", "truncated"),
    ("given up", "failed after N retries, abandoned"),
    ("lets go", "closes, releases"),
    ("by itself", "by default, automatically"),
    ("by themselves", "by default, automatically"),
    ("if nothing is said", "by default"),
    ("whoever", "the operator, the caller, anyone who"),
    ("whatever", "any, every"),
    ("one's own", "your own"),
    ("own machine", "localhost, this machine"),
    ("stands", "is, appears"),
    ("stood", "was, appeared"),
    ("says", "states, reports, defines"),
    ("said", "stated, reported, written"),
    ("is to be", "must be, should be"),
    ("are to be", "must be, should be"),
    ("nobody", "no one, nothing; or name the subject"),
    ("somebody", "someone, a user"),
    ("door", "parser, endpoint, API"),
    ("soup", "arbitrary texts"),
    ("mended", "fixed"),
    ("mends", "fixes"),
    ("mending", "repair"),
    ("judging", "validation"),
    ("settlement", "recovery"),
    ("refusal", "error"),
    ("equipment", "configuration"),
    ("surroundings", "context"),
    ("hopeless", "unrecoverable"),
    ("misfit", "error"),
    ("complaint", "error, diagnostic"),
];

/// Files and folders that are checked.
const CLEAN: &[&str] = &[
    "ARCHITECTURE.md",
    CHANGELOG,
    "COMPARE.md",
    "CONTRIBUTING.md",
    "DESIGN.md",
    "PROMISES.md",
    "README.md",
    "SECURITY.md",
    "bench",
    "conformance",
    "crates",
    "docs",
    "examples",
    "fuzz/README.md",
    "fuzz/fuzz_targets",
    "spec",
    "testing",
    "xtask/src",
];

/// The file that lists the banned words.
const THIS_FILE: &str = "xtask/src/words.rs";

/// The file that quotes old names, as code.
const CHANGELOG: &str = "CHANGELOG.md";

/// Files in which a banned word is correct, with the word.
const EXCEPTIONS: &[(&str, &str)] = &[
    // A key and a finish reason of the APIs.
    ("crates/agent/src/model/openai.rs", "refusal"),
    ("crates/agent/tests/models/answers.rs", "refusal"),
    // A recorded reply.
    ("crates/agent/tests/models/recorded.rs", "says"),
    // The key of the OpenAI API, and texts of replies.
    ("crates/gateway/src/reply.rs", "refusal"),
    ("crates/gateway/src/api/encoder.rs", "refusal"),
    ("crates/gateway/src/api/chat/complete.rs", "refusal"),
    ("crates/gateway/src/api/chat/streamed.rs", "refusal"),
    ("crates/gateway/src/translate/client_texts.rs", "refusal"),
    ("crates/gateway/src/translate/conversation.rs", "refusal"),
    ("crates/wire/src/anthropic/response.rs", "refusal"),
    ("crates/wire/src/openai/chunk.rs", "refusal"),
    ("crates/wire/src/openai/chunk_writer.rs", "refusal"),
    ("crates/wire/src/openai/content.rs", "refusal"),
    ("crates/wire/src/openai/finish.rs", "refusal"),
    ("crates/wire/src/openai/message.rs", "refusal"),
    ("crates/gateway/tests/replies/repaired.rs", "refusal"),
    ("crates/gateway/tests/replies/repaired.rs", "says"),
    ("crates/gateway/tests/translate.rs", "refusal"),
    ("crates/wire/tests/chunk_writer.rs", "refusal"),
    ("crates/wire/tests/streams.rs", "says"),
    // The key of the OpenAI API.
    ("crates/cli/src/commands/render/messages.rs", "refusal"),
    // An error text of the syntax.
    ("crates/plaincall/tests/runs/statuses.rs", "cut off"),
    // A finish reason of other servers.
    ("spec/gateway.md", "refusal"),
];

/// Returns every banned word in the clean files.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub(crate) fn banned(root: &Path) -> Result<Vec<String>, String> {
    banned_below(root, CLEAN)
}

/// Prints every banned word in these files and folders.
///
/// # Errors
/// Returns an error if a file cannot be read, or if there is a banned word.
pub(crate) fn list(root: &Path, places: &[&str]) -> Result<(), String> {
    let found = banned_below(root, places)?;
    if found.is_empty() {
        return Ok(());
    }
    println!("{}", found.join("\n"));
    Err(format!("{} banned words", found.len()))
}

fn banned_below(root: &Path, places: &[&str]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for place in places {
        let path = root.join(place);
        let files = if path.is_dir() {
            [files(&path, "rs"), files(&path, "md")].concat()
        } else {
            vec![path]
        };
        for file in files {
            let name = file.strip_prefix(root).unwrap_or(&file);
            let name = name.display().to_string();
            if name != THIS_FILE {
                found.extend(banned_in(&name, &read(&file)?));
            }
        }
    }
    Ok(found)
}

fn banned_in(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_rust = Path::new(name).extension().is_some_and(|it| it == "rs");
    let mut is_fenced = false;
    for (index, line) in text.lines().enumerate() {
        if !is_rust && line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        // The changelog quotes old names.
        let line = if name == CHANGELOG {
            &without_code(line)
        } else {
            line
        };
        let words = format!(" {} ", words(line));
        let banned = BANNED.iter().filter(|(word, _)| {
            words.contains(&format!(" {word} ")) && !EXCEPTIONS.contains(&(name, *word))
        });
        found.extend(
            banned.map(|(word, better)| format!("{name}:{}: `{word}`: write {better}", index + 1)),
        );
    }
    found
}

/// Returns the line without its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Returns the words of a line in lower case, separated by one space, with names split into words.
fn words(line: &str) -> String {
    let mut words = String::new();
    let mut was_lower = false;
    for c in line.chars() {
        if !c.is_alphanumeric() && c != '\'' {
            if !words.ends_with(' ') {
                words.push(' ');
            }
        } else {
            if was_lower && c.is_uppercase() {
                words.push(' ');
            }
            words.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{banned_in, words};

    #[test]
    fn names_are_split() {
        assert_eq!(
            words("  /// `isDeaf`: one's x_told, SAID."),
            "is deaf one's x told said"
        );
    }

    #[test]
    fn the_changelog_may_quote_old_names() {
        let text = "- `told` -> `message`\n- told";
        assert_eq!(banned_in("CHANGELOG.md", text).len(), 1);
        assert_eq!(banned_in("a.md", text).len(), 2);
    }

    #[test]
    fn lines_with_banned_words_are_named() {
        let found = banned_in(
            "a.md",
            "fine\nIt goes\non. It Goes on.\n```\ntold\n```\nfn was_told()",
        );
        assert_eq!(
            found,
            [
                "a.md:3: `goes on`: write continues",
                "a.md:7: `told`: write message, record, report",
            ]
        );
    }
}
