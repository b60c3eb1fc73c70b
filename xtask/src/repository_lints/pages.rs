//! Rules for single pages. The README is short, and its Rust lines are part of a program that the tests compile.
//! `docs/coming-from.md` gives a reason for every difference. `spec/departures.md` lists every paragraph of the specification that
//! begins with `**Departure**`.

use std::path::Path;

use super::links::{anchor, prose};
use crate::workspace::{files, name_below, read};

const README: &str = "README.md";
/// The maximum number of lines of the README, so that it can be read in a minute.
const MAX_LINES: usize = 135;
/// The page with the complete programs. Its tests compile them.
const PROGRAMS: &str = "docs/agents-in-rust.md";
const DIFFERENCES: &str = "docs/coming-from.md";
/// The beginning of a departure.
const MARK: &str = "**Departure**";

/// The page that lists all departures.
const DEPARTURES: &str = "departures.md";

/// Returns what is wrong with these pages.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>, String> {
    let readme = read(&root.join(README))?;
    let mut problems = unknown_lines(&readme, &read(&root.join(PROGRAMS))?);
    let lines = readme.lines().count();
    if lines > MAX_LINES {
        problems.push(format!("{README}: {lines} lines, at most {MAX_LINES}"));
    }
    let rows = rows_without_reason(&read(&root.join(DIFFERENCES))?);
    let message = |row| format!("{DIFFERENCES}:{row}: give the reason in the last column");
    problems.extend(rows.into_iter().map(message));
    problems.extend(departures(root)?);
    Ok(problems)
}

/// Returns the errors of the list.
fn departures(root: &Path) -> Result<Vec<String>, String> {
    let spec = root.join("spec");
    let mut pages = Vec::new();
    for path in files(&spec, "md") {
        let name = name_below(&spec, &path);
        if name != DEPARTURES && name != "README.md" {
            pages.push((name, read(&path)?));
        }
    }
    Ok(errors(&pages, &read(&spec.join(DEPARTURES))?))
}

/// Returns the errors of the list `page`, for the names and texts of the specification.
fn errors(pages: &[(String, String)], page: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expected = Vec::new();
    for (name, text) in pages {
        let mut section = "";
        for (number, line) in prose(text) {
            if line.starts_with('#') {
                section = line.trim_start_matches('#').trim();
            } else if let Some(rest) = line.strip_prefix(MARK) {
                let file = name.strip_suffix(".md").unwrap_or(name);
                let anchor = anchor(section);
                expected.push(format!("- [{file}: {section}]({name}#{anchor}){rest}"));
            } else if line.contains(MARK) && !line.contains(DEPARTURES) {
                wrong.push(format!("spec/{name}:{number}: write the departure as a separate paragraph that begins with `{MARK}`"));
            }
        }
    }
    let listed: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("- ["))
        .collect();
    let missing = expected
        .iter()
        .filter(|line| !listed.contains(&line.as_str()));
    wrong.extend(missing.map(|line| format!("spec/{DEPARTURES}: add this line: {line}")));
    let unknown = listed
        .iter()
        .filter(|line| !expected.iter().any(|one| one == *line));
    wrong.extend(unknown.map(|line| {
        format!("spec/{DEPARTURES}: remove this line, which matches no departure: {line}")
    }));
    wrong
}

/// Returns a message for each Rust line of the README that does not follow the previous ones in `programs`.
fn unknown_lines(readme: &str, programs: &str) -> Vec<String> {
    let unknown = readme.split("```rust").skip(1).filter_map(|block| {
        let mut programs = programs.lines().map(str::trim);
        let code = block.split("```").next().unwrap_or_default();
        let mut lines = code.lines().skip(1).map(str::trim);
        lines.find(|line| !line.is_empty() && !programs.any(|other| other == *line))
    });
    unknown
        .map(|line| format!("{README}: `{line}` is not in {PROGRAMS}"))
        .collect()
}

/// Returns the line numbers of the rows of tables whose last cell is empty.
fn rows_without_reason(page: &str) -> Vec<usize> {
    let rows = prose(page).filter_map(|(number, line)| {
        let row = line.trim_end().strip_prefix('|')?.strip_suffix('|')?;
        let reason = row.rsplit('|').next()?;
        reason.trim().is_empty().then_some(number)
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_must_be_in_a_program_in_their_order() {
        let programs = "    let a = 1;\n    // why\n    let b = a;\n";
        let table = [
            ("let a = 1;\nlet b = a;\n", 0),
            ("let b = a;\nlet a = 1;\n", 1),
            ("let c = 1;\n", 1),
        ];
        for (code, count) in table {
            let readme = format!("text\n```rust,ignore\n{code}```\nmore");
            assert_eq!(unknown_lines(&readme, programs).len(), count, "{code}");
        }
    }

    #[test]
    fn rows_need_a_reason() {
        let page = "| | theirs | reason |\n| --- | --- | --- |\n| a | b | c |\n| a | b | |\n| a | b ||\ntext\n";
        assert_eq!(rows_without_reason(page), [4, 5]);
    }

    #[test]
    fn the_list_is_that_of_the_specification() {
        let spec = "# A\n\n### 1.2 Names, and ids\n\n**Departure** (wider): why.\n";
        let line = "- [a: 1.2 Names, and ids](a.md#12-names-and-ids) (wider): why.";
        let changed = spec.replace("why", "how");
        let stray = "# A\n\nText (**Departure**, wider).\n";
        let stray_error = "a.md:3: write the departure as a separate paragraph";
        let fenced = "# A\n\n```\n**Departure** in an example\n```\n";
        let table: [(&str, &str, &[&str]); 6] = [
            (spec, line, &[]),
            (spec, "", &["add this line: - [a: 1.2"]),
            ("# A\n", line, &["remove this line"]),
            (&changed, line, &["add this line", "remove this line"]),
            (stray, "", &[stray_error]),
            (fenced, "", &[]),
        ];
        for (spec, page, expected) in table {
            let found = errors(&[("a.md".to_owned(), spec.to_owned())], page);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, part) in found.iter().zip(expected) {
                assert!(found.contains(part), "{found}");
            }
        }
    }
}
