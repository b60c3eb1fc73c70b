//! Back references to groups with names, which the validator does not know, as numbers.

use std::iter::Peekable;
use std::str::Chars;

/// Returns an ECMAScript pattern without names of groups, if it refers to a group by its name: `(?<q>a)\k<q>` is `(a)(?:\1)`.
/// `None` for every other pattern, and if the name is that of no group or of several.
pub(super) fn numbered(pattern: &str) -> Option<String> {
    if !pattern.contains("\\k<") {
        return None;
    }
    let (mut groups, mut parts) = (Vec::new(), vec![String::new()]);
    let mut references = Vec::new();
    let mut rest = pattern.chars().peekable();
    let mut is_in_class = false;
    while let Some(character) = rest.next() {
        let written = parts.last_mut()?;
        match character {
            '\\' => match rest.next()? {
                'k' if !is_in_class && rest.next_if_eq(&'<').is_some() => {
                    references.push(name(&mut rest)?);
                    parts.push(String::new());
                }
                escaped => written.extend(['\\', escaped]),
            },
            '(' if !is_in_class => {
                written.push('(');
                let is_plain = rest.peek() != Some(&'?');
                let mut ahead = rest.clone().skip(1);
                let is_named =
                    ahead.next() == Some('<') && !matches!(ahead.next(), Some('=' | '!'));
                if is_plain {
                    groups.push(None);
                } else if is_named {
                    rest.by_ref().take(2).for_each(drop);
                    groups.push(Some(name(&mut rest)?));
                }
            }
            _ => {
                is_in_class = match character {
                    '[' => true,
                    ']' => false,
                    _ => is_in_class,
                };
                written.push(character);
            }
        }
    }
    let mut parts = parts.into_iter();
    let mut written = parts.next()?;
    for (reference, part) in references.iter().zip(parts) {
        let mut named = groups
            .iter()
            .zip(1..)
            .filter(|(name, _)| name.as_ref() == Some(reference));
        let (_, number) = named.next().filter(|_| named.next().is_none())?;
        written.extend(["(?:\\", &number.to_string(), ")", &part]);
    }
    Some(written)
}

/// Reads a name and the bracket after it.
fn name(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut name = String::new();
    loop {
        match rest.next()? {
            '>' => return Some(name),
            character => name.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_become_numbers() {
        for (pattern, expected) in [
            (r"(?<q>a)\k<q>1", Some(r"(a)(?:\1)1")),
            (
                r"(b)(?:c)(?<=d)(?<q>['(])\(.*\k<q>[(\k]",
                Some(r"(b)(?:c)(?<=d)(['(])\(.*(?:\2)[(\k]"),
            ),
            (r"(?<q>a)\1", None),
            (r"(?<q>a)\k<r>", None),
            (r"(?:(?<q>a)|(?<q>b))\k<q>", None),
            (r"(?<q>a)\k<q", None),
        ] {
            assert_eq!(super::numbered(pattern).as_deref(), expected, "{pattern}");
        }
    }
}
