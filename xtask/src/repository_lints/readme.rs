//! The README: short, and its Rust lines are part of a program that the tests compile.

use std::path::Path;

use crate::workspace::read;

/// The maximum number of lines, so that it can be read in a minute.
const MAX_LINES: usize = 150;

/// The page with the complete programs. Its tests compile them.
const PROGRAMS: &str = "docs/agents-in-rust.md";

/// Returns what is wrong with the README.
///
/// # Errors
/// Returns an error if a page cannot be read.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>, String> {
    let readme = read(&root.join("README.md"))?;
    let mut problems = unknown_lines(&readme, &read(&root.join(PROGRAMS))?);
    let lines = readme.lines().count();
    if lines > MAX_LINES {
        problems.push(format!("README.md: {lines} lines, at most {MAX_LINES}"));
    }
    Ok(problems)
}

/// Returns a message for each Rust line of the README that does not follow the previous ones in `programs`.
fn unknown_lines(readme: &str, programs: &str) -> Vec<String> {
    let mut unknown = Vec::new();
    for block in readme.split("```rust").skip(1) {
        let mut programs = programs.lines().map(str::trim);
        let code = block.split("```").next().unwrap_or_default();
        for line in code.lines().skip(1).map(str::trim) {
            if !line.is_empty() && !programs.any(|other| other == line) {
                unknown.push(format!("README.md: `{line}` is not in {PROGRAMS}"));
                break;
            }
        }
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_must_be_in_a_program_in_their_order() {
        let programs = "    let a = 1;\n    // why\n    let b = a;\n";
        let block = |code: &str| format!("text\n```rust,ignore\n{code}```\nmore");
        assert!(unknown_lines(&block("let a = 1;\nlet b = a;\n"), programs).is_empty());
        assert_eq!(
            unknown_lines(&block("let b = a;\nlet a = 1;\n"), programs).len(),
            1
        );
        assert_eq!(unknown_lines(&block("let c = 1;\n"), programs).len(), 1);
    }
}
