//! Lists banned words in texts and names (CONTRIBUTING.md, "Words"). `xtask/words.txt` lists the words and the files.

use std::ffi::OsStr;
use std::path::Path;

use crate::workspace::{all_files, has_extension, name_below, no_problems, read};

const LISTS: &str = include_str!("../../words.txt");

/// Banned words that are also the names of tools in tests. In tests, only comments are checked for them, and nowhere code spans.
const TOOL_NAMES: &[&str] = &["say", "saying"];

/// Banned words that are correct in names, such as the position of a cut. In Rust, only comments are checked for them.
const PROSE_ONLY: &[&str] = &["cut"];

/// The words that may follow "is no" and "are no". Everything else "is not a …".
const AFTER_NO: &str = "different further longer match more other such";

/// The first words of doc comments that describe nothing. A doc comment begins with a verb or a noun phrase.
const BANNED_BEGINNINGS: &[&str] = &["What ", "Who ", "Whether it "];

/// The extensions of files that are checked.
const EXTENSIONS: &[&str] = &["rs", "md", "html", "js", "toml", "txt"];

fn list(name: &str) -> impl Iterator<Item = &'static str> + Clone {
    let (_, list) = LISTS
        .split_once(&format!("\n[{name}]\n"))
        .unwrap_or_default();
    let list = list.lines().take_while(|line| !line.starts_with('['));
    list.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns every banned word in the files that are checked.
pub(crate) fn banned(root: &Path) -> Result<Vec<String>, String> {
    banned_below(root, list("checked"))
}

/// Prints every banned word in these files and folders.
pub(crate) fn print(root: &Path, places: &[&str]) -> Result<(), String> {
    no_problems(
        "banned words:",
        &banned_below(root, places.iter().copied())?,
    )
}

fn banned_below<'p>(
    root: &Path,
    places: impl Iterator<Item = &'p str>,
) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for path in places.map(|place| root.join(place)) {
        let mut files = vec![path.clone()];
        if path.is_dir() {
            files = all_files(&path);
            files.retain(|file| EXTENSIONS.iter().any(|end| has_extension(file, end)));
        }
        for file in files {
            let name = name_below(root, &file);
            if !list("exempt").any(|part| name.starts_with(part) || name.ends_with(part)) {
                found.extend(banned_in(&name, &read(&file)?));
            }
        }
    }
    Ok(found)
}

fn banned_in(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_rust = has_extension(Path::new(name), "rs");
    let is_allowed =
        |word: &str| list("allowed").any(|line| line.split_once(": ") == Some((word, name)));
    let banned = list("banned").filter_map(|line| line.split_once(": "));
    let banned: Vec<_> = banned.filter(|(word, _)| !is_allowed(word)).collect();
    let mut is_fenced = false;
    for (line, number) in text.lines().zip(1..) {
        if !is_rust && line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        // The changelog quotes old names.
        let line = &match name {
            "CHANGELOG.md" => without_code(line),
            _ => line.to_owned(),
        };
        let mut report = |message: &str| found.push(format!("{name}:{number}: {message}"));
        if is_rust && has_banned_beginning(line) {
            report("begin the doc comment with a verb or a noun phrase");
        }
        if has_negated_noun(line) {
            report("`is no X`: write is not a");
        }
        let all = words(line);
        let prose = words(&without_code(comment(name, line)));
        let (_, comment) = line.split_once("//").unwrap_or_default();
        let comment = words(&without_code(comment));
        for (word, better) in &banned {
            let words = match *word {
                word if PROSE_ONLY.contains(&word) && is_rust => &comment,
                word if PROSE_ONLY.contains(&word) || TOOL_NAMES.contains(&word) => &prose,
                _ => &all,
            };
            if words.contains(&format!(" {word} ")) {
                report(&format!("`{word}`: write {better}"));
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

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Returns the words of a line in lower case, with one space before and after each, and with names split into words.
fn words(line: &str) -> String {
    let mut words = " ".to_owned();
    let mut was_lower = false;
    for c in line.chars() {
        let is_letter = c.is_alphanumeric() || c == '\'';
        if (!is_letter || was_lower && c.is_uppercase()) && !words.ends_with(' ') {
            words.push(' ');
        }
        if is_letter {
            words.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words + " "
}

#[cfg(test)]
mod tests {
    use super::{banned_in, list, words};

    #[test]
    fn names_are_split() {
        let expected = " is deaf one's x told said  ";
        assert_eq!(words("  /// `isDeaf`: one's x_told, SAID."), expected);
    }

    #[test]
    fn words_are_banned_where_they_count() {
        let tools = "say(1); // they say\n`say`";
        let documents = "/// What it does.\n/// The text.\n    //! Who wrote it.\n// What is this?";
        let negated =
            "This is no record.\nThere is no record.\nIt is no longer here.\nThere\nare no files.";
        let table = [
            ("CHANGELOG.md", "- `told` -> `message`\n- told", 1),
            ("a.md", "- `told` -> `message`\n- told", 2),
            ("crates/a/tests/b.rs", tools, 1),
            ("crates/a/src/b.rs", tools, 1),
            ("a.md", tools, 1),
            ("a.txt", tools, 0),
            ("a.toml", "[tools.say]\n# They say.", 1),
            ("crates/a/src/b.rs", documents, 2),
            ("crates/a/tests/b.rs", documents, 2),
            ("a.md", negated, 1),
            ("a.rs", "cut(); // It is cut.", 1),
            ("spec/gateway.md", "a refusal, told", 1),
            ("spec/block.md", "a refusal, told", 2),
        ];
        for (name, text, count) in table {
            let found = banned_in(name, text);
            assert_eq!(found.len(), count, "{name}: {text}: {found:?}");
        }
        let text = "fine\nIt goes\non. It Goes on.\n```\ntold\n```\nfn was_told()";
        let expected = [
            "a.md:3: `goes on`: write continues",
            "a.md:7: `told`: write message, record, report",
        ];
        assert_eq!(banned_in("a.md", text), expected);
    }

    #[test]
    fn lists_have_their_lines() {
        assert_eq!(list("banned").next(), Some("told: message, record, report"));
        assert!(list("checked").any(|line| line == "crates"));
        assert_eq!(list("nothing").next(), None);
        let is_pair = |line: &str| line.split_once(": ").is_some();
        assert!(list("banned").chain(list("allowed")).all(is_pair));
    }
}
