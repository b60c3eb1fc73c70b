//! Whether the beginning of a text can still become something else than a string.

use plaincall_syntax::is_blank;

/// No whole number of 64 bits has more digits.
const WHOLE_DIGITS: usize = 20;
/// No 64-bit float needs more digits, zeros at either end not counted.
const FLOAT_DIGITS: usize = 17;
/// No 64-bit float has more digits before its point.
const MOST_WHOLE: usize = 309;

/// Reads a text piece by piece, until it is certain to be a string (`spec/json-stream.md` 3).
///
/// The other way round nothing is promised: a text in doubt may well be a string.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    words: &'static [&'static str],
    may_be_number: bool,
    state: State,
    digits: Digits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing but blanks so far.
    Before,
    /// The first letters of a word that means something.
    Word {
        word: &'static str,
        read: usize,
    },
    Minus,
    /// A zero as the whole part.
    Zero,
    Whole,
    Point,
    Fraction,
    /// Blanks behind a word or number.
    After,
    Certain,
}

#[derive(Clone, Copy, Debug, Default)]
struct Digits {
    before_point: usize,
    /// From the first that is no zero to the last that is none.
    significant: usize,
    /// Zeros since then.
    zeros: usize,
    has_point: bool,
}

impl Doubt {
    /// A text that is read without a schema (`spec/block.md` 7.7).
    pub(crate) fn guessed() -> Self {
        Self::new(&["true", "false"], true)
    }

    /// A text that is a string, unless it is the word `null`.
    pub(crate) fn null() -> Self {
        Self::new(&["null"], false)
    }

    /// A text that is a string, unless it is null, a boolean or a number as JSON writes it.
    pub(crate) fn scalar() -> Self {
        Self::new(&["null", "true", "false"], true)
    }

    fn new(words: &'static [&'static str], may_be_number: bool) -> Self {
        Self {
            words,
            may_be_number,
            state: State::Before,
            digits: Digits::default(),
        }
    }

    /// Reads on; returns whether the text is certain to be a string.
    pub(crate) fn read(&mut self, piece: &str) -> bool {
        for character in piece.chars() {
            if self.state == State::Certain {
                break;
            }
            self.state = self.step(character);
        }
        self.state == State::Certain
    }

    fn step(&mut self, character: char) -> State {
        let blank = is_blank(character);
        match (self.state, character) {
            (State::Before, _) if blank => State::Before,
            (State::Before, '-') if self.may_be_number => State::Minus,
            (State::Before, '0'..='9') if self.may_be_number => self.first_digit(character),
            (State::Before, _) => {
                match self.words.iter().find(|word| word.starts_with(character)) {
                    Some(word) => State::Word { word, read: 1 },
                    None => State::Certain,
                }
            }
            (State::Word { word, read }, _) => match word.chars().nth(read) {
                Some(next) if next == character => State::Word {
                    word,
                    read: read + 1,
                },
                None if blank => State::After,
                _ => State::Certain,
            },
            (State::Minus, '0'..='9') => self.first_digit(character),
            (State::Whole, '0'..='9') => self.digit(character, State::Whole),
            (State::Zero | State::Whole, '.') => {
                self.digits.has_point = true;
                State::Point
            }
            (State::Point | State::Fraction, '0'..='9') => self.digit(character, State::Fraction),
            (State::Zero | State::Whole | State::Fraction | State::After, _) if blank => {
                State::After
            }
            _ => State::Certain,
        }
    }

    fn first_digit(&mut self, digit: char) -> State {
        let next = if digit == '0' {
            State::Zero
        } else {
            State::Whole
        };
        self.digit(digit, next)
    }

    fn digit(&mut self, digit: char, next: State) -> State {
        let digits = &mut self.digits;
        if !digits.has_point {
            digits.before_point += 1;
        }
        if digit != '0' {
            digits.significant += digits.zeros + 1;
            digits.zeros = 0;
        } else if digits.significant > 0 {
            digits.zeros += 1;
        }
        let most = if digits.has_point {
            FLOAT_DIGITS
        } else {
            WHOLE_DIGITS
        };
        if digits.significant > most || digits.before_point > MOST_WHOLE {
            State::Certain
        } else {
            next
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Doubt;
    use serde_json::Value;

    use crate::coerce::{Coerced, coerce};
    use crate::decimal::{Decimal, Notation};
    use crate::reading::{Reading, is_null};

    /// How many characters are read before the text is certain to be a string.
    fn read_until_certain(mut doubt: Doubt, text: &str) -> Option<usize> {
        let certain = |character: char| doubt.read(character.encode_utf8(&mut [0; 4]));
        text.chars().position(certain).map(|at| at + 1)
    }

    /// `expected` characters are read before the text is certain to be a string; `None`: it never is.
    fn check(doubt: Doubt, text: &str, expected: Option<usize>) {
        assert_eq!(read_until_certain(doubt, text), expected, "{text:?}");
    }

    #[test]
    fn a_text_is_a_string_as_soon_as_it_must_be() {
        let ones = "1".repeat(400);
        let zeros = format!("1{}", "0".repeat(400));
        for (text, expected) in [
            ("", None),
            ("  \t", None),
            ("x", Some(1)),
            ("  x", Some(3)),
            ("true", None),
            ("true  ", None),
            ("true x", Some(6)),
            ("truex", Some(5)),
            ("tree", Some(3)),
            ("fall", Some(4)),
            ("null", Some(1)),
            ("é", Some(1)),
            ("\n", Some(1)),
            ("5\n", Some(2)),
            ("5\r", Some(2)),
            ("12 ", None),
            ("12 3", Some(4)),
            ("-", None),
            ("--", Some(2)),
            ("-5", None),
            ("007", Some(2)),
            ("0.0", None),
            ("5.", None),
            ("5.x", Some(3)),
            ("1.2.3", Some(4)),
            ("1e5", Some(2)),
            ("+5", Some(1)),
            (".5", Some(1)),
            ("0x10", Some(2)),
            ("10:30", Some(3)),
            ("2024-01-01", Some(5)),
            ("3.14159265358979323846", Some(19)),
            ("18446744073709551615", None),
            (&ones, Some(21)),
            (&zeros, Some(310)),
        ] {
            check(Doubt::guessed(), text, expected);
        }
        for (text, expected) in [
            ("null", None),
            (" null\t", None),
            ("nul", None),
            ("none", Some(2)),
            ("nulls", Some(5)),
            ("null\n", Some(5)),
            ("5", Some(1)),
            ("true", Some(1)),
        ] {
            check(Doubt::null(), text, expected);
        }
    }

    /// Every short text of the characters that matter.
    #[test]
    fn what_is_no_string_is_never_taken_for_one() {
        let characters = [
            "-", "0", "1", "9", ".", " ", "\n", "true", "false", "null", "e",
        ];
        let mut texts = vec![String::new()];
        for _ in 0..6 {
            let longer = |text: &String| characters.map(|character| format!("{text}{character}"));
            texts = texts.iter().flat_map(longer).collect();
            for text in texts
                .iter()
                .filter(|text| !matches!(coerce(text), Coerced::String(_)))
            {
                check(Doubt::guessed(), text, None);
            }
            for text in texts.iter().filter(|text| is_null(text)) {
                check(Doubt::null(), text, None);
            }
            let readings = [Reading::Null, Reading::Boolean, Reading::Number];
            let is_no_string = |text: &str| {
                readings
                    .iter()
                    .any(|reading| reading.fitting_beside_string(text).is_some())
            };
            for text in texts.iter().filter(|text| is_no_string(text)) {
                check(Doubt::scalar(), text, None);
            }
            // What is certain stays so: nothing longer needs a look.
            texts.retain(|text| read_until_certain(Doubt::guessed(), text).is_none());
        }
        assert!(texts.len() > 1000, "{}", texts.len());
    }

    /// The limits of digits, at their edges.
    #[test]
    fn long_numbers_are_never_taken_for_strings() {
        let mut numbers = vec![
            u64::MAX.to_string(),
            i64::MIN.to_string(),
            format!("{}.0", f64::MAX),
            format!("{}.0", f64::MIN),
            format!("0.{}5", "0".repeat(323)),
            format!("0.{}", "0".repeat(1000)),
            format!("1.5{}", "0".repeat(1000)),
        ];
        let mut bits = 1_u64;
        for _ in 0..10_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let float = f64::from_bits(bits);
            if float.is_finite() {
                let written = Value::from(float).to_string();
                let number = Decimal::parse(&written, Notation::Free).expect("a number");
                numbers.push(number.plain_text());
            }
            numbers.push(bits.to_string());
        }
        for number in &numbers {
            assert!(!matches!(coerce(number), Coerced::String(_)), "{number}");
            check(Doubt::guessed(), number, None);
        }
    }
}
