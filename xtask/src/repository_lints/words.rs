//! Lists banned words in texts and names (CONTRIBUTING.md, "Words"). `xtask/words.txt` lists the words and the files.

use crate::workspace::{files, read};
use std::ffi::OsStr;
use std::path::Path;

/// The lists.
const LISTS: &str = include_str!("../../words.txt");

/// Banned words that are also the names of tools in tests. In tests, only comments are checked for them, and nowhere code
/// spans.
const TOOL_NAMES: &[&str] = &["say", "saying"];

/// Banned words that are correct in names, such as the position of a cut. In Rust, only comments are checked for them.
const PROSE_ONLY: &[&str] = &["cut"];

/// The words that may follow "is no" and "are no". Everything else "is not a …".
const AFTER_NO: &str = "different further longer match more other such";

/// The first words of doc comments that describe nothing. A doc comment begins with a verb or a noun phrase.
const BANNED_BEGINNINGS: &[&str] = &["What ", "Who ", "Whether it "];

/// The extensions of files that are checked.
const EXTENSIONS: &[&str] = &["rs", "md", "html", "js", "toml", "txt"];

/// The file that quotes old names, as code.
const CHANGELOG: &str = "CHANGELOG.md";

/// Returns the lines of a list.
fn list(name: &str) -> impl Iterator<Item = &'static str> + Clone {
    let (_, list) = LISTS
        .split_once(&format!("\n[{name}]\n"))
        .unwrap_or_default();
    let list = list.lines().take_while(|line| !line.starts_with('['));
    list.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns every banned word in the files that are checked.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub(crate) fn banned(root: &Path) -> Result<Vec<String>, String> {
    banned_below(root, list("checked"))
}

/// Prints every banned word in these files and folders.
///
/// # Errors
/// Returns an error if a file cannot be read, or if there is a banned word.
pub(crate) fn print(root: &Path, places: &[&str]) -> Result<(), String> {
    let found = banned_below(root, places.iter().copied())?;
    if found.is_empty() {
        return Ok(());
    }
    println!("{}", found.join("\n"));
    Err(format!("{} banned words", found.len()))
}

fn banned_below<'p>(
    root: &Path,
    places: impl Iterator<Item = &'p str>,
) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for path in places.map(|place| root.join(place)) {
        let files: Vec<_> = if path.is_dir() {
            let of = |extension: &&str| files(&path, extension);
            EXTENSIONS.iter().flat_map(of).collect()
        } else {
            vec![path]
        };
        for file in files {
            let name = file.strip_prefix(root).unwrap_or(&file);
            let name = name.display().to_string();
            if !list("exempt").any(|part| name.starts_with(part) || name.ends_with(part)) {
                found.extend(banned_in(&name, &read(&file)?));
            }
        }
    }
    Ok(found)
}

fn banned_in(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_rust = Path::new(name).extension().is_some_and(|it| it == "rs");
    let is_allowed =
        |word: &str| list("allowed").any(|line| line.split_once(": ") == Some((word, name)));
    let banned: Vec<_> = list("banned")
        .filter_map(|line| line.split_once(": "))
        .collect();
    let mut is_fenced = false;
    for (line, number) in text.lines().zip(1..) {
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
        if is_rust && has_banned_beginning(line) {
            found.push(format!(
                "{name}:{number}: begin the doc comment with a verb or a noun phrase"
            ));
        }
        if has_negated_noun(line) {
            found.push(format!("{name}:{number}: `is no X`: write is not a"));
        }
        let all = words(line);
        let prose = words(&without_code(comment(name, line)));
        let comment_only = if is_rust {
            let (_, comment) = line.split_once("//").unwrap_or_default();
            words(&without_code(comment))
        } else {
            prose.clone()
        };
        for (word, better) in &banned {
            let words = if PROSE_ONLY.contains(word) {
                &comment_only
            } else if TOOL_NAMES.contains(word) {
                &prose
            } else {
                &all
            };
            if words.contains(&format!(" {word} ")) && !is_allowed(word) {
                found.push(format!("{name}:{number}: `{word}`: write {better}"));
            }
        }
    }
    found
}

/// Returns whether a line is a doc comment with a banned beginning. Only the first line of a comment begins a sentence with a
/// capital letter there, so continued lines are not concerned.
fn has_banned_beginning(line: &str) -> bool {
    let line = line.trim_start();
    let text = line
        .strip_prefix("/// ")
        .or_else(|| line.strip_prefix("//! "));
    text.is_some_and(|text| BANNED_BEGINNINGS.iter().any(|word| text.starts_with(word)))
}

/// Returns whether a line contains "is no X" or "are no X", but not after "there" or at the beginning of the line, where
/// "there" may be the last word of the line before.
fn has_negated_noun(line: &str) -> bool {
    let line = line.to_lowercase().replace('_', " ");
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(4).any(|words| {
        matches!(words, [before, "is" | "are", "no", after]
            if !before.ends_with("there") && !AFTER_NO.split(' ').any(|word| word == *after))
    })
}

/// Returns the comment of a line if the file is a test or data, otherwise the line.
fn comment<'a>(name: &str, line: &'a str) -> &'a str {
    let mark = match Path::new(name).extension().and_then(OsStr::to_str) {
        Some("rs") if name.contains("tests/") => "//",
        Some("toml" | "txt") => "# ",
        _ => return line,
    };
    line.split_once(mark).map_or("", |(_, comment)| comment)
}

/// Returns the line without its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Returns the words of a line in lower case, with one space before and after each, and with names split into words.
fn words(line: &str) -> String {
    let mut words = " ".to_owned();
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
    if !words.ends_with(' ') {
        words.push(' ');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{banned_in, list, words};

    #[test]
    fn names_are_split() {
        assert_eq!(
            words("  /// `isDeaf`: one's x_told, SAID."),
            " is deaf one's x told said "
        );
    }

    #[test]
    fn the_changelog_may_quote_old_names() {
        let text = "- `told` -> `message`\n- told";
        assert_eq!(banned_in("CHANGELOG.md", text).len(), 1);
        assert_eq!(banned_in("a.md", text).len(), 2);
    }

    #[test]
    fn tests_may_name_tools() {
        let text = "say(1); // they say\n`say`";
        assert_eq!(banned_in("crates/a/tests/b.rs", text).len(), 1);
        assert_eq!(banned_in("crates/a/src/b.rs", text).len(), 1);
        assert_eq!(banned_in("a.md", text).len(), 1);
        assert_eq!(banned_in("a.txt", text).len(), 0);
        assert_eq!(banned_in("a.toml", "[tools.say]\n# They say.").len(), 1);
    }

    #[test]
    fn doc_comments_begin_with_a_verb_or_a_noun() {
        let text = "/// What it does.\n/// The text.\n    //! Who wrote it.\n// What is this?";
        assert_eq!(banned_in("crates/a/src/b.rs", text).len(), 2);
        assert_eq!(banned_in("crates/a/tests/b.rs", text).len(), 2);
    }

    #[test]
    fn negated_nouns_are_found() {
        let text =
            "This is no record.\nThere is no record.\nIt is no longer here.\nThere\nare no files.";
        assert_eq!(banned_in("a.md", text).len(), 1);
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

    #[test]
    fn lists_have_their_lines() {
        assert_eq!(list("banned").next(), Some("told: message, record, report"));
        assert!(list("checked").any(|line| line == "crates"));
        assert_eq!(list("nothing").next(), None);
        let is_pair = |line: &str| line.split_once(": ").is_some();
        assert!(list("banned").chain(list("allowed")).all(is_pair));
        assert_eq!(banned_in("spec/gateway.md", "a refusal, told").len(), 1);
        assert_eq!(banned_in("spec/block.md", "a refusal, told").len(), 2);
    }
}
