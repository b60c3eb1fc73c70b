//! Why the arguments of a call are what they are.

pub(crate) mod rule;

use std::collections::BTreeMap;
use std::fmt;

use plaincall_syntax::{Span, Syntax};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::bind::{Problem, Problems, beginnings, bind_written, problems_of_text};
use crate::call::ToolCall;
use crate::document::Pair;
use crate::explain::rule::{Guess, Reason, Rule};
use crate::tool::ToolSpec;
use crate::tool::set::ToolSet;

/// Why the arguments of a call are what they are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The arguments, in the order in which they are written.
    pub arguments: Vec<Explained>,
    /// What is wrong with the call and with none of these arguments.
    pub problems: Vec<Problem>,
}

/// One argument: its text, its value, and the rule by which it is that.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// Where it goes.
    pub pointer: String,
    /// What of the call the text is.
    pub place: TextPlace,
    /// Where it stands in the input.
    pub span: Span,
    /// The text, exactly as written.
    pub text: String,
    /// The value; `None` if the text is nothing that may stand there.
    pub value: Option<Value>,
    /// The rule.
    pub rule: Rule,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// What of a call a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPlace {
    /// The value of an argument marker (block).
    Argument,
    /// A word of the line, from 1 (emoji).
    Word(usize),
    /// The line from this word on (emoji).
    LineFrom(usize),
    /// The body (emoji).
    Body,
    /// A member of the JSON object in the body (emoji).
    JsonMember,
}

/// Says of each argument of a call by which rule its text became its value.
///
/// It tells what [`bind`](crate::bind) did with the definition of the tool, or, without one, what the text alone says.
/// A call that is wrong is explained as far as it could be read.
///
/// ```
/// use plaincall_call::{Document, Parameter, ParameterKind, ToolSpec, explain};
/// use plaincall_syntax::Dialect;
///
/// let tool = ToolSpec::new("find").parameter(Parameter::new("zip", ParameterKind::Integer));
/// let document = Document::parse("!!!GADGET_START:find\n!!!ARG:zip\n02134\n!!!GADGET_END", &Dialect::block())?;
/// let call = document.calls().next().expect("a call");
///
/// let with = &explain(Some(&tool), call).arguments[0];
/// assert_eq!(with.value, Some(2134.into()));
/// assert_eq!(with.rule.to_string(), "declared: a whole number; the text is a whole number");
///
/// let without = &explain(None, call).arguments[0];
/// assert_eq!(without.value, Some("02134".into()));
/// assert_eq!(without.rule.to_string(), "no schema: it stays a text, since it has a leading zero");
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
pub fn explain(tool: Option<&ToolSpec>, call: &ToolCall) -> Explanation {
    let Some(tool) = tool else {
        return Explanation {
            arguments: without_definition(call),
            problems: problems_of_text(call).collect(),
        };
    };
    let mut problems = Problems::with_reasons();
    let arguments = bind_written(tool, call, &mut problems);
    let (problems, mut reasons) = problems.into_parts();
    let not_read = || Reason {
        place: match call.syntax {
            Syntax::Block => TextPlace::Argument,
            Syntax::Emoji => TextPlace::JsonMember,
        },
        rule: Rule::NotRead,
    };
    let explained = |index| {
        let reason = reasons.remove(&index).unwrap_or_else(not_read);
        explained(&arguments, index, reason)
    };
    let arguments = (0..arguments.len()).filter_map(explained).collect();
    Explanation::new(arguments, problems)
}

impl ToolSet {
    /// Says of each argument of a call by which rule its text became its value: [`explain`] by the definition of the
    /// tool that it names.
    pub fn explain(&self, call: &ToolCall) -> Explanation {
        let tool = self.get(&call.name);
        let mut explanation = explain(tool, call);
        if tool.is_none() {
            explanation.problems.insert(0, self.problem(call));
        }
        explanation
    }
}

fn explained(arguments: &Arguments, index: usize, reason: Reason) -> Option<Explained> {
    let leaf = arguments.leaf(index)?;
    let text = arguments.text(leaf);
    let Reason { place, rule } = reason;
    Some(Explained {
        pointer: leaf.pointer.to_string(),
        place,
        span: leaf.span,
        text: text.to_owned(),
        value: rule.gives_value().then(|| leaf.reading.value(text)),
        rule,
        problems: Vec::new(),
    })
}

/// What the text alone says.
fn without_definition(call: &ToolCall) -> Vec<Explained> {
    if call.syntax == Syntax::Block {
        let leaves = 0..call.arguments.len();
        let explained = |index| {
            let leaf = call.arguments.leaf(index)?;
            let rule = Rule::NoSchema(Guess::of(call.arguments.text(leaf)));
            let place = TextPlace::Argument;
            explained(&call.arguments, index, Reason { place, rule })
        };
        return leaves.filter_map(explained).collect();
    }
    let line = call.raw_args().unwrap_or_default();
    let body = call.body().unwrap_or_default();
    let parts = [
        (
            "raw_args",
            TextPlace::LineFrom(1),
            line,
            call.raw_args_span(),
        ),
        ("body", TextPlace::Body, body, call.body_span()),
    ];
    parts
        .into_iter()
        .filter(|(.., text, _)| !text.is_empty())
        .map(|(name, place, text, span)| Explained {
            pointer: name.to_owned(),
            place,
            span: span.unwrap_or_default(),
            text: text.to_owned(),
            value: Some(text.into()),
            rule: Rule::NoDefinition,
            problems: Vec::new(),
        })
        .collect()
}

impl Explanation {
    /// Tells each problem with the argument that it is about.
    fn new(mut arguments: Vec<Explained>, problems: Vec<Problem>) -> Self {
        let mut rest = Vec::new();
        let places: BTreeMap<String, usize> = arguments
            .iter()
            .enumerate()
            .map(|(index, argument)| (argument.pointer.clone(), index))
            .collect();
        for problem in problems {
            let pointer = problem.pointer.as_str();
            let below = format!("{pointer}/");
            let found = match pointer {
                "" => None,
                _ => places.get(pointer),
            }
            // Inside a list or an object that stands as JSON text.
            .or_else(|| beginnings(pointer).find_map(|beginning| places.get(beginning)))
            // A list or an object of which several arguments are parts.
            .or_else(|| {
                let (first, index) = places.range(below.clone()..).next()?;
                (!pointer.is_empty() && first.starts_with(&below)).then_some(index)
            });
            let argument = found.and_then(|index| arguments.get_mut(*index));
            match argument.filter(|_| problem.code != "missing_argument") {
                Some(argument) => argument.problems.push(problem),
                None => rest.push(problem),
            }
        }
        Self {
            arguments,
            problems: rest,
        }
    }
}

impl TextPlace {
    /// Its stable name, as programs read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::Word(_) => "word",
            Self::LineFrom(_) => "line_from",
            Self::Body => "body",
            Self::JsonMember => "json_member",
        }
    }
}

/// `the 2nd word of the line`.
impl fmt::Display for TextPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument => formatter.write_str("its argument"),
            Self::Word(number) => write!(formatter, "the {} word of the line", Ordinal(*number)),
            Self::LineFrom(1) => formatter.write_str("the whole line"),
            Self::LineFrom(number) => {
                write!(formatter, "the line from the {} word on", Ordinal(*number))
            }
            Self::Body => formatter.write_str("the body"),
            Self::JsonMember => formatter.write_str("the JSON in the body"),
        }
    }
}

struct Ordinal(usize);

impl fmt::Display for Ordinal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0;
        let ending = match (number % 10, number % 100) {
            (_, 11..=13) => "th",
            (1, _) => "st",
            (2, _) => "nd",
            (3, _) => "rd",
            _ => "th",
        };
        write!(formatter, "{number}{ending}")
    }
}

impl Serialize for Explained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("pointer", &self.pointer)?;
        fields.serialize_entry("place", self.place.name())?;
        if let TextPlace::Word(number) | TextPlace::LineFrom(number) = self.place {
            fields.serialize_entry("word", &number)?;
        }
        fields.serialize_entry("span", &Pair(self.span))?;
        fields.serialize_entry("text", &self.text)?;
        if let Some(value) = &self.value {
            fields.serialize_entry("value", value)?;
        }
        fields.serialize_entry("rule", self.rule.name())?;
        fields.serialize_entry("reason", &self.rule.to_string())?;
        fields.serialize_entry("section", self.rule.section())?;
        fields.serialize_entry("problems", &self.problems)?;
        fields.end()
    }
}
