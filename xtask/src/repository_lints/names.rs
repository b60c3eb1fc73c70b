//! Names of the public interface in the documents.

use std::collections::HashSet;
use std::path::Path;

use super::links::prose;
use crate::workspace::{files, name_below, read};

/// The pages that name public types and their members, besides those of `docs`.
const PAGES: [&str; 2] = ["README.md", "SECURITY.md"];

/// Returns a message for each `Type::member` in the pages that is in no listing of a public interface.
pub(crate) fn unknown(root: &Path) -> Result<Vec<String>, String> {
    let mut listings = String::new();
    for path in files(&root.join("crates"), "txt") {
        if path.ends_with("public-interface.txt") {
            listings.push_str(&without_generics(&read(&path)?));
        }
    }
    let public: HashSet<_> = members(&listings).collect();
    let mut pages = files(&root.join("docs"), "md");
    pages.extend(PAGES.map(|page| root.join(page)));
    let mut unknown = Vec::new();
    for page in pages {
        let name = name_below(root, &page);
        for (number, line) in prose(&read(&page)?) {
            let code = line.split('`').skip(1).step_by(2);
            let members = code.flat_map(members).filter(|it| !public.contains(it));
            unknown.extend(members.map(|(of, member)| {
                format!("{name}:{number}: `{of}::{member}` is in no public interface")
            }));
        }
    }
    Ok(unknown)
}

/// Returns a listing without what is between angle brackets.
fn without_generics(listing: &str) -> String {
    let mut depth = 0_usize;
    let mut previous = ' ';
    let mut keep = |c: char| {
        match c {
            '<' => depth += 1,
            '>' if previous != '-' => depth = depth.saturating_sub(1),
            '\n' => depth = 0,
            _ => {}
        }
        previous = c;
        depth == 0 && c != '>'
    };
    listing.chars().filter(|c| keep(*c)).collect()
}

/// Returns each type in a text with its member.
fn members(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let paths = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    paths.flat_map(|path| {
        let path = path.trim_end_matches(':');
        let types = path.split("::");
        types
            .zip(path.split("::").skip(1))
            .filter(|(of, member)| of.starts_with(char::is_uppercase) && !member.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::{members, without_generics};

    #[test]
    fn members_have_their_type() {
        let check = |text: &str, expected: [(&str, &str); 2]| {
            assert_eq!(members(text).collect::<Vec<_>>(), expected);
        };
        let text = "pub fn a::b::Run::turn(&self) -> a::Turn, `Tool::new`, run::Policy, Status::";
        check(text, [("Run", "turn"), ("Tool", "new")]);
        let text = "pub fn a::Turn<'_, B<C>>::end(&self) -> D<E>\npub a::F::g: u8";
        check(&without_generics(text), [("Turn", "end"), ("F", "g")]);
    }
}
