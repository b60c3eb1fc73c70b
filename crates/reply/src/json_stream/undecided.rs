//! Decides when the beginning of a text can only become a string.

use plaincall_syntax::is_blank;

/// Reads a text piece by piece until it is certain to be a string (`spec/json-stream.md` 3).
///
/// A text that is undecided may still be a string.
#[derive(Clone, Debug)]
pub(crate) struct Undecided {
    words: &'static [&'static str],
    may_be_number: bool,
    may_be_object: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    /// White space with a line end, after which only an object may follow.
    Lines,
    Object,
    /// The first letters of a word with a meaning of its own.
    Word {
        word: &'static str,
        read: usize,
    },
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    /// Blanks after a word or number.
    After,
    Certain,
}

impl Undecided {
    /// For a text without a schema (`spec/block.md` 7.7).
    pub(crate) fn guessed() -> Self {
        Self::new(&["true", "false"], true)
    }

    /// For a string, unless the text is `null`.
    pub(crate) fn null() -> Self {
        Self::new(&["null"], false)
    }

    /// For a string, unless the text is null, a boolean or a number in JSON notation.
    pub(crate) fn scalar() -> Self {
        Self::new(&["null", "true", "false"], true)
    }

    /// For a string, unless the text is null, a boolean, a number or an object in JSON notation.
    pub(crate) fn object() -> Self {
        Self {
            may_be_object: true,
            ..Self::scalar()
        }
    }

    fn new(words: &'static [&'static str], may_be_number: bool) -> Self {
        Self {
            words,
            may_be_number,
            may_be_object: false,
            state: State::Before,
        }
    }

    /// Reads the next piece; returns `true` once the text is certain to be a string.
    pub(crate) fn read(&mut self, piece: &str) -> bool {
        for character in piece.chars() {
            if self.state == State::Certain {
                break;
            }
            self.state = self.step(character);
        }
        self.state == State::Certain
    }

    fn step(&self, character: char) -> State {
        let blank = is_blank(character);
        match (self.state, character) {
            (State::Before, _) if blank => State::Before,
            (State::Before | State::Lines, '\n' | '\r') if self.may_be_object => State::Lines,
            (State::Lines, _) if blank => State::Lines,
            (State::Before | State::Lines, '{') if self.may_be_object => State::Object,
            (State::Object, _) => State::Object,
            (State::Before, '-') if self.may_be_number => State::Minus,
            (State::Before | State::Minus, '0') if self.may_be_number => State::Zero,
            (State::Before | State::Minus, '1'..='9') if self.may_be_number => State::Whole,
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
            (State::Whole, '0'..='9') => State::Whole,
            (State::Zero | State::Whole, '.') => State::Point,
            (State::Point | State::Fraction, '0'..='9') => State::Fraction,
            (State::Zero | State::Whole | State::Fraction | State::After, _) if blank => {
                State::After
            }
            _ => State::Certain,
        }
    }
}
