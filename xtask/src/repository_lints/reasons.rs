//! `docs/coming-from.md` gives a reason for every difference.

use std::path::Path;

use super::links::prose;
use crate::workspace::read;

const PAGE: &str = "docs/coming-from.md";

/// Returns a message for each row of a table without a reason.
///
/// # Errors
/// Returns an error if the page cannot be read.
pub(crate) fn missing(root: &Path) -> Result<Vec<String>, String> {
    let page = read(&root.join(PAGE))?;
    let rows = rows_without_reason(&page).into_iter();
    Ok(rows
        .map(|number| format!("{PAGE}:{number}: give the reason in the last column"))
        .collect())
}

/// Returns the line numbers of the rows whose last cell is empty.
fn rows_without_reason(page: &str) -> Vec<usize> {
    prose(page)
        .filter_map(|(number, line)| {
            let row = line.trim_end().strip_prefix('|')?.strip_suffix('|')?;
            let reason = row.rsplit('|').next()?;
            reason.trim().is_empty().then_some(number)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_need_a_reason() {
        let page = "| | theirs | reason |\n| --- | --- | --- |\n| a | b | c |\n| a | b | |\n| a | b ||\ntext\n";
        assert_eq!(rows_without_reason(page), [4, 5]);
    }
}
