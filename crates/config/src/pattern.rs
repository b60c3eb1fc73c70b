//! Patterns of names: of models and of tools. `*` matches any characters.

/// Returns the value for a name from a list of patterns. A pattern without `*` takes precedence, then the one with the most other
/// characters, then the first.
pub fn for_name<'l, T>(list: &'l [(String, T)], name: &str) -> Option<&'l T> {
    let weight = |pattern: &str| {
        if pattern.contains('*') {
            pattern.chars().filter(|c| *c != '*').count()
        } else {
            usize::MAX
        }
    };
    // `max_by_key` returns the last maximum, and the first pattern takes precedence.
    let patterns = list.iter().rev();
    let matching = patterns.filter(|(pattern, _)| matches(pattern, name));
    let best = matching.max_by_key(|(pattern, _)| weight(pattern));
    best.map(|(_, value)| value)
}

/// Returns whether a name matches a pattern. Takes time proportional to the product of both lengths.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(begin) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    // The first occurrence of a part leaves the most text for the others.
    for part in parts {
        let Some((_, after)) = name.split_once(part) else {
            return false;
        };
        name = after;
    }
    name.ends_with(end)
}
