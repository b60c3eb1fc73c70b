//! `spec/departures.md` lists every paragraph of the specification that begins with `**Departure**`.

use std::path::Path;

/// The beginning of a departure.
const MARK: &str = "**Departure**";

/// The page that lists all departures.
pub(crate) const PAGE: &str = "departures.md";

/// Returns the errors of the list. `files` are the names and texts of the specification, `page` is the text of the list.
pub(crate) fn wrong(files: &[(String, String)], page: &str) -> Vec<String> {
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
    // The number of backticks of the open fence.
    let mut fence = None;
    for (index, line) in text.lines().enumerate() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        if let Some(open) = fence {
            if ticks >= open && line.trim_end().len() == ticks {
                fence = None;
            }
        } else if ticks >= 3 {
            fence = Some(ticks);
        } else if let Some(heading) = line.strip_prefix('#') {
            heading
                .trim_start_matches('#')
                .trim()
                .clone_into(&mut section);
        } else if let Some(rest) = line.strip_prefix(MARK) {
            let file = name.strip_suffix(".md").unwrap_or(name);
            let anchor = anchor(&section);
            lines.push(format!("- [{file}: {section}]({name}#{anchor}){rest}"));
        } else if line.contains(MARK) && !line.contains(PAGE) {
            stray.push(index + 1);
        }
    }
    (lines, stray)
}

/// Returns the link anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The names and texts of the files in `spec/` that may mark departures.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn files(spec: &Path) -> Result<Vec<(String, String)>, String> {
    let entries = std::fs::read_dir(spec).map_err(|error| format!("spec: {error}"))?;
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().extension().is_some_and(|end| end == "md")
            && name != PAGE
            && name != "README.md"
        {
            let text = std::fs::read_to_string(entry.path());
            files.push((
                name.clone(),
                text.map_err(|error| format!("spec/{name}: {error}"))?,
            ));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{PAGE, files, wrong};

    #[test]
    fn every_departure_is_listed() {
        let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec");
        let page = std::fs::read_to_string(spec.join(PAGE)).unwrap();
        let wrong = wrong(&files(&spec).unwrap(), &page);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_list_is_that_of_the_specification() {
        let spec = "# A\n\n### 1.2 Names, and ids\n\n**Departure** (wider): why.\n";
        let line = "- [a: 1.2 Names, and ids](a.md#12-names-and-ids) (wider): why.";
        let check = |spec: &str, page: &str, expected: &[&str]| {
            let files = [("a.md".to_owned(), spec.to_owned())];
            let found = wrong(&files, page);
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
