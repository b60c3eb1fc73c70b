//! Builds the documentation as a website with mdBook.
//! Pages keep their places in the repository, so that the same links work in both.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::pool::Job;
use crate::repository_lints::links;
use crate::step::{copy, report, step};
use crate::workspace::{
    at, files, has_extension, name_below, new_folder, no_problems, read, root, write,
};
use crate::{inspector, python, tools};

const VERSION: &str = "0.5.4";

/// The page about the inspector, its sentence about the website, and the link that the website has instead.
const INSPECTOR: (&str, &str, &str) = (
    "docs/inspector.md",
    "The website contains it.",
    "[Open the inspector](../inspector.html).",
);

const SUMMARY: &str = "docs/SUMMARY.md";

/// Returns the job that builds the website in `target/site` and checks its links. It fails if mdBook does, a page of the
/// documentation is not listed, or a link is broken.
pub(crate) fn job() -> Job {
    Job::new("site", "site", 10, || build(&root())).needs(&[inspector::PAGE, python::UV])
}

fn build(root: &Path) -> Result<(), String> {
    // It needs neither its server nor its file watcher.
    let features = "--no-default-features --features search";
    let program = tools::published("mdbook", VERSION, features)?;
    assemble(root, &new_folder(&root.join("target/book"))?)?;
    let site = new_folder(&root.join("target/site"))?;
    step("site", Command::new(program).arg("build").arg(root))?;
    if let Some(page) = inspector::page() {
        copy(&page, &site)?;
    }
    // The pages for printing and for unknown addresses repeat the others.
    let skipped = ["print.html", "404.html", "toc.html"];
    let mut pages = files(&site, "html");
    pages.retain(|page| !skipped.iter().any(|skipped| *page == site.join(skipped)));
    no_problems("broken links:", &links::broken(&site, &pages)?)?;
    report!("== the website is in {}", site.display());
    Ok(())
}

/// Copies the listed pages, and the files that they link to, into the source folder of the book.
fn assemble(root: &Path, source: &Path) -> Result<(), String> {
    let summary = read(&root.join(SUMMARY))?;
    let mut pages = Vec::new();
    let mut parts = summary.split("](");
    let mut list = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (link, rest) = part.split_once(')').unwrap_or((part, ""));
        let page = match link.strip_prefix("../") {
            Some(page) => page.to_owned(),
            None => format!("docs/{link}"),
        };
        list.extend(["](", &renamed(&page), ")", rest]);
        pages.push(page);
    }
    for page in files(&root.join("docs"), "md") {
        let name = name_below(root, &page);
        if name != SUMMARY && !pages.contains(&name) {
            return Err(format!("{SUMMARY} does not list {name}"));
        }
    }
    for page in &pages {
        let text = read(&root.join(page))?;
        let mut page_text = text.clone();
        if page == INSPECTOR.0 {
            if !text.contains(INSPECTOR.1) {
                return Err(format!("{page} does not contain `{}`", INSPECTOR.1));
            }
            page_text = page_text.replace(INSPECTOR.1, INSPECTOR.2);
        }
        for (_, link) in links::links(&text) {
            let path = link.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            let target = Path::new(page).with_file_name(path);
            if root.join(&target).is_dir() {
                page_text = without_link(&page_text, &link);
            } else if !has_extension(&target, "md") {
                let from = root.join(&target);
                write(&source.join(target), fs::read(&from).map_err(at(&from))?)?;
            } else {
                let to = format!("]({})", renamed(&link));
                page_text = page_text.replace(&format!("]({link})"), &to);
            }
        }
        write(&source.join(renamed(page)), page_text)?;
    }
    write(&source.join("SUMMARY.md"), list)
}

/// Returns the name of a page in the book. mdBook would turn a README into the index of its folder, but not the links to it.
fn renamed(page: &str) -> String {
    page.replace("README.md", "index.md")
}

/// Replaces links to a folder, which a website does not list, by their text.
fn without_link(page: &str, link: &str) -> String {
    let end = format!("]({link})");
    let mut text = page.to_owned();
    while let Some((front, back)) = text.split_once(&end) {
        let (before, title) = front.rsplit_once('[').unwrap_or(("", front));
        text = format!("{before}{title}{back}");
    }
    text
}
