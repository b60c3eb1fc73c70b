//! The rules by which texts become values, in words.

use std::fmt;

use crate::coerce::{Coerced, WhyText, coerce};
use crate::reading::Reading;
use crate::schema::{Kinds, Misfit, Place, Spelling};

/// Why a text is the value that it is. It shows itself as a phrase, such as `declared: a whole number; the text is one`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// No definition is known: the text alone decides.
    NoSchema(Guess),
    /// The schema says nothing about the type, so the text alone decides.
    OpenSchema(Guess),
    /// The schema says what may stand there.
    Declared {
        /// What, in words.
        expected: String,
        /// What the text is of it.
        fit: Fit,
        /// Whether a text may stand there too, but not this one.
        is_no_text: bool,
        /// Whether the schema allows several forms, and what else is written has decided between them.
        is_form: bool,
    },
    /// It is the body of an emoji call, exactly as written.
    Body,
    /// It stands in a JSON body, whose values have types of their own.
    JsonBody,
    /// The text is nothing of what may stand there.
    Unfit {
        /// What may, in words.
        expected: String,
        /// Whether it is a list or an object as it should be, and something inside it is not.
        is_inside: bool,
    },
    /// Nothing may stand there.
    NotDeclared,
    /// What is wrong lies further out, so nothing was looked for here.
    NotRead,
    /// The line and the body of an emoji call have no names without a definition.
    NoDefinition,
}

/// What a text is where nothing is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guess {
    /// `true` or `false`.
    Boolean,
    /// It is written as a whole number is.
    WholeNumber,
    /// It is written as a number with a point is.
    Number,
    /// It stays a text.
    Text(WhyText),
}

/// What a text is of what may stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fit {
    /// A text, and nothing else may stand there.
    Text,
    /// A text beside something else whose JSON spelling it is not.
    TextBesideOthers,
    /// The only value that may stand there.
    Constant,
    /// One of the values that are listed.
    Listed,
    /// The word `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    WholeNumber,
    /// A number.
    Number,
    /// JSON text of a list or an object.
    Json,
}

/// Why a value is what it is, and where its text stands.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) place: super::TextPlace,
    pub(crate) rule: Rule,
}

impl Guess {
    pub(crate) fn of(text: &str) -> Self {
        match coerce(text) {
            Coerced::Boolean(_) => Self::Boolean,
            Coerced::Natural(_) | Coerced::Negative(_) => Self::WholeNumber,
            Coerced::Float(_) => Self::Number,
            Coerced::String(text) => Self::Text(WhyText::of(text)),
        }
    }
}

impl Rule {
    /// The rule by which a text was read at a place of a schema.
    pub(crate) fn of(place: &Place<'_>, spelling: &Spelling, text: &str, is_form: bool) -> Self {
        if let Some(misfit) = &spelling.misfit {
            return Self::unfit(misfit);
        }
        let stated = place.stated();
        let has_text = stated.kinds().has(Kinds::STRING);
        let is_only_text = stated.kinds() == Kinds::STRING;
        let fit = match spelling.reading {
            Reading::Coerced => return Self::OpenSchema(Guess::of(text)),
            _ if stated.is_listed() => match stated.constants().map(|all| all.len()) {
                Some(0 | 1) => Fit::Constant,
                _ => Fit::Listed,
            },
            Reading::Null => Fit::Null,
            Reading::String if is_only_text => Fit::Text,
            Reading::String => Fit::TextBesideOthers,
            Reading::Boolean => Fit::Boolean,
            Reading::Integer => Fit::WholeNumber,
            Reading::Number => Fit::Number,
            Reading::Json => Fit::Json,
        };
        let is_otherwise_text = matches!(spelling.reading, Reading::String | Reading::Null);
        Self::Declared {
            expected: stated.in_words(),
            fit,
            is_no_text: has_text
                && !is_otherwise_text
                && !spelling.is_beside_string
                && !stated.is_listed(),
            is_form,
        }
    }

    /// The rule by which a value in a JSON body was read.
    pub(crate) fn of_json(spelling: &Spelling) -> Self {
        match &spelling.misfit {
            Some(misfit) => Self::unfit(misfit),
            None => Self::JsonBody,
        }
    }

    fn unfit(misfit: &Misfit) -> Self {
        Self::Unfit {
            expected: misfit.expected.clone(),
            is_inside: misfit.is_inside,
        }
    }

    /// Its stable name, as programs read it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NoSchema(_) => "no_schema",
            Self::OpenSchema(_) => "open_schema",
            Self::Declared { .. } => "declared",
            Self::Body => "body",
            Self::JsonBody => "json_body",
            Self::Unfit { .. } => "unfit",
            Self::NotDeclared => "not_declared",
            Self::NotRead => "not_read",
            Self::NoDefinition => "no_definition",
        }
    }

    /// The section of the project's specification that it is: `spec/block.md 7.7.1`.
    pub const fn section(&self) -> &'static str {
        match self {
            Self::NoSchema(_) => "spec/block.md 7.7",
            Self::OpenSchema(_)
            | Self::Declared { .. }
            | Self::Unfit { .. }
            | Self::NotDeclared
            | Self::NotRead => "spec/block.md 7.7.1",
            Self::Body | Self::JsonBody | Self::NoDefinition => "spec/emoji.md 8",
        }
    }

    /// Whether there is a value by it.
    pub(crate) const fn gives_value(&self) -> bool {
        !matches!(self, Self::Unfit { .. } | Self::NotDeclared | Self::NotRead)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSchema(guess) => write!(formatter, "no schema: {guess}"),
            Self::OpenSchema(guess) => {
                write!(formatter, "the schema leaves the type open: {guess}")
            }
            Self::Declared {
                expected,
                fit,
                is_no_text,
                is_form,
            } => {
                let form = if *is_form {
                    "declared in the form that fits the rest"
                } else {
                    "declared"
                };
                write!(formatter, "{form}: {expected}; ")?;
                if *is_no_text {
                    formatter.write_str("as a text it is not allowed, and ")?;
                }
                write!(formatter, "{fit}")
            }
            Self::Body => formatter.write_str("the body is this text, exactly as written"),
            Self::JsonBody => {
                formatter.write_str("the body is JSON, whose values have types of their own")
            }
            Self::Unfit {
                expected,
                is_inside,
            } => {
                let found = if *is_inside {
                    "what stands there is one, with something wrong inside"
                } else {
                    "what stands there is not"
                };
                write!(formatter, "declared: {expected}; {found}")
            }
            Self::NotDeclared => formatter.write_str("not declared: nothing may stand there"),
            Self::NotRead => formatter.write_str("not read, since what is wrong lies further out"),
            Self::NoDefinition => formatter.write_str(
                "no definition of the tool says what the line and the body mean: both stay texts",
            ),
        }
    }
}

impl fmt::Display for Guess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => formatter.write_str("`true` and `false` are booleans"),
            Self::WholeNumber => formatter.write_str("it is written as a whole number is"),
            Self::Number => formatter.write_str("it is written as a number is"),
            Self::Text(why) => write!(formatter, "it stays a text, since {why}"),
        }
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Text => "it stays exactly as written",
            Self::TextBesideOthers => {
                "beside a text, only the JSON spelling of another value counts, and this is none"
            }
            Self::Constant => "the text is that",
            Self::Listed => "the text is one of them",
            Self::Null => "the text is the word `null`",
            Self::Boolean => "the text is one of the two words",
            Self::WholeNumber => "the text is a whole number",
            Self::Number => "the text is a number",
            Self::Json => "the text is JSON of one",
        })
    }
}
