//! Names of MCP tools.

use std::collections::HashSet;

/// The names of built-in tools. They are reserved even where these tools are not offered, because rules may name them.
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

/// Chooses names for tools, given as server name and tool name, that differ from the names `taken`.
///
/// A server controls only the part after its own name. `configured` are all servers, including those that failed. Tools
/// of a single server keep their names if possible.
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

/// The prefix of the tool names of each server.
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

/// Joins the names of a server and a tool with enough `_` that the result cannot be a tool of another server: `a` with the
/// tool `b_c` differs from `a_b` with the tool `c`.
fn prefixed(server: &str, tool: &str, prefixes: &[(&str, String)]) -> String {
    let known = prefixes.iter().find(|(known, _)| *known == server);
    let prefix = known.map_or_else(|| spelled(server), |(_, prefix)| prefix.clone());
    let mut name = prefix.clone();
    loop {
        name.push('_');
        let whole = spelled(&format!("{name}{tool}"));
        // A number may follow.
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

/// Replaces invalid characters of a tool name with `_`.
fn spelled(name: &str) -> String {
    let mut spelled: String = name
        .chars()
        .map(|c| match c {
            c if c.is_alphanumeric() || c.is_ascii_graphic() && !"\"'`:[]".contains(c) => c,
            // Including invisible and bidirectional characters.
            _ => '_',
        })
        .collect();
    if !spelled.starts_with(|first: char| first.is_alphanumeric() || first == '_') {
        spelled.insert(0, '_');
    }
    spelled
}
