//! The name that was probably meant.

/// `; perhaps `command` is meant`, if one of the names is near to what is written; else nothing.
pub(super) fn perhaps<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match nearest(written, names) {
        Some(name) => format!("; perhaps `{name}` is meant"),
        None => String::new(),
    }
}

/// The name that takes the fewest changes, if it takes few, else one that begins so; of several the first. `*` and `?` in what is written stand for
/// what they stand for in a pattern.
fn nearest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let written: Vec<char> = written.chars().flat_map(char::to_lowercase).collect();
    let letters = written.iter().filter(|c| !is_wildcard(**c)).count();
    let most = (letters / 3).clamp(1, 3);
    if letters == 0 {
        return None;
    }
    let beginning: String = written.iter().collect();
    let found = names.into_iter().filter_map(|name| {
        let changes = changes(&written, name);
        let is_begun = letters >= 3 && name.starts_with(&beginning);
        match changes {
            few if few <= most && few < letters => Some((few, name)),
            _ if is_begun => Some((usize::MAX, name)),
            _ => None,
        }
    });
    found
        .min_by_key(|(changes, _)| *changes)
        .map(|(_, name)| name)
}

fn is_wildcard(character: char) -> bool {
    matches!(character, '*' | '?')
}

/// How many characters must be added, left out, put in place of others or changed over with their neighbours.
fn changes(written: &[char], name: &str) -> usize {
    let name: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=name.len()).collect()];
    let at = |rows: &[Vec<usize>], row: usize, column: usize| {
        let row = rows.get(row);
        row.and_then(|row| row.get(column))
            .copied()
            .unwrap_or(usize::MAX / 2)
    };
    for (row, &one) in written.iter().enumerate() {
        // A `*` may stand for nothing, and for as many characters as come.
        let is_many = one == '*';
        let mut next = vec![at(&rows, row, 0) + usize::from(!is_many)];
        for (column, &two) in name.iter().enumerate() {
            let left_out = at(&rows, row, column + 1) + usize::from(!is_many);
            let added = next.last().copied().unwrap_or_default() + usize::from(!is_many);
            let is_same = one == two || is_wildcard(one);
            let changed = at(&rows, row, column) + usize::from(!is_same);
            let mut least = left_out.min(added).min(changed);
            let before = |characters: &[char], index: usize| {
                index
                    .checked_sub(1)
                    .and_then(|index| characters.get(index))
                    .copied()
            };
            if before(written, row) == Some(two) && before(&name, column) == Some(one) {
                least = least.min(at(&rows, row.wrapping_sub(1), column.wrapping_sub(1)) + 1);
            }
            next.push(least);
        }
        rows.push(next);
    }
    rows.last()
        .and_then(|row| row.last())
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn what_is_near() {
        let names = ["command", "shell", "read-file", "read-folder", "a"];
        for (written, expected) in [
            ("comand", Some("command")),
            ("comamnd", Some("command")),
            ("Command", Some("command")),
            ("commands", Some("command")),
            ("program", None),
            ("shel", Some("shell")),
            ("sehll", Some("shell")),
            ("raed-*", Some("read-file")),
            ("read-fole", Some("read-file")),
            ("reed-fol*", Some("read-folder")),
            ("raed*lder", Some("read-folder")),
            ("writ?-*", None),
            ("read", Some("read-file")),
            ("com", Some("command")),
            ("co", None),
            ("b", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, names), expected, "{written}");
        }
    }
}
