//! The patterns of `patternProperties`, as far as they are plain: characters, classes and how often.

/// Whether a key matches a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Yes,
    No,
    /// The pattern has more in it than is understood here, or is too much work.
    Unknown,
}

/// Attempts before it is too much work.
const MOST_STEPS: usize = 10_000;

/// Characters, and how often they may stand there.
#[derive(Debug)]
struct Piece {
    set: Set,
    least: usize,
    most: usize,
}

#[derive(Debug, Default)]
struct Set {
    ranges: Vec<(char, char)>,
    is_negated: bool,
}

impl Set {
    fn any() -> Self {
        Self {
            ranges: vec![('\n', '\n'), ('\r', '\r')],
            is_negated: true,
        }
    }

    fn has(&self, character: char) -> bool {
        let is_in = |(from, to): &(char, char)| (*from..=*to).contains(&character);
        self.ranges.iter().any(is_in) != self.is_negated
    }
}

/// Whether `key` matches `pattern` somewhere, as the patterns of JSON Schema do.
pub(crate) fn matches(pattern: &str, key: &str) -> Verdict {
    let Some((pieces, at_start, at_end)) = parse(pattern) else {
        return Verdict::Unknown;
    };
    let characters: Vec<char> = key.chars().collect();
    let mut steps = MOST_STEPS;
    let starts = if at_start { 0 } else { characters.len() };
    for start in 0..=starts {
        let rest = characters.get(start..).unwrap_or_default();
        match matches_here(&pieces, rest, at_end, &mut steps) {
            Some(true) => return Verdict::Yes,
            Some(false) => {}
            None => return Verdict::Unknown,
        }
    }
    Verdict::No
}

/// Recurses once for each piece of the pattern.
fn matches_here(pieces: &[Piece], text: &[char], at_end: bool, steps: &mut usize) -> Option<bool> {
    *steps = steps.checked_sub(1)?;
    let Some((piece, rest)) = pieces.split_first() else {
        return Some(!at_end || text.is_empty());
    };
    let fitting = text
        .iter()
        .take(piece.most)
        .take_while(|character| piece.set.has(**character))
        .count();
    for count in (piece.least..=fitting).rev() {
        let behind = text.get(count..).unwrap_or_default();
        if matches_here(rest, behind, at_end, steps)? {
            return Some(true);
        }
    }
    Some(false)
}

fn parse(pattern: &str) -> Option<(Vec<Piece>, bool, bool)> {
    let at_start = pattern.starts_with('^');
    let mut rest = pattern.chars().skip(usize::from(at_start)).peekable();
    let mut pieces: Vec<Piece> = Vec::new();
    while let Some(character) = rest.next() {
        let set = match character {
            '$' if rest.peek().is_none() => return Some((pieces, at_start, true)),
            '\\' => escaped(rest.next()?)?,
            '[' => class(&mut rest)?,
            '.' => Set::any(),
            '^' | '$' | '(' | ')' | '|' | '*' | '+' | '?' | '{' | '}' | ']' => return None,
            plain => one(plain),
        };
        let (least, most) = match rest.peek() {
            Some('*') => (0, usize::MAX),
            Some('+') => (1, usize::MAX),
            Some('?') => (0, 1),
            Some('{') => {
                rest.next();
                let mut count = String::new();
                while rest.peek()? != &'}' {
                    count.extend(rest.next());
                }
                rest.next();
                let (least, most) = match count.split_once(',') {
                    Some((least, "")) => (least.parse().ok()?, usize::MAX),
                    Some((least, most)) => (least.parse().ok()?, most.parse().ok()?),
                    None => (count.parse().ok()?, count.parse().ok()?),
                };
                pieces.push(Piece { set, least, most });
                continue;
            }
            _ => {
                pieces.push(Piece {
                    set,
                    least: 1,
                    most: 1,
                });
                continue;
            }
        };
        rest.next();
        pieces.push(Piece { set, least, most });
    }
    // Each piece is a level of recursion.
    (pieces.len() <= 256).then_some((pieces, at_start, false))
}

fn one(character: char) -> Set {
    Set {
        ranges: vec![(character, character)],
        is_negated: false,
    }
}

fn escaped(character: char) -> Option<Set> {
    let set = |ranges: &[(char, char)], is_negated| Set {
        ranges: ranges.to_vec(),
        is_negated,
    };
    let word = [('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')];
    Some(match character {
        'd' => set(&[('0', '9')], false),
        'D' => set(&[('0', '9')], true),
        'w' => set(&word, false),
        'W' => set(&word, true),
        other if other.is_ascii_alphanumeric() => return None,
        other => one(other),
    })
}

fn class(rest: &mut std::iter::Peekable<impl Iterator<Item = char>>) -> Option<Set> {
    let mut set = Set {
        is_negated: rest.next_if_eq(&'^').is_some(),
        ..Set::default()
    };
    loop {
        let from = match rest.next()? {
            ']' => return Some(set),
            '[' => return None,
            '\\' => {
                let inner = escaped(rest.next()?)?;
                if inner.is_negated {
                    return None;
                }
                match inner.ranges.as_slice() {
                    [(from, to)] if from == to => *from,
                    ranges => {
                        set.ranges.extend_from_slice(ranges);
                        continue;
                    }
                }
            }
            plain => plain,
        };
        if rest.next_if_eq(&'-').is_none() {
            set.ranges.push((from, from));
            continue;
        }
        match rest.next()? {
            ']' => {
                set.ranges.extend([(from, from), ('-', '-')]);
                return Some(set);
            }
            '\\' | '[' => return None,
            to => set.ranges.push((from, to)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{self, No, Unknown, Yes};
    use super::matches;

    fn check(pattern: &str, key: &str, expected: Verdict) {
        assert_eq!(matches(pattern, key), expected, "{pattern} {key}");
    }

    #[test]
    fn plain_patterns_are_decided() {
        for (pattern, key, expected) in [
            ("^[0-9]+$", "2024", Yes),
            ("^[0-9]+$", "", No),
            ("^[0-9]+$", "20a", No),
            ("^x-", "x-y", Yes),
            ("^x-", "ax-", No),
            ("x-", "ax-", Yes),
            ("", "", Yes),
            ("^.*$", "anything", Yes),
            ("^S_", "S_0", Yes),
            ("_id$", "user_id", Yes),
            ("_id$", "user_id2", No),
            (r"^\d{4}-\d{2}$", "2024-01", Yes),
            (r"^\d{4}-\d{2}$", "2024-1", No),
            (r"^\w{2,}\.$", "ab.", Yes),
            (r"^\w{2,3}$", "abcd", No),
            ("^[^a-c-]?z$", "dz", Yes),
            ("^[^a-c-]?z$", "-z", No),
            ("^a*a*a*b$", "aaaa", No),
            ("^(a|b)$", "a", Unknown),
            (r"^\p{L}$", "a", Unknown),
            ("^[", "a", Unknown),
            ("a{2", "aa", Unknown),
            ("^a**$", "a", Unknown),
        ] {
            check(pattern, key, expected);
        }
        let slow = "a*".repeat(40) + "b$";
        check(&slow, &"a".repeat(200), Unknown);
        check(&"a?".repeat(10_000), "a", Unknown);
    }
}
