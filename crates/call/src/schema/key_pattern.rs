//! The patterns of `patternProperties`, as far as they are plain: characters, classes, groups, and how often.

use std::iter::Peekable;
use std::str::Chars;

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
/// Levels of recursion before it is too much work.
const DEEPEST: usize = 256;

/// What may stand there, and how often.
#[derive(Debug)]
struct Piece {
    part: Part,
    least: usize,
    most: usize,
}

#[derive(Debug)]
enum Part {
    Set(Set),
    /// Any of these.
    Group(Vec<Branch>),
    /// `^`
    Start,
    /// `$`
    End,
}

/// Pieces one behind another.
type Branch = Vec<Piece>;

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
    let mut rest = pattern.chars().peekable();
    let branches = branches(&mut rest, 0).filter(|_| rest.peek().is_none());
    let Some(branches) = branches else {
        return Verdict::Unknown;
    };
    let text: Vec<char> = key.chars().collect();
    let mut attempt = Attempt {
        text: &text,
        steps: MOST_STEPS,
        depth: 0,
    };
    for start in 0..=text.len() {
        for branch in &branches {
            match attempt.branch(branch, start, &mut |_, _| Some(true)) {
                Some(true) => return Verdict::Yes,
                Some(false) => {}
                None => return Verdict::Unknown,
            }
        }
    }
    Verdict::No
}

struct Attempt<'t> {
    text: &'t [char],
    /// How many steps are left.
    steps: usize,
    depth: usize,
}

/// What must match behind.
type Behind<'b> = &'b mut dyn FnMut(&mut Attempt<'_>, usize) -> Option<bool>;

impl Attempt<'_> {
    /// Whether the pieces match at a place, and then what is behind them; `None` if it is too much work.
    fn branch(&mut self, pieces: &[Piece], at: usize, behind: Behind<'_>) -> Option<bool> {
        self.steps = self.steps.checked_sub(1)?;
        let Some((piece, rest)) = pieces.split_first() else {
            return behind(self, at);
        };
        self.depth += 1;
        let found = if self.depth > DEEPEST {
            None
        } else {
            self.piece(piece, rest, at, behind)
        };
        self.depth -= 1;
        found
    }

    fn piece(
        &mut self,
        piece: &Piece,
        rest: &[Piece],
        at: usize,
        behind: Behind<'_>,
    ) -> Option<bool> {
        let is_there = match &piece.part {
            Part::Group(branches) => return self.group(piece, branches, 0, rest, at, behind),
            Part::Set(set) => {
                let text = self.text.get(at..).unwrap_or_default().iter();
                let fitting = text.take(piece.most).take_while(|one| set.has(**one));
                let most = fitting.count();
                for count in (piece.least..=most).rev() {
                    if self.branch(rest, at + count, behind)? {
                        return Some(true);
                    }
                }
                false
            }
            Part::Start => at == 0 && self.branch(rest, at, behind)?,
            Part::End => at == self.text.len() && self.branch(rest, at, behind)?,
        };
        Some(is_there)
    }

    /// A group that has matched so often already.
    fn group(
        &mut self,
        piece: &Piece,
        branches: &[Branch],
        times: usize,
        rest: &[Piece],
        at: usize,
        behind: Behind<'_>,
    ) -> Option<bool> {
        if times < piece.most {
            for branch in branches {
                let mut again = |attempt: &mut Attempt<'_>, end: usize| {
                    // Nothing, once more, leads nowhere.
                    if end == at && times >= piece.least {
                        return Some(false);
                    }
                    attempt.group(piece, branches, times + 1, rest, end, behind)
                };
                if self.branch(branch, at, &mut again)? {
                    return Some(true);
                }
            }
        }
        if times < piece.least {
            return Some(false);
        }
        self.branch(rest, at, behind)
    }
}

/// Branches between `|`, up to the end or a `)`. Recurses as deep as groups stand in each other.
fn branches(rest: &mut Peekable<Chars<'_>>, depth: usize) -> Option<Vec<Branch>> {
    let mut found = vec![Vec::new()];
    while let Some(character) = rest.next_if(|character| *character != ')') {
        let part = match character {
            '|' => {
                found.push(Vec::new());
                continue;
            }
            '^' => Part::Start,
            '$' => Part::End,
            '(' if depth < DEEPEST / 4 => {
                // Of what may follow `(?`, only `:` is plain.
                if rest.next_if_eq(&'?').is_some() {
                    rest.next_if_eq(&':')?;
                }
                let inner = branches(rest, depth + 1)?;
                rest.next_if_eq(&')')?;
                Part::Group(inner)
            }
            '\\' => Part::Set(escaped(rest.next()?)?),
            '[' => Part::Set(class(rest)?),
            '.' => Part::Set(Set::any()),
            '(' | ')' | '*' | '+' | '?' | '{' | '}' | ']' => return None,
            plain => Part::Set(one(plain)),
        };
        let (least, most) = match part {
            Part::Start | Part::End => (1, 1),
            Part::Set(_) | Part::Group(_) => how_often(rest)?,
        };
        found.last_mut()?.push(Piece { part, least, most });
    }
    Some(found)
}

fn how_often(rest: &mut Peekable<Chars<'_>>) -> Option<(usize, usize)> {
    let found = match rest.peek() {
        Some('*') => (0, usize::MAX),
        Some('+') => (1, usize::MAX),
        Some('?') => (0, 1),
        Some('{') => {
            rest.next();
            let mut count = String::new();
            while rest.peek()? != &'}' {
                count.extend(rest.next());
            }
            match count.split_once(',') {
                Some((least, "")) => (least.parse().ok()?, usize::MAX),
                Some((least, most)) => (least.parse().ok()?, most.parse().ok()?),
                None => (count.parse().ok()?, count.parse().ok()?),
            }
        }
        _ => return Some((1, 1)),
    };
    rest.next();
    // As few as possible or as many: whether it matches is the same.
    rest.next_if_eq(&'?');
    Some(found)
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

fn class(rest: &mut Peekable<Chars<'_>>) -> Option<Set> {
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
            ("^(a|b)$", "a", Yes),
            ("^(a|b)$", "ab", No),
            ("^a|b$", "ax", Yes),
            ("^a|b$", "xb", Yes),
            ("^a|b$", "xbx", No),
            ("^(?:get|set)_[a-z]+$", "set_x", Yes),
            ("^(?:get|set)_[a-z]+$", "sot_x", No),
            ("^(ab){2,3}$", "abab", Yes),
            ("^(ab){2,3}$", "ab", No),
            ("^(ab){2,3}$", "abababab", No),
            ("^(a|ab)(c|bcd)$", "abcd", Yes),
            ("^((a|b)+-)*c$", "ab-a-c", Yes),
            ("^((a|b)+-)*c$", "ab-ac", No),
            ("^(a*)*$", "aaa", Yes),
            ("^(a*)*$", "b", No),
            ("^()$", "", Yes),
            ("^a+?$", "aa", Yes),
            ("x|", "", Yes),
            ("(", "a", Unknown),
            (")", "a", Unknown),
            ("(a", "a", Unknown),
            ("^(?=a)", "a", Unknown),
            ("^(?i)a", "a", Unknown),
            (r"(a)\1", "aa", Unknown),
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
        check("^(a+)+$", &("a".repeat(100) + "b"), Unknown);
        check("^(a|a)*$", &("a".repeat(100) + "b"), Unknown);
        check("^(ab)*$", &"ab".repeat(2000), Unknown);
        check(&"(".repeat(100_000), "a", Unknown);
    }
}
