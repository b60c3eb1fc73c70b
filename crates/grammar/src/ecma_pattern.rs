//! Regular expressions of JSON Schema as patterns (`spec/grammar.md` 4.1).
//!
//! They are those of ECMAScript with the flag `u`. Assertions other than `^` and `$` at the ends, back references and classes of
//! Unicode are not converted.

use std::iter::Peekable;
use std::str::Chars;

use crate::pattern::{Characters, Pattern};

/// Longer and deeper expressions are not converted, nor larger repetitions.
const LONGEST: usize = 2_000;
const DEEPEST: usize = 40;
const MOST_REPEATED: u32 = 1_000;
/// The ends of lines in ECMAScript, which `.` does not match.
const LINE_ENDS: &str = "\n\r\u{2028}\u{2029}";
const BLANKS: &str = "\t\u{B}\u{C} \u{A0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\
                      \u{200A}\u{202F}\u{205F}\u{3000}\u{FEFF}";
/// The characters that a backslash makes ordinary.
const SYNTAX: &str = "^$\\.*+?()[]{}|/-";

/// Returns the texts in which an expression matches somewhere; `None` if it is not converted.
pub(crate) fn texts_of(expression: &str) -> Option<Pattern> {
    if expression.len() > LONGEST {
        return None;
    }
    let mut reader = Reader {
        rest: expression.chars().peekable(),
        depth: 0,
    };
    let mut options = Vec::new();
    loop {
        let begin = reader
            .rest
            .next_if_eq(&'^')
            .is_none()
            .then(Pattern::any_text);
        let sequence = reader.sequence()?;
        let end = reader
            .rest
            .next_if_eq(&'$')
            .is_none()
            .then(Pattern::any_text);
        let parts = begin.into_iter().chain([sequence]).chain(end);
        options.push(Pattern::sequence(parts));
        match reader.rest.next() {
            None => return Some(Pattern::choice(options)),
            Some('|') => {}
            Some(_) => return None,
        }
    }
}

struct Reader<'e> {
    rest: Peekable<Chars<'e>>,
    depth: usize,
}

impl Reader<'_> {
    /// Reads up to `|`, `)`, `^`, `$` or the end.
    fn sequence(&mut self) -> Option<Pattern> {
        let mut parts = Vec::new();
        while let Some(next) = self.rest.next_if(|next| !"|)^$".contains(*next)) {
            let part = match next {
                '(' => self.group()?,
                '[' => Pattern::Characters(self.class()?),
                '.' => Pattern::Characters(Characters::one_of(LINE_ENDS).not()),
                '\\' => Pattern::Characters(self.escape()?),
                '*' | '+' | '?' | '{' | '}' | ']' => return None,
                plain => Pattern::literal(plain),
            };
            let part = self.repeated(part)?;
            parts.push(part);
        }
        Some(Pattern::sequence(parts))
    }

    fn group(&mut self) -> Option<Pattern> {
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next()? {
                ':' => {}
                '<' if self.rest.peek().is_some_and(|next| !"=!".contains(*next)) => {
                    self.rest.find(|next| *next == '>')?;
                }
                _ => return None,
            }
        }
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let mut options = Vec::new();
        loop {
            options.push(self.sequence()?);
            match self.rest.next()? {
                '|' => {}
                ')' => break,
                _ => return None,
            }
        }
        self.depth -= 1;
        Some(Pattern::choice(options))
    }

    fn repeated(&mut self, part: Pattern) -> Option<Pattern> {
        let (least, most) = match self.rest.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.rest.next();
                let least = self.number()?;
                let most = match self.rest.next_if_eq(&',') {
                    None => Some(least),
                    Some(_) if self.rest.peek() == Some(&'}') => None,
                    Some(_) => Some(self.number()?),
                };
                (least, most)
            }
            _ => return Some(part),
        };
        self.rest.next();
        // A lazy repetition matches the same texts.
        self.rest.next_if_eq(&'?');
        let is_small =
            most.unwrap_or(least) <= MOST_REPEATED && most.is_none_or(|most| least <= most);
        is_small.then(|| part.repeat(least, most))
    }

    fn number(&mut self) -> Option<u32> {
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let is_counted = self.rest.peek().is_some_and(|next| ",}".contains(*next));
        digits.parse().ok().filter(|_| is_counted)
    }

    /// Reads a class after its bracket.
    fn class(&mut self) -> Option<Characters> {
        let is_excluded = self.rest.next_if_eq(&'^').is_some();
        let mut all = Characters::one_of("");
        loop {
            let (first, is_one) = match self.rest.next()? {
                ']' => break,
                one => self.class_part(one)?,
            };
            let mut ahead = self.rest.clone();
            let is_range =
                ahead.next() == Some('-') && ahead.next().is_some_and(|next| next != ']');
            if !is_range {
                all = all.or(&first);
                continue;
            }
            self.rest.next();
            let next = self.rest.next()?;
            let (last, is_last_one) = self.class_part(next)?;
            let [(low, _)] = first.ranges() else {
                return None;
            };
            let [(_, high)] = last.ranges() else {
                return None;
            };
            if !is_one || !is_last_one || low > high {
                return None;
            }
            all = all.or(&Characters::of_ranges([(*low, *high)]));
        }
        let all = if is_excluded { all.not() } else { all };
        (!all.is_empty()).then_some(all)
    }

    /// Reads a character or an escape of a class, and whether it is one character.
    fn class_part(&mut self, first: char) -> Option<(Characters, bool)> {
        let part = match first {
            '\\' if self.rest.next_if_eq(&'b').is_some() => Characters::one_of("\u{8}"),
            '\\' => self.escape()?,
            // A later standard gives it a meaning.
            '[' => return None,
            plain => Characters::one(plain),
        };
        let is_one = matches!(part.ranges(), [(low, high)] if low == high);
        Some((part, is_one))
    }

    fn escape(&mut self) -> Option<Characters> {
        let digits = || Characters::of_ranges([('0'.into(), '9'.into())]);
        let blanks = || Characters::one_of(BLANKS).or(&Characters::one_of(LINE_ENDS));
        let one = match self.rest.next()? {
            'd' => return Some(digits()),
            'D' => return Some(digits().not()),
            'w' => return Some(Characters::of_ascii_words()),
            'W' => return Some(Characters::of_ascii_words().not()),
            's' => return Some(blanks()),
            'S' => return Some(blanks().not()),
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'v' => '\u{B}',
            'f' => '\u{C}',
            'x' => self.code(2)?,
            'u' if self.rest.next_if_eq(&'{').is_some() => {
                let digits: String = self.rest.by_ref().take_while(|next| *next != '}').collect();
                char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
            }
            'u' => self.code(4)?,
            sign if SYNTAX.contains(sign) => sign,
            _ => return None,
        };
        Some(Characters::one(one))
    }

    /// Reads a code point; `None` if it is half a surrogate pair.
    fn code(&mut self, digits: usize) -> Option<char> {
        let digits: String = self.rest.by_ref().take(digits).collect();
        let is_hexadecimal = digits.chars().all(|one| one.is_ascii_hexdigit());
        char::from_u32(
            u32::from_str_radix(&digits, 16)
                .ok()
                .filter(|_| is_hexadecimal)?,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::texts_of;
    use crate::automaton::{Automaton, Work};

    #[test]
    fn expressions_match_as_in_ecmascript() {
        for (expression, yes, no) in [
            ("b", &["b", "abc", "\n\nb"][..], &["", "a"][..]),
            ("^b", &["b", "bc"], &["ab", "a\nb"]),
            ("b$", &["b", "ab"], &["b\n", "bc"]),
            ("^a|b$", &["ax", "xb", "a"], &["xa", "bx"]),
            ("^(a|bc?)+?$", &["a", "bcab"], &["", "c", "acc"]),
            (
                "^[^a-c\\]]{2,3}$",
                &["xy", "[-\n"],
                &["x", "xa", "x]", "wxyz"],
            ),
            ("^[-a\\d]+$", &["-a7"], &["b"]),
            (
                "^(?:\\w+\\.)?(?<ext>\\u0061\\x62)$",
                &["ab", "x_1.ab"],
                &["é.ab", ".ab"],
            ),
            ("^.\\S\\s$", &["aé\u{a0}", "aa\n"], &["\naa", "aab", "a  "]),
            ("^\\u{1F600}*$", &["", "😀😀"], &["x"]),
            ("", &["", "a"], &[]),
        ] {
            let work = Work::new(1000, 100_000);
            let automaton = Automaton::matching(&texts_of(expression).unwrap(), &work).unwrap();
            for (texts, expected) in [(yes, true), (no, false)] {
                for text in texts {
                    assert_eq!(automaton.accepts(text), expected, "{expression} {text:?}");
                }
            }
        }
    }

    #[test]
    fn other_expressions_are_not_converted() {
        for expression in [
            "(?=a)",
            "(?<!a)b",
            "\\bword",
            "(a)\\1",
            "\\p{L}",
            "a{",
            "a{2,1}",
            "*",
            "(",
            "a)",
            "[a",
            "[]",
            "[b-a]",
            "[\\d-z]",
            "a^",
            "$a",
            "(^a)",
            "a**",
            "\\uD83D",
            "\\a",
            "\\",
            "[[:alpha:]]",
            "a{9999}",
            "a{2",
        ] {
            assert!(texts_of(expression).is_none(), "{expression}");
        }
    }
}
