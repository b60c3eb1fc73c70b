//! What tools of servers are called.

use std::collections::HashSet;

/// Names that mean tools of this program, whether a conversation has them or not: a rule for one of them is about that.
const RESERVED: [&str; 10] = [
    "list_files",
    "read_file",
    "search_files",
    "write_file",
    "edit_file",
    "run_command",
    "fetch_url",
    "ask_user",
    "finish",
    "read_result",
];

/// The names of tools, each given as the name of its server and its own, where there are tools of the names `taken`.
///
/// A server can choose nothing but the part behind its own name: `configured` are all servers, also those that are not
/// there. The tools of one that is alone keep their names where they can.
pub(super) fn names<'t>(
    taken: impl IntoIterator<Item = &'t str>,
    configured: &[String],
    tools: &[(&str, &str)],
) -> Vec<String> {
    let mut used: HashSet<String> = RESERVED
        .into_iter()
        .chain(taken)
        .map(str::to_owned)
        .collect();
    let prefixes = prefixes(configured);
    let is_alone = configured.len() <= 1;
    let is_free: Vec<bool> = tools
        .iter()
        .map(|(_, tool)| is_alone && spelled(tool) == *tool && !used.contains(*tool))
        .collect();
    let free = tools.iter().zip(&is_free).filter(|(_, is_free)| **is_free);
    used.extend(free.map(|((_, tool), _)| (*tool).to_owned()));
    let mut names = Vec::new();
    for ((server, tool), is_free) in tools.iter().zip(is_free) {
        if is_free {
            names.push((*tool).to_owned());
            continue;
        }
        let long = prefixed(server, tool, &prefixes);
        let numbered = (2..).map(|number| format!("{long}_{number}"));
        let name = std::iter::once(long.clone())
            .chain(numbered)
            .find(|name| !used.contains(name))
            .unwrap_or_default();
        used.insert(name.clone());
        names.push(name);
    }
    names
}

/// What stands before the names of the tools of each server.
fn prefixes(configured: &[String]) -> Vec<(&str, String)> {
    let mut prefixes: Vec<(&str, String)> = Vec::new();
    for server in configured {
        if prefixes.iter().any(|(known, _)| known == server) {
            continue;
        }
        let plain = spelled(server);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let is_taken = |prefix: &String| {
            let mut known = prefixes.iter();
            known.any(|(_, known)| known == prefix)
                || configured
                    .iter()
                    .any(|other| other != server && other == prefix)
        };
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let prefix = candidates.find(|prefix| !is_taken(prefix));
        prefixes.push((server, prefix.unwrap_or_default()));
    }
    prefixes
}

/// The name of a tool behind that of its server, with as many `_` between them as it takes that it does not read as a tool
/// of another server: `a` with a tool `b_c` is not `a_b` with a tool `c`.
fn prefixed(server: &str, tool: &str, prefixes: &[(&str, String)]) -> String {
    let known = prefixes.iter().find(|(known, _)| *known == server);
    let prefix = known.map_or_else(|| spelled(server), |(_, prefix)| prefix.clone());
    let mut name = prefix.clone();
    loop {
        name.push('_');
        let whole = spelled(&format!("{name}{tool}"));
        // A number may come behind it.
        let numbered = format!("{whole}_");
        let is_others = |(_, other): &(&str, String)| {
            let rest = numbered.strip_prefix(other.as_str());
            other.len() > prefix.len() && rest.is_some_and(|rest| rest.starts_with('_'))
        };
        if !prefixes.iter().any(is_others) {
            return whole;
        }
    }
}

/// The name with `_` in the place of everything that the name of a tool may not hold.
fn spelled(name: &str) -> String {
    let mut spelled: String = name
        .chars()
        .map(|c| match c {
            c if c.is_alphanumeric() || c.is_ascii_graphic() && !"\"'`:[]".contains(c) => c,
            // Also what nobody sees, or what turns the direction of the text around it.
            _ => '_',
        })
        .collect();
    if !spelled.starts_with(|first: char| first.is_alphanumeric() || first == '_') {
        spelled.insert(0, '_');
    }
    spelled
}
