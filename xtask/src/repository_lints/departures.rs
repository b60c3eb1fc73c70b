//! `spec/departures.md` lists every paragraph of the specification that begins with `**Departure**`.

use std::path::Path;

use super::links::{anchor, prose};
use crate::workspace::{files, read};

/// The beginning of a departure.
const MARK: &str = "**Departure**";

/// The page that lists all departures.
const PAGE: &str = "departures.md";

/// Returns the errors of the list.
///
/// # Errors
/// Returns an error if a page cannot be read.
pub(crate) fn wrong(root: &Path) -> Result<Vec<String>, String> {
    let spec = root.join("spec");
    let mut pages = Vec::new();
    for path in files(&spec, "md") {
        let name = path.strip_prefix(&spec).unwrap_or(&path);
        let name = name.to_string_lossy().into_owned();
        if name != PAGE && name != "README.md" {
            pages.push((name, read(&path)?));
        }
    }
    Ok(errors(&pages, &read(&spec.join(PAGE))?))
}

/// Returns the errors of the list `page`, for the names and texts of the specification.
fn errors(files: &[(String, String)], page: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expected = Vec::new();
    for (name, text) in files {
        let (lines, stray) = marked(name, text);
        expected.extend(lines);
        wrong.extend(stray.into_iter().map(|number| {
            format!("spec/{name}:{number}: write the departure as a separate paragraph that begins with `{MARK}`")
        }));
    }
    let listed: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("- ["))
        .collect();
    for line in &expected {
        if !listed.contains(&line.as_str()) {
            wrong.push(format!("spec/{PAGE}: add this line: {line}"));
        }
    }
    for line in listed {
        if !expected.iter().any(|one| one == line) {
            wrong.push(format!(
                "spec/{PAGE}: remove this line, which matches no departure: {line}"
            ));
        }
    }
    wrong
}

/// Returns the list entries of one file, and the numbers of lines that mark a departure in mid-text.
fn marked(name: &str, text: &str) -> (Vec<String>, Vec<usize>) {
    let mut section = String::new();
    let mut lines = Vec::new();
    let mut stray = Vec::new();
    for (number, line) in prose(text) {
        if let Some(heading) = line.strip_prefix('#') {
            heading
                .trim_start_matches('#')
                .trim()
                .clone_into(&mut section);
        } else if let Some(rest) = line.strip_prefix(MARK) {
            let file = name.strip_suffix(".md").unwrap_or(name);
            let anchor = anchor(&section);
            lines.push(format!("- [{file}: {section}]({name}#{anchor}){rest}"));
        } else if line.contains(MARK) && !line.contains(PAGE) {
            stray.push(number);
        }
    }
    (lines, stray)
}

#[cfg(test)]
mod tests {
    use super::{errors, wrong};
    use crate::workspace::root;

    #[test]
    fn every_departure_is_listed() {
        assert_eq!(wrong(&root()).unwrap(), [""; 0]);
    }

    #[test]
    fn the_list_is_that_of_the_specification() {
        let spec = "# A\n\n### 1.2 Names, and ids\n\n**Departure** (wider): why.\n";
        let line = "- [a: 1.2 Names, and ids](a.md#12-names-and-ids) (wider): why.";
        let check = |spec: &str, page: &str, expected: &[&str]| {
            let files = [("a.md".to_owned(), spec.to_owned())];
            let found = errors(&files, page);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, part) in found.iter().zip(expected) {
                assert!(found.contains(part), "{found}");
            }
        };
        check(spec, line, &[]);
        check(spec, "", &["add this line: - [a: 1.2"]);
        check("# A\n", line, &["remove this line"]);
        check(
            &spec.replace("why", "how"),
            line,
            &["add this line", "remove this line"],
        );
        check(
            "# A\n\nText (**Departure**, wider).\n",
            "",
            &["a.md:3: write the departure as a separate paragraph"],
        );
        check("# A\n\n```\n**Departure** in an example\n```\n", "", &[]);
    }
}
