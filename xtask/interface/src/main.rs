//! Prints the public interface of a crate, one item per line: `plaincall-interface FILE`, with rustdoc's JSON.

use std::collections::HashSet;
use std::error::Error;

use public_api::{Builder, PublicApi};

/// Names of the prelude, which need no path.
const PRELUDE: &[&str] = &[
    "alloc::borrow::ToOwned",
    "alloc::boxed::Box",
    "alloc::string::String",
    "alloc::string::ToString",
    "alloc::vec::Vec",
    "core::clone::Clone",
    "core::cmp::Eq",
    "core::cmp::Ord",
    "core::cmp::PartialEq",
    "core::cmp::PartialOrd",
    "core::convert::AsMut",
    "core::convert::AsRef",
    "core::convert::From",
    "core::convert::Into",
    "core::convert::TryFrom",
    "core::convert::TryInto",
    "core::default::Default",
    "core::fmt::Debug",
    "core::fmt::Display",
    "core::future::future::Future",
    "core::iter::traits::collect::FromIterator",
    "core::iter::traits::collect::IntoIterator",
    "core::iter::traits::iterator::Iterator",
    "core::marker::Copy",
    "core::marker::Send",
    "core::marker::Sized",
    "core::marker::Sync",
    "core::marker::Unpin",
    "core::ops::drop::Drop",
    "core::ops::function::Fn",
    "core::ops::function::FnMut",
    "core::ops::function::FnOnce",
    "core::option::Option",
    "core::result::Result",
];

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).ok_or("name a JSON file")?;
    let interface = Builder::from_rustdoc_json(file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    for line in lines(&interface) {
        println!("{line}");
    }
    Ok(())
}

/// Returns the lines of the listing. It omits methods that a trait requires, and lists the traits of a type on one line.
fn lines(interface: &PublicApi) -> Vec<String> {
    let mut implementations = HashSet::new();
    let mut lines: Vec<String> = Vec::new();
    for item in interface.items() {
        let line = with_short_names(&item.to_string());
        if line.starts_with("impl") {
            // Another `impl` line lists inherent methods, which have lines of their own.
            if line.contains(" for ") {
                implementations.insert(item.id());
                if !line.contains("StructuralPartialEq") {
                    add_implementation(&mut lines, line);
                }
            }
        } else {
            let parent = item.parent_id();
            let is_in_trait = parent.is_some_and(|parent| implementations.contains(&parent));
            if !is_in_trait || line.starts_with("pub type ") {
                lines.push(line);
            }
        }
    }
    lines
}

/// Adds `impl Trait for Type` to the line before if that line is about the same type.
fn add_implementation(lines: &mut Vec<String>, line: String) {
    let merged = lines.last().and_then(|last| {
        let (generics, traits, of) = implementation(last)?;
        let (same_generics, one, same) = implementation(&line)?;
        ((generics, of) == (same_generics, same))
            .then(|| format!("{generics} {traits} + {one} for {of}"))
    });
    if merged.is_some() {
        lines.pop();
    }
    lines.push(merged.unwrap_or(line));
}

/// Splits `impl<'a> Trait for Type<'a>` into `impl<'a>`, the trait and the type.
fn implementation(line: &str) -> Option<(&str, &str, &str)> {
    let (head, of) = line.split_once(" for ")?;
    let mut depth = 0;
    let generics = head.find(|c| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        c == ' ' && depth == 0
    })?;
    let (generics, traits) = head.split_at(generics);
    generics
        .starts_with("impl")
        .then(|| (generics, traits.trim_start(), of))
}

/// Returns the line with names of the prelude instead of their paths.
fn with_short_names(line: &str) -> String {
    let is_in_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let mut short = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_in_path) {
        let (before, from) = rest.split_at(start);
        let (path, after) = from.split_at(from.find(|c| !is_in_path(c)).unwrap_or(from.len()));
        short.push_str(before);
        short.push_str(match path.rsplit_once("::") {
            Some((_, name)) if PRELUDE.contains(&path) => name,
            _ => path,
        });
        rest = after;
    }
    short + rest
}

#[cfg(test)]
mod tests {
    use super::{add_implementation, with_short_names};

    #[test]
    fn names_of_the_prelude_have_no_path() {
        assert_eq!(
            with_short_names(
                "pub fn a::b(&self, core::option::Option<a::core::option::Option>) -> core::fmt::Result"
            ),
            "pub fn a::b(&self, Option<a::core::option::Option>) -> core::fmt::Result"
        );
    }

    #[test]
    fn traits_of_a_type_are_on_one_line() {
        let mut lines = Vec::new();
        for line in [
            "impl A for X",
            "impl B for X",
            "impl<'a, T: Into<A>> C<'a> for X",
            "impl<'a, T: Into<A>> D for X",
            "impl A for Y",
        ] {
            add_implementation(&mut lines, line.to_owned());
        }
        assert_eq!(
            lines,
            [
                "impl A + B for X",
                "impl<'a, T: Into<A>> C<'a> + D for X",
                "impl A for Y"
            ]
        );
    }
}
