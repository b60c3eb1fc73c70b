//! Grammars for constrained decoding: an inference engine keeps a model from writing an invalid call (`spec/grammar.md`).

mod arguments;
mod automaton;
mod ecma_pattern;
mod emoji;
mod engine;
mod exclusion;
mod gbnf;
mod integers;
mod json_string;
mod keywords;
mod lark;
mod near_misses;
mod options;
mod pattern;
mod productive;
mod schema_values;
mod string_limits;
mod structural_tag;
mod text;

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use plaincall_syntax::{Dialect, DialectError, MarkerUse, Syntax};
use serde_json::Value;

use arguments::{ArgumentValue, Lines};
use automaton::Automaton;
use emoji::{EmojiBody, EmojiForm};
use exclusion::Exclusion;
pub use options::{Choice, GrammarOptions};
use pattern::Pattern;
pub use plaincall_names::{Constrain, Engine};
use schema_values::{Rules, SchemaValues};
use text::Texts;

use crate::tool::ToolSpec;

/// The maximum size of all calls and rules, in parts. An engine needs seconds for more.
const MOST_PARTS: usize = 100_000;

/// The maximum number of parts of rules, in the copies that each value has in a structural tag.
const MOST_COPIED: usize = 1_000_000;

/// The maximum number of pointer lines of a tool. Other values are JSON.
const MOST_LINES: usize = 2_000;
/// The characters of JSON outside strings.
const JSON_SIGNS: &str = "[]{},:+-.0123456789eEtrufalsn";

/// Creates the grammar of the replies that may call these tools (`spec/grammar.md`).
///
/// The grammar accepts prose and calls that parse and bind without a problem, except for keywords of the schemas that
/// [`Grammar::unheld`] names. It accepts fewer texts than the parser: arguments come in declared order, and values contain no
/// markers.
///
/// ```
/// use plaincall_call::{Parameter, ParameterKind, ToolSpec};
/// use plaincall_call::grammar::{GrammarOptions, grammar};
/// use plaincall_syntax::Dialect;
///
/// let add = ToolSpec::new("add")
///     .parameter(Parameter::new("a", ParameterKind::Integer))
///     .parameter(Parameter::new("b", ParameterKind::Integer));
/// let grammar = grammar([&add], &Dialect::block(), &GrammarOptions::new().required())?;
/// assert!(grammar.gbnf().contains(r#""add\n" "!!!ARG:a\n""#));
/// assert!(grammar.unheld().is_empty());
/// # Ok::<(), plaincall_call::grammar::GrammarError>(())
/// ```
///
/// # Errors
/// Returns an error for an invalid dialect or the automatic one, if there is no tool to call, if a name or pointer contains a
/// marker, and if the grammar would be too large.
pub fn grammar<'t>(
    tools: impl IntoIterator<Item = &'t ToolSpec>,
    dialect: &Dialect,
    options: &GrammarOptions,
) -> Result<Grammar, GrammarError> {
    let syntax = dialect.syntax().ok_or(DialectError::NoSyntax)?;
    let all: Vec<&ToolSpec> = tools.into_iter().collect();
    let tools = options.chosen(&all)?;
    let markers = Markers::of(dialect)?;
    let value = Exclusion::of_markers(dialect)?;
    markers.check(syntax)?;
    let escapes = exclusion::escapes(&markers.all, dialect);
    let free_text = Automaton::excluding(&value);
    let json = exclusion::in_json(&markers.all, dialect);
    let mut rules = Rules::new(Texts::new(&value, &escapes, json));
    let mut calls = Vec::new();
    let (mut size, mut largest) = (0, (0, "", None));
    for tool in tools {
        let rules_before = rules.size();
        let reader = tool.schema().reader();
        let mut values = SchemaValues {
            reader: &reader,
            tool: &tool.name,
            rules: &mut rules,
            free_text: &free_text,
            known: HashMap::new(),
            json_depth: 0,
            repeated: None,
            lines_left: MOST_LINES,
            lines_size: 0,
            culprit: None,
            escapes: &escapes,
            is_self_closing: dialect.is_self_closing(),
        };
        let form = match syntax {
            Syntax::Block => values.arguments().map(Form::Block),
            Syntax::Emoji => values.emoji_form(tool).map(Form::Emoji),
        };
        let form_size = match &form {
            Some(Form::Block(lines)) => lines.size(),
            Some(Form::Emoji(form)) => form.size(),
            None => 0,
        };
        let form_size = form_size.max(values.lines_size);
        let (has_no_steps, culprit) = (values.has_no_steps(), values.culprit.take());
        let own = form_size.saturating_add(rules.size() - rules_before);
        largest = largest.max((own, &tool.name, culprit));
        size += form_size;
        if has_no_steps || rules.size().saturating_add(size) > MOST_PARTS {
            let (_, tool, culprit) = largest;
            let (pointer, keyword) = culprit.unwrap_or_default();
            return Err(GrammarError::TooLarge {
                tool: tool.to_owned(),
                pointer,
                keyword,
                most: MOST_PARTS,
            });
        }
        let form = form.filter(|_| free_text.accepts(&format!("{}:", tool.name)));
        let form = form.ok_or_else(|| GrammarError::NoCall {
            tool: tool.name.clone(),
        })?;
        calls.push(CallForm {
            name: tool.name.clone(),
            form,
        });
    }
    let has_ids = options.has_ids && syntax == Syntax::Block;
    let reasoning = dialect.reasoning_markers().map(|[open, close]| Reasoning {
        open: open.to_owned(),
        close: close.to_owned(),
        is_open: dialect.is_in_reasoning(),
    });
    let think = reasoning
        .iter()
        .flat_map(|one| [one.open.clone(), one.close.clone()]);
    let grammar = Grammar {
        prose: value.clone().and(think),
        value,
        free_text,
        texts: rules.texts,
        markers,
        calls,
        rules: rules.all,
        unheld: rules.unheld.into_iter().collect(),
        needs_call: options.needs_call(),
        most: options.most(),
        has_ids,
        reasoning,
    };
    let grammar = productive::pruned(grammar)?;
    match grammar.first_copied_too_often() {
        None => Ok(grammar),
        Some(pointer) => Err(GrammarError::TooLarge {
            tool: largest.1.to_owned(),
            pointer,
            keyword: "$ref",
            most: MOST_PARTS,
        }),
    }
}

/// A grammar of replies, in the notation of any engine.
#[derive(Clone, Debug)]
pub struct Grammar {
    markers: Markers,
    prose: Exclusion,
    value: Exclusion,
    /// Any text of a value.
    free_text: Automaton,
    texts: Texts,
    calls: Vec<CallForm>,
    rules: Vec<Pattern>,
    unheld: Vec<Unheld>,
    needs_call: bool,
    /// The maximum number of calls.
    most: usize,
    has_ids: bool,
    reasoning: Option<Reasoning>,
}

#[derive(Clone, Debug)]
struct CallForm {
    name: String,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Block(Lines),
    Emoji(EmojiForm),
}

#[derive(Clone, Debug)]
struct Reasoning {
    open: String,
    close: String,
    /// Whether the reply begins inside reasoning.
    is_open: bool,
}

/// The markers that the grammar writes, and all that it excludes.
#[derive(Clone, Debug)]
struct Markers {
    start: String,
    end: String,
    arg: String,
    all: Vec<String>,
}

impl Markers {
    fn of(dialect: &Dialect) -> Result<Self, DialectError> {
        let forms = dialect.without_reasoning().markers()?;
        // The first form is the canonical one.
        let of = |wanted: fn(MarkerUse) -> bool| {
            let found = forms.iter().find(|form| wanted(form.usage));
            found.map_or_else(String::new, |form| form.text.clone())
        };
        Ok(Self {
            start: of(|usage| matches!(usage, MarkerUse::Start(_))),
            end: of(|usage| matches!(usage, MarkerUse::End(_))),
            arg: of(|usage| usage == MarkerUse::Argument),
            all: forms.iter().map(|form| form.text.clone()).collect(),
        })
    }

    /// Checks that the text around a marker cannot make it another one, and that JSON contains none.
    fn check(&self, syntax: Syntax) -> Result<(), GrammarError> {
        let written = match syntax {
            Syntax::Block => vec![&self.start],
            Syntax::Emoji => vec![&self.start, &self.end],
        };
        let overlaps = |marker: &String| {
            let mut ends = marker.char_indices().skip(1);
            ends.any(|(at, _)| {
                let end = marker.get(at..).unwrap_or_default();
                written.iter().any(|written| written.starts_with(end))
            })
        };
        let is_json = |marker: &String| {
            marker.contains('"') || marker.chars().all(|one| JSON_SIGNS.contains(one))
        };
        match self
            .all
            .iter()
            .find(|marker| overlaps(marker) || is_json(marker))
        {
            None => Ok(()),
            Some(marker) => Err(GrammarError::Marker {
                marker: marker.clone(),
            }),
        }
    }
}

/// A keyword of a schema that a grammar does not enforce.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Unheld {
    /// The name of the tool.
    pub tool: String,
    /// The pointer of the argument, or of a list or object that contains it; empty for all arguments.
    pub pointer: String,
    /// The keyword. `additionalProperties` means that an object may have two equal keys.
    pub keyword: &'static str,
}

/// Writes the tool, the pointer and the keyword, as in ``search: `limit`: `multipleOf` is not enforced``.
impl fmt::Display for Unheld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.tool)?;
        if !self.pointer.is_empty() {
            write!(formatter, "`{}`: ", self.pointer)?;
        }
        write!(formatter, "`{}` is not enforced", self.keyword)
    }
}

impl Grammar {
    /// Returns the grammar as GBNF, for llama.cpp. `XGrammar` reads it too, as EBNF.
    pub fn gbnf(&self) -> String {
        gbnf::print(self)
    }

    /// Returns the grammar in the Lark notation of llguidance.
    pub fn lark(&self) -> String {
        lark::print(self)
    }

    /// Returns the grammar as a structural tag of `XGrammar`, for vLLM and `SGLang`. It does not exclude near misses at the
    /// beginning of a line, and has no reasoning: these servers apply a grammar after the reasoning.
    pub fn structural_tag(&self) -> Value {
        structural_tag::print(self)
    }

    /// Returns the keywords of the schemas that no notation of the grammar enforces; [`Engine::unheld`] returns those of one
    /// engine. The ids of calls and dependencies on unknown calls are not checked either.
    pub fn unheld(&self) -> &[Unheld] {
        &self.unheld
    }

    /// Returns the pointer of the first value with which a structural tag, where each value has its own copy of the rules, would be
    /// too large.
    fn first_copied_too_often(&self) -> Option<String> {
        let sizes: Vec<usize> = self.rules.iter().map(Pattern::size).collect();
        let mut left = MOST_COPIED;
        let mut too_often = None;
        for call in &self.calls {
            let Form::Block(lines) = &call.form else {
                continue;
            };
            lines.arguments(&mut |pointer, value| {
                let ArgumentValue::Pattern(pattern) = value else {
                    return;
                };
                let mut reached = BTreeSet::new();
                let mut open = vec![pattern];
                while let (Some(one), None) = (open.pop(), &too_often) {
                    one.references(&mut |reference| {
                        let Pattern::Rule(rule) = reference else {
                            return;
                        };
                        if reached.insert(*rule) {
                            open.extend(self.rules.get(*rule));
                            left -= left.min(sizes.get(*rule).copied().unwrap_or_default());
                        }
                    });
                    if left == 0 {
                        too_often = Some(pointer.to_owned());
                    }
                }
            });
        }
        too_often
    }

    /// Returns `true` if a value may be any text, and the other texts that calls or rules contain.
    fn used_texts(&self) -> (bool, BTreeSet<usize>) {
        let (mut is_free, mut used) = (false, BTreeSet::new());
        let mut patterns: Vec<&Pattern> = self.rules.iter().collect();
        for call in &self.calls {
            match &call.form {
                Form::Block(lines) => lines.arguments(&mut |_, value| match value {
                    ArgumentValue::Text => is_free = true,
                    ArgumentValue::Limited(text) => used.extend([*text]),
                    ArgumentValue::Pattern(pattern) => patterns.push(pattern),
                }),
                Form::Emoji(EmojiForm { line, body }) => {
                    patterns.push(line);
                    match body {
                        EmojiBody::Text { limited: None, .. } => is_free = true,
                        EmojiBody::Text { limited, .. } => used.extend(*limited),
                        EmojiBody::Pattern(pattern) => patterns.push(pattern),
                    }
                }
            }
        }
        for pattern in patterns {
            pattern.references(&mut |one| {
                if let Pattern::Text(text) = one {
                    used.insert(*text);
                }
            });
        }
        (is_free, used)
    }

    /// Returns the texts whose limits a structural tag enforces.
    fn limited_in_tag(&self) -> BTreeSet<usize> {
        self.texts.in_tag(self.used_texts().1)
    }

    /// Returns the limits of strings that other texts than these enforce.
    fn limits_without(&self, is_limited: impl Fn(usize) -> bool) -> impl Iterator<Item = &Unheld> {
        let (_, mut texts) = self.used_texts();
        texts.retain(|index| !is_limited(*index));
        let texts = texts
            .into_iter()
            .filter_map(|index| self.texts.all.get(index));
        texts.flat_map(|text| &text.limits)
    }
}

/// An error in the request for a grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrammarError {
    /// The dialect is invalid, or detects the syntax.
    Dialect(DialectError),
    /// A marker cannot be excluded from other text.
    Marker {
        /// The marker.
        marker: String,
    },
    /// A call is required, but there are no tools.
    NoTools,
    /// The chosen tool does not exist.
    UnknownTool {
        /// The name.
        name: String,
    },
    /// The tool has no call that the grammar can express.
    NoCall {
        /// The name of the tool.
        tool: String,
    },
    /// The grammar is too large for engines.
    TooLarge {
        /// The tool with the largest part.
        tool: String,
        /// The pointer of the value in its arguments with which the grammar is too large; may be empty.
        pointer: String,
        /// The keyword that makes this value large; empty if many values together are.
        keyword: &'static str,
        /// The maximum size in parts.
        most: usize,
    },
}

impl fmt::Display for GrammarError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dialect(error) => error.fmt(formatter),
            Self::Marker { marker } => write!(
                formatter,
                "the marker `{marker}` can be part of JSON or of the text around another marker, so a grammar cannot exclude it; use other markers"
            ),
            Self::NoTools => formatter.write_str("a call is required, but there are no tools"),
            Self::UnknownTool { name } => {
                write!(formatter, "the chosen tool `{name}` does not exist")
            }
            Self::NoCall { tool } => write!(
                formatter,
                "no call of `{tool}` can be part of a grammar: its name or a required parameter contains a marker, or a required value has no text; use other markers, or leave the tool out"
            ),
            Self::TooLarge {
                tool,
                most,
                keyword: "",
                ..
            } => write!(
                formatter,
                "the grammar has more than {most} parts; the largest tool is `{tool}`: give its deep objects the schema {{\"type\": \"object\"}}, or offer fewer tools"
            ),
            Self::TooLarge {
                tool,
                pointer,
                keyword,
                most,
            } => {
                let looser = match *keyword {
                    "properties" | "additionalProperties" => "{\"type\": \"object\"}",
                    "prefixItems" | "items" => "{\"type\": \"array\"}",
                    _ => "{}",
                };
                let at = if pointer.is_empty() {
                    "the arguments"
                } else {
                    pointer
                };
                write!(
                    formatter,
                    "the grammar has more than {most} parts, or takes too many steps: `{keyword}` of `{at}` of the tool `{tool}` is too large; give it the schema {looser}, or offer fewer tools"
                )
            }
        }
    }
}

impl std::error::Error for GrammarError {}

impl From<DialectError> for GrammarError {
    fn from(error: DialectError) -> Self {
        Self::Dialect(error)
    }
}
