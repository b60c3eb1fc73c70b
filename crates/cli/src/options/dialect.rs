//! The `--dialect` option of commands that read or write a text, and of those that teach a model.

use std::str::FromStr;

use clap::Args;
use plaincall_config::settings::{Model, Reasoning, Syntax};
use plaincall_config::{DialectOptions, MarkerPlaces, SyntaxChoice};
use plaincall_syntax::{Dialect, DialectError};

use crate::status::Failure;

/// The dialect of a text.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Syntax")]
pub(crate) struct DialectOption {
    /// The dialect: `block`, `emoji` or `auto`, and options after it, as `plaincall check --help` describes them, without
    /// `no-reasoning`. Default: `block` if a marker is set, else `auto`.
    #[arg(
        long,
        value_name = "DIALECT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) dialect: DialectOptions,
}

/// The dialect of a reply whose calls are run or counted.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Syntax")]
pub(crate) struct ReplyDialectOption {
    /// The dialect: `block`, `emoji` or `auto` (the syntax of the first call), and options after it, separated by blanks.
    ///
    /// A value with blanks is in quotes. The options are those of spec/README.md: `start=`, `end=` and `arg=` set the markers of the block syntax; `anywhere`
    /// recognizes them anywhere in a line; `strict` accepts only the canonical form of the emoji marker; `self-closing` accepts
    /// ` /]` as the end of an emoji call without a body; with `escaped`, a backslash before the last character of a marker makes
    /// it content; `key=` is part of every marker; `reasoning=OPEN,CLOSE` sets the markers around reasoning; `in-reasoning`
    /// starts inside it. `<think>` and the markers of `reasoning=` start reasoning if they are the first text of the reply or of the
    /// text after a call; with `no-reasoning` (not in `render` and `grammar`), `<think>` is text. Default: `block` if a marker is set, else `auto`.
    #[arg(
        long,
        value_name = "DIALECT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) dialect: ReplyDialect,
}

/// The dialect of a reply.
#[derive(Clone, Debug)]
pub(crate) struct ReplyDialect {
    pub(crate) options: DialectOptions,
    /// Whether `<think>` is text.
    pub(crate) no_reasoning: bool,
}

impl FromStr for ReplyDialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words = [&DialectOptions::WORDS[..], &["no-reasoning"]].concat();
        let (options, further) = DialectOptions::of_words(text, &words)?;
        let no_reasoning = !further.is_empty();
        if no_reasoning && (options.reasoning.is_some() || options.in_reasoning) {
            let message = "`no-reasoning` cannot be used with `reasoning=` or `in-reasoning`";
            return Err(format!("{message}; remove one"));
        }
        Ok(Self {
            options,
            no_reasoning,
        })
    }
}

impl ReplyDialect {
    /// Returns the dialect ([`Dialect::for_reply`]).
    pub(crate) fn of_reply(&self) -> Result<Dialect, DialectError> {
        self.options.of_reply(self.no_reasoning)
    }
}

/// The words of a dialect that a model is taught.
const TAUGHT: [&str; 10] = [
    "block",
    "emoji",
    "start=",
    "end=",
    "arg=",
    "anywhere",
    "self-closing",
    "keyed",
    "reasoning=",
    "in-reasoning",
];

/// The dialect that a model is taught, as settings of a model.
#[derive(Clone, Debug)]
pub(crate) struct TaughtDialect(Model);

impl FromStr for TaughtDialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (options, further) = DialectOptions::of_words(text, &TAUGHT)?;
        let syntax = options.syntax.map(|syntax| match syntax {
            SyntaxChoice::Emoji => Syntax::Emoji,
            _ => Syntax::Block,
        });
        let reasoning = options.reasoning.and_then(|it| it.try_into().ok());
        Ok(Self(Model {
            syntax,
            start_prefix: options.start_prefix,
            end_prefix: options.end_prefix,
            arg_prefix: options.arg_prefix,
            markers_anywhere: (options.markers == MarkerPlaces::Anywhere).then_some(true),
            self_closing: options.self_closing.then_some(true),
            keyed: (!further.is_empty()).then_some(true),
            reasoning: reasoning.map(Reasoning::Between),
            in_reasoning: options.in_reasoning.then_some(true),
            ..Model::default()
        }))
    }
}

impl TaughtDialect {
    /// Applies the dialect to the settings of a model.
    pub(crate) fn apply_to(&self, model: &Model) -> Result<Model, Failure> {
        let taught = self.0.clone().over(model);
        match taught.teaching_problem() {
            None => Ok(taught),
            Some((_, message)) => Err(Failure::Usage(format!("`--dialect`: {message}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use plaincall_config::settings::{Model, Syntax};

    use super::{ReplyDialect, TaughtDialect};

    #[test]
    fn a_reply_may_have_no_reasoning() {
        let reply: ReplyDialect = "emoji no-reasoning".parse().unwrap();
        assert!(reply.no_reasoning && reply.options == "emoji".parse().unwrap());
        for text in [
            "no-reasoning in-reasoning",
            "no-reasoning reasoning=<a>,<b>",
        ] {
            let error = text.parse::<ReplyDialect>().unwrap_err();
            assert!(error.contains("cannot be used with"), "{error}");
        }
    }

    #[test]
    fn a_model_is_taught_a_dialect() {
        let taught: TaughtDialect = "emoji self-closing keyed".parse().unwrap();
        let model = taught.apply_to(&Model::default()).unwrap();
        let expected = (Some(Syntax::Emoji), Some(true), Some(true));
        assert_eq!((model.syntax, model.self_closing, model.keyed), expected);
        let taught: TaughtDialect = "block anywhere".parse().unwrap();
        let model = taught.apply_to(&model).unwrap();
        let expected = (Some(Syntax::Block), Some(true), None);
        let found = (model.syntax, model.markers_anywhere, model.self_closing);
        assert_eq!(found, expected);
        let taught: TaughtDialect = "emoji".parse().unwrap();
        let model = taught.apply_to(&model).unwrap();
        assert_eq!(model.markers_anywhere, None);
        let taught: TaughtDialect = "reasoning=<t>,</t>".parse().unwrap();
        let model = taught.apply_to(&model).unwrap();
        let expected = (Some(Syntax::Emoji), ["<t>".into(), "</t>".into()]);
        assert_eq!((model.syntax, model.reasoning().unwrap()), expected);
        for (text, words) in [
            ("auto", "the options of this dialect are block emoji start="),
            ("key=k1", "unknown option `key=k1`"),
            ("keyd", "did you mean `keyed`?"),
            ("emoji anywhere", "`anywhere` is for the block syntax"),
            ("keyed keyed", "`keyed` is given twice"),
            ("emoji start=<<<", "`start=` is for the block syntax"),
            ("emoj", "did you mean `emoji`?"),
        ] {
            let error = text.parse::<TaughtDialect>().unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let taught: TaughtDialect = "start=<<<".parse().unwrap();
        let error = taught.apply_to(&model).unwrap_err();
        assert!(error.message().contains("a marker of the block syntax"));
    }
}
