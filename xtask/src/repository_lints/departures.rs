//! `spec/departures.md` lists every paragraph of the specification that begins with `**Departure**`.

use std::path::Path;

use super::links::{anchor, prose};
use crate::workspace::{files, name_below, read};

/// The beginning of a departure.
const MARK: &str = "**Departure**";

/// The page that lists all departures.
const PAGE: &str = "departures.md";

/// Returns the errors of the list.
pub(crate) fn wrong(root: &Path) -> Result<Vec<String>, String> {
    let spec = root.join("spec");
    let mut pages = Vec::new();
    for path in files(&spec, "md") {
        let name = name_below(&spec, &path);
        if name != PAGE && name != "README.md" {
            pages.push((name, read(&path)?));
        }
    }
    Ok(errors(&pages, &read(&spec.join(PAGE))?))
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
            } else if line.contains(MARK) && !line.contains(PAGE) {
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
    wrong.extend(missing.map(|line| format!("spec/{PAGE}: add this line: {line}")));
    let unknown = listed
        .iter()
        .filter(|line| !expected.iter().any(|one| one == *line));
    wrong.extend(
        unknown.map(|line| {
            format!("spec/{PAGE}: remove this line, which matches no departure: {line}")
        }),
    );
    wrong
}

#[cfg(test)]
mod tests {
    use super::errors;

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
