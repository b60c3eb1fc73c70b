//! Links in pages of Markdown and HTML: their targets and anchors, and the form of other addresses.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::workspace::{has_extension, name_below, read};

/// The anchors of pages.
type Anchors = HashMap<PathBuf, HashSet<String>>;

/// Returns a message for each broken link of these pages below `root`.
pub(crate) fn broken(root: &Path, pages: &[PathBuf]) -> Result<Vec<String>, String> {
    let mut anchors = Anchors::new();
    let mut broken = Vec::new();
    for page in pages {
        let text = read(page)?;
        let name = name_below(root, page);
        let links = if is_html(page) {
            attributes(&text)
        } else {
            links(&text)
        };
        for (line, link) in links {
            if let Some(problem) = problem(page, &link, &mut anchors)? {
                broken.push(format!("{name}:{line}: {link}: {problem}"));
            }
        }
    }
    Ok(broken)
}

fn is_html(page: &Path) -> bool {
    has_extension(page, "html")
}

/// Returns what is wrong with a link of a page. `anchors` contains those of the pages read so far.
fn problem(page: &Path, link: &str, anchors: &mut Anchors) -> Result<Option<String>, String> {
    if let Some((scheme, address)) = link.split_once("://") {
        return Ok(external_problem(scheme, address).map(str::to_owned));
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => page.to_owned(),
        path => page.parent().unwrap_or(page).join(path),
    };
    // A website does not list folders.
    if !target.exists() || is_html(page) && target.is_dir() {
        return Ok(Some("there is no such file".to_owned()));
    }
    let is_page = is_html(&target) || has_extension(&target, "md");
    if anchor.is_empty() || !is_page {
        return Ok(None);
    }
    if !anchors.contains_key(&target) {
        let text = read(&target)?;
        let found = if is_html(&target) {
            quoted(&text, "id=\"").collect()
        } else {
            headings(&text)
        };
        anchors.insert(target.clone(), found);
    }
    let has_anchor = anchors[&target].contains(anchor);
    Ok((!has_anchor).then(|| format!("the page has no heading `#{anchor}`")))
}

/// Returns what is wrong with the form of an address. Its server is not asked.
fn external_problem(scheme: &str, address: &str) -> Option<&'static str> {
    let host = address.split(['/', '?', '#']).next().unwrap_or_default();
    let is_local = host.starts_with("localhost") || host.starts_with("127.0.0.1");
    if scheme == "http" && !is_local {
        Some("use https")
    } else if !["http", "https"].contains(&scheme) {
        Some("unknown scheme")
    } else if !is_local && !host.contains('.') {
        Some("the address has no host")
    } else if address.contains(char::is_whitespace) {
        Some("the address contains a blank")
    } else {
        None
    }
}

/// Returns the targets of the links, images and reference definitions of a page outside code, with their line numbers.
pub(crate) fn links(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(page) {
        let text: String = line.split('`').step_by(2).collect();
        let definition = text
            .strip_prefix('[')
            .and_then(|text| text.split_once("]: "));
        let definition = definition.map(|(_, target)| target.trim());
        let targets = text.split("](").skip(1);
        let targets = targets.filter_map(|rest| rest.split(')').next());
        for target in targets.chain(definition) {
            // A title may follow.
            let target = target.split(" \"").next().unwrap_or_default();
            found.push((number, target.trim_matches(['<', '>']).to_owned()));
        }
    }
    found
}

/// Returns the links of an HTML page to the same website, with their line numbers.
fn attributes(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, number) in page.lines().zip(1..) {
        for attribute in ["href=\"", "src=\""] {
            let is_own = |link: &String| {
                let path = link.split('#').next().unwrap_or_default();
                !link.is_empty() && !path.contains(':')
            };
            let links = quoted(line, attribute).filter(is_own);
            found.extend(links.map(|link| (number, link)));
        }
    }
    found
}

/// Returns the texts up to the next quote after each `start`.
fn quoted(text: &str, start: &str) -> impl Iterator<Item = String> {
    let parts = text.split(start).skip(1);
    parts.filter_map(|rest| Some(rest.split('"').next()?.to_owned()))
}

/// Returns the numbered lines outside fenced code.
pub(crate) fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    page.lines().enumerate().filter_map(move |(index, line)| {
        let start = line.trim_start();
        let marks = start.len() - start.trim_start_matches(['`', '~']).len();
        match fence {
            None if marks >= 3 => fence = Some(marks),
            Some(open) if marks >= open && start[marks..].trim().is_empty() => fence = None,
            None => return Some((index + 1, line)),
            Some(_) => {}
        }
        None
    })
}

/// Returns the anchors of a page's headings, as GitHub and mdBook derive them.
fn headings(page: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for (_, line) in prose(page).filter(|(_, line)| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim();
        // A link in a heading counts with its text.
        let (text, links) = title.split_once("](").unwrap_or((title, ")"));
        let after = links.split("](").filter_map(|link| link.split_once(')'));
        let text: String = std::iter::once(text)
            .chain(after.map(|(_, text)| text))
            .collect();
        let anchor = anchor(&text);
        let mut unique = anchor.clone();
        let mut number = 0;
        while !anchors.insert(unique.clone()) {
            number += 1;
            unique = format!("{anchor}-{number}");
        }
    }
    anchors
}

/// Returns the anchor of a heading without links.
pub(super) fn anchor(heading: &str) -> String {
    let heading = heading.to_lowercase();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || ['-', '_', ' '].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn links_are_found_outside_code() {
        let page = "[a](x.md) `[b](no)` ![c](y.png \"title\")\n```\n[d](no)\n```\n[e]: https://example.com\n[f](z#a)";
        let expected = [
            (1, "x.md"),
            (1, "y.png"),
            (5, "https://example.com"),
            (6, "z#a"),
        ];
        assert_eq!(
            links(page),
            expected.map(|(line, link)| (line, link.to_owned()))
        );
    }

    #[test]
    fn anchors_of_headings() {
        let page = "# One & `two`\n## Same\n## Same\n```\n# no\n```\n### 3.2. A [link](x) _here_\n";
        let expected = ["one--two", "same", "same-1", "32-a-link-_here_"];
        assert_eq!(headings(page), expected.map(str::to_owned).into());
    }

    #[test]
    fn problems() {
        let page = root().join("README.md");
        let table = [
            ("LICENSE-MIT", false),
            ("no/such.md", true),
            ("ARCHITECTURE.md#invariants", false),
            ("ARCHITECTURE.md#no-such-heading", true),
            ("#no-such-heading", true),
            ("https://example.com/a#b", false),
            ("http://example.com", true),
            ("http://localhost:8080", false),
            ("https://nowhere", true),
            ("ftp://example.com", true),
        ];
        for (link, is_broken) in table {
            let problem = problem(&page, link, &mut HashMap::new()).unwrap();
            assert_eq!(problem.is_some(), is_broken, "{link}: {problem:?}");
        }
    }

    #[test]
    fn links_of_a_website() {
        let folder = crate::workspace::target().join("tmp/links");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        let page = "<a href=\"b.html#x\"><a href=\"b.html#y\">\n<img src=\"no.png\"><a href=\"https://no\"><a href=\"\">\n<h1 id=\"x\"><a href=\"sub\"><a href=\"#x\"><a href=\"#z\">\n";
        let pages = ["a.html", "b.html"].map(|name| folder.join(name));
        std::fs::write(&pages[0], page).unwrap();
        std::fs::write(&pages[1], "<p id=\"x\">").unwrap();
        let expected = [
            "a.html:1: b.html#y: the page has no heading `#y`",
            "a.html:2: no.png: there is no such file",
            "a.html:3: sub: there is no such file",
            "a.html:3: #z: the page has no heading `#z`",
        ];
        assert_eq!(broken(&folder, &pages).unwrap(), expected);
    }
}
