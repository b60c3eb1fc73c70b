//! Rules for single pages. The README is short, and its Rust lines are part of a program that the tests compile.
//! `docs/coming-from.md` gives a reason for every difference.

use std::path::Path;

use super::links::prose;
use crate::workspace::read;

const README: &str = "README.md";
/// The maximum number of lines of the README, so that it can be read in a minute.
const MAX_LINES: usize = 150;
/// The page with the complete programs. Its tests compile them.
const PROGRAMS: &str = "docs/agents-in-rust.md";
const DIFFERENCES: &str = "docs/coming-from.md";

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
    Ok(problems)
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
}
