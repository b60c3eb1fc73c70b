//! What tools of servers are called.

use std::collections::{HashMap, HashSet};

/// The names of tools, for a model that has tools of these names already.
///
/// A tool keeps its own name if calls can spell it and nothing else is called so. Otherwise the name of its server stands
/// before it. Of two servers with tools of one name neither keeps it, so that what a name means does not depend on which
/// was written first.
pub(super) fn names<'t>(
    taken: impl IntoIterator<Item = &'t str>,
    tools: &[(&str, &str)],
) -> Vec<String> {
    let mut used: HashSet<String> = taken.into_iter().map(str::to_owned).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (_, tool) in tools {
        *counts.entry(tool).or_default() += 1;
    }
    let is_free: Vec<bool> = tools
        .iter()
        .map(|(_, tool)| {
            counts.get(tool) == Some(&1) && spelled(tool) == *tool && !used.contains(*tool)
        })
        .collect();
    let free = tools.iter().zip(&is_free).filter(|(_, is_free)| **is_free);
    used.extend(free.map(|((_, tool), _)| (*tool).to_owned()));
    let mut names = Vec::new();
    for ((server, tool), is_free) in tools.iter().zip(is_free) {
        if is_free {
            names.push((*tool).to_owned());
            continue;
        }
        let prefixed = spelled(&format!("{server}_{tool}"));
        let numbered = (2..).map(|number| format!("{prefixed}_{number}"));
        let name = std::iter::once(prefixed.clone())
            .chain(numbered)
            .find(|name| !used.contains(name))
            .unwrap_or_default();
        used.insert(name.clone());
        names.push(name);
    }
    names
}

/// The name with `_` in the place of everything that the name of a tool may not hold.
fn spelled(name: &str) -> String {
    let mut spelled: String = name
        .chars()
        .map(|c| match c {
            c if c.is_whitespace() || c.is_control() || "\"'`:[]".contains(c) => '_',
            c => c,
        })
        .collect();
    if !spelled.starts_with(|first: char| first.is_alphanumeric() || first == '_') {
        spelled.insert(0, '_');
    }
    spelled
}

#[cfg(test)]
mod tests {
    use plaincall::ToolSpec;

    use super::names;

    fn check(taken: &[&str], tools: &[(&str, &str)], expected: &[&str]) {
        let given = names(taken.iter().copied(), tools);
        assert_eq!(given, expected);
        for name in &given {
            assert!(ToolSpec::new(name).check().is_ok(), "{name}");
        }
    }

    #[test]
    fn clashes() {
        check(
            &[],
            &[("a", "x"), ("b", "y"), ("b", "get/it.now-1")],
            &["x", "y", "get/it.now-1"],
        );
        check(
            &[],
            &[("a", "x"), ("b", "x"), ("b", "y")],
            &["a_x", "b_x", "y"],
        );
        check(&["x"], &[("a", "x")], &["a_x"]);
        // What is called so already stays so.
        check(
            &["a_x"],
            &[("a", "x"), ("b", "x"), ("c", "b_x")],
            &["a_x_2", "b_x_2", "b_x"],
        );
        check(&[], &[("a", "x"), ("a", "x")], &["a_x", "a_x_2"]);
        check(
            &[],
            &[("my server", "a b"), ("s", "é[1]"), ("-s", ":"), ("s", "")],
            &["my_server_a_b", "s_é_1_", "_-s__", "s_"],
        );
    }
}
