//! The Lark notation of llguidance.
//!
//! Its lexer takes the longest match, so free text and the marker behind it are one terminal, which ends as soon as it can.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::arguments::{ArgumentValue, Lines};
use crate::emoji::{EmojiBody, EmojiForm};
use crate::exclusion::{Exclusion, header};
use crate::grammar::{CallForm, Form, Grammar};
use crate::pattern::{Characters, Pattern};
use crate::text::{Location, Text};

/// Any text.
const ANY: &str = "/(?s:.*)/";
/// The lines before the beginning of a line.
const LINES: &str = "((?s:.*)\\n)?";

pub(crate) fn print(grammar: &Grammar) -> String {
    let mut printer = Printer {
        grammar,
        rules: String::new(),
        known: HashMap::new(),
    };
    let calls: Vec<String> = grammar
        .calls
        .iter()
        .map(|call| printer.call(call))
        .collect();
    let mut text = start(grammar);
    if grammar.most > 0 {
        let start = quoted(&grammar.markers.start);
        let _ = writeln!(text, "call: {}", calls.join(" | "));
        let written = escaped(&grammar.markers.start);
        if grammar.needs_call {
            let _ = writeln!(text, "first: /\\n{{0,2}}{written}/");
        } else {
            let _ = writeln!(text, "first[lazy]: FIRST\nFIRST: PROSE {start}");
        }
        if grammar.most > 1 {
            let _ = writeln!(text, "next: /\\n{{1,2}}{written}/");
        }
        text.push_str("end: /\\n{1,2}/\n");
        text.push_str(&value_ends(grammar, "v", "VALUE"));
        // In the block syntax, the line end before the next marker is part of the terminal.
        let value = if grammar.markers.arg.is_empty() {
            free_text(ANY, &grammar.value)
        } else {
            without("/(?s:.*)\\n/", &grammar.value)
        };
        let _ = writeln!(text, "VALUE: {value}");
    }
    if !grammar.needs_call {
        let prose = free_text(ANY, &grammar.prose);
        let _ = writeln!(text, "tail: PROSE\nPROSE: {prose}");
    }
    text.push_str(&printer.rules);
    for (index, rule) in grammar.rules.iter().enumerate() {
        if *rule != Pattern::Choice(Vec::new()) {
            let _ = writeln!(text, "j{index}: {}", pattern(rule));
        }
    }
    for index in grammar.used_texts().1 {
        let one = grammar.texts.all.get(index);
        let one = one.filter(|_| grammar.texts.is_in_lark(index));
        text.extend(one.map(|one| limited(grammar, index, one)));
    }
    text
}

/// The terminals of a value and the marker behind it.
fn value_ends(grammar: &Grammar, name: &str, value: &str) -> String {
    let [arg, end] = [&grammar.markers.arg, &grammar.markers.end].map(|marker| quoted(marker));
    let upper = name.to_uppercase();
    let mut text = format!("{name}_end[lazy]: {upper}_END\n{upper}_END: {value} {end}\n");
    if !grammar.markers.arg.is_empty() {
        let _ = writeln!(
            text,
            "{name}_arg[lazy]: {upper}_ARG\n{upper}_ARG: {value} {arg}"
        );
    }
    text
}

/// The terminals of a text.
fn limited(grammar: &Grammar, index: usize, text: &Text) -> String {
    let is_value = text.location == Location::Value;
    let is_block = !grammar.markers.arg.is_empty();
    let end = if is_value && is_block { "\\n" } else { "" };
    let all = text
        .all
        .iter()
        .map(|pattern| format!("/{}{end}/", regex(pattern)));
    let texts = all.collect::<Vec<String>>().join(" & ");
    let excluded = match text.location {
        // Only its first line could begin with a near miss.
        Location::Value if text.automaton.is_one_line() => {
            terminal(&texts, &text.exclusion, "", ends(&text.exclusion))
        }
        Location::Value if !is_block => free_text(&texts, &text.exclusion),
        Location::Value | Location::Json => without(&texts, &text.exclusion),
        Location::Line(_) => texts,
    };
    let mut terminals = format!("TEXT{index}: {excluded}\n");
    if is_value {
        terminals.push_str(&value_ends(
            grammar,
            &format!("text{index}"),
            &format!("TEXT{index}"),
        ));
    }
    terminals
}

fn start(grammar: &Grammar) -> String {
    let (head, more) = match &grammar.reasoning {
        Some(reasoning) => {
            let [open, close] = [&reasoning.open, &reasoning.close].map(|one| escaped(one));
            let open = if reasoning.is_open {
                String::new()
            } else {
                format!("[ \\t\\r\\n]*{open}")
            };
            let think = format!("think[lazy]: /{open}[^\\x{{0}}]*{close}/\n");
            (
                if reasoning.is_open {
                    "think "
                } else {
                    "think? "
                },
                think,
            )
        }
        None => ("", String::new()),
    };
    let others = match grammar.most {
        0 | 1 => String::new(),
        most => format!(" (next call){{0,{}}}", most - 1),
    };
    let rest = match (grammar.needs_call, grammar.most) {
        (true, _) => format!("first call{others} end?"),
        (false, 0) => "tail".to_owned(),
        (false, _) => format!("(tail | first call{others} end?)"),
    };
    format!("start: {head}{rest}\n{more}")
}

/// The continuations of an argument: rules that begin behind the next argument marker, and whether the call may end.
#[derive(Clone, Debug, Default)]
struct Next {
    arguments: Vec<String>,
    may_end: bool,
}

struct Printer<'g> {
    grammar: &'g Grammar,
    rules: String,
    /// The names of the rules by their content.
    known: HashMap<String, String>,
}

impl Printer<'_> {
    fn call(&mut self, call: &CallForm) -> String {
        let name = quoted(&call.name);
        let markers = &self.grammar.markers;
        let (arg, end) = (quoted(&markers.arg), quoted(&markers.end));
        match &call.form {
            Form::Block(lines) => {
                let end_of_call = Next {
                    arguments: Vec::new(),
                    may_end: true,
                };
                let next = self.lines(lines, end_of_call);
                let mut options = Vec::new();
                if !next.arguments.is_empty() {
                    options.push(format!("{arg} ({})", next.arguments.join(" | ")));
                }
                if next.may_end {
                    options.push(end);
                }
                let header = if self.grammar.has_ids {
                    pattern(&header(&markers.all))
                } else {
                    r"/\n/".to_owned()
                };
                format!("{name} {header} ({})", options.join(" | "))
            }
            Form::Emoji(EmojiForm { line, body }) => {
                let line = pattern(&Pattern::sequence([line.clone(), Pattern::literal("]")]));
                let body = match body {
                    EmojiBody::Pattern(body) => format!("{} {end}", pattern(body)),
                    EmojiBody::Text {
                        is_required,
                        limited,
                    } => {
                        let text = format!(r"/\n/ {}_end", value_name(self.grammar, *limited));
                        if *is_required {
                            text
                        } else {
                            format!("({end} | {text})")
                        }
                    }
                };
                format!("{name} {line} {body}")
            }
        }
    }

    /// Returns what the lines begin with, if `next` follows them.
    fn lines(&mut self, lines: &Lines, next: Next) -> Next {
        match lines {
            Lines::Argument { pointer, value } => {
                let value = self.value(value, &next);
                let value = self.rule(value);
                Next {
                    arguments: vec![format!("{} {value}", quoted(&format!("{pointer}\n")))],
                    may_end: false,
                }
            }
            Lines::Sequence(parts) => {
                let mut next = next;
                for (is_required, part) in parts.iter().rev() {
                    let here = self.lines(part, next.clone());
                    next = if *is_required {
                        here
                    } else {
                        self.either(here, next)
                    };
                }
                next
            }
            Lines::Choice(options) => {
                let mut all = Next::default();
                for option in options {
                    let here = self.lines(option, next.clone());
                    all = self.either(all, here);
                }
                all
            }
        }
    }

    fn either(&mut self, one: Next, other: Next) -> Next {
        let mut arguments = one.arguments;
        for argument in other.arguments {
            if !arguments.contains(&argument) {
                arguments.push(argument);
            }
        }
        if arguments.len() > 1 {
            arguments = vec![self.rule(arguments.join(" | "))];
        }
        Next {
            arguments,
            may_end: one.may_end || other.may_end,
        }
    }

    fn value(&self, value: &ArgumentValue, next: &Next) -> String {
        let markers = &self.grammar.markers;
        let arguments = next.arguments.join(" | ");
        let text = match value {
            ArgumentValue::Text => Some(value_name(self.grammar, None)),
            ArgumentValue::Limited(text) => Some(value_name(self.grammar, Some(*text))),
            ArgumentValue::Pattern(_) => None,
        };
        let (arg, end) = match &text {
            Some(name) => (format!("{name}_arg"), format!("{name}_end")),
            None => (
                quoted(&format!("\n{}", markers.arg)),
                quoted(&format!("\n{}", markers.end)),
            ),
        };
        let mut options = Vec::new();
        if !arguments.is_empty() {
            options.push(format!("{arg} ({arguments})"));
        }
        if next.may_end {
            options.push(end);
        }
        let options = options.join(" | ");
        match value {
            ArgumentValue::Text | ArgumentValue::Limited(_) => options,
            ArgumentValue::Pattern(value) => format!("{} ({options})", pattern(value)),
        }
    }

    fn rule(&mut self, content: String) -> String {
        if let Some(name) = self.known.get(&content) {
            return name.clone();
        }
        let name = format!("k{}", self.known.len());
        let _ = writeln!(self.rules, "{name}: {content}");
        self.known.insert(content, name.clone());
        name
    }
}

/// The first part of the names of a value's terminals.
fn value_name(grammar: &Grammar, limited: Option<usize>) -> String {
    let limited = limited.filter(|index| grammar.texts.is_in_lark(*index));
    limited.map_or_else(|| "v".to_owned(), |index| format!("text{index}"))
}

/// A terminal of free text. What is excluded is so too if only a line end is missing.
fn free_text(texts: &str, exclusion: &Exclusion) -> String {
    terminal(texts, exclusion, LINES, ends(exclusion))
}

fn ends(exclusion: &Exclusion) -> impl Iterator<Item = String> {
    let begins = exclusion.line_begins.iter();
    let ends = begins.filter_map(Pattern::before_line_end);
    ends.map(|end| regex(&end))
}

/// A terminal of the texts of a regular expression that contain nothing of what is excluded.
fn without(texts: &str, exclusion: &Exclusion) -> String {
    terminal(texts, exclusion, LINES, [])
}

fn terminal(
    texts: &str,
    exclusion: &Exclusion,
    lines: &str,
    last_lines: impl IntoIterator<Item = String>,
) -> String {
    let anywhere: Vec<String> = exclusion
        .anywhere
        .iter()
        .map(|text| escaped(text))
        .collect();
    let mut terminal = format!("{texts} & ~/(?s:.*)({})(?s:.*)/", anywhere.join("|"));
    if !exclusion.line_begins.is_empty() {
        let begins: Vec<String> = exclusion.line_begins.iter().map(regex).collect();
        let begins = format!("({})(?s:.*)", begins.join("|"));
        let last: Vec<String> = [begins].into_iter().chain(last_lines).collect();
        let _ = write!(terminal, " & ~/{lines}({})/", last.join("|"));
    }
    terminal
}

fn pattern(written: &Pattern) -> String {
    match written {
        Pattern::Literal(text) => quoted(text),
        Pattern::Text(index) => format!("TEXT{index}"),
        Pattern::Rule(rule) => format!("j{rule}"),
        Pattern::Sequence(parts) if parts.is_empty() => "\"\"".to_owned(),
        // No terminal may be empty.
        regular if regular.is_regular() && !regular.may_be_empty() => {
            format!("/{}/", regex(regular))
        }
        Pattern::Sequence(parts) => {
            // Neighbouring parts are one terminal, as far as possible.
            let runs = parts.chunk_by(|one, other| one.is_regular() && other.is_regular());
            let runs = runs.map(|run| match run {
                [only] => pattern(only),
                run if run.iter().all(Pattern::may_be_empty) => {
                    let parts: Vec<String> = run.iter().map(pattern).collect();
                    parts.join(" ")
                }
                run => pattern(&Pattern::Sequence(run.to_vec())),
            });
            let parts: Vec<String> = runs.collect();
            parts.join(" ")
        }
        Pattern::Choice(options) => {
            let options: Vec<String> = options.iter().map(pattern).collect();
            format!("({})", options.join(" | "))
        }
        Pattern::Repeat { of, least, most } => format!("({}){}", pattern(of), count(*least, *most)),
        Pattern::Characters(_) => String::new(),
    }
}

/// A regular expression in Rust's notation.
fn regex(written: &Pattern) -> String {
    match written {
        Pattern::Literal(text) => escaped(text),
        Pattern::Characters(characters) => class(characters),
        Pattern::Sequence(parts) => parts.iter().map(regex).collect(),
        Pattern::Choice(options) => {
            let options: Vec<String> = options.iter().map(regex).collect();
            format!("({})", options.join("|"))
        }
        Pattern::Repeat { of, least, most } => format!("({}){}", regex(of), count(*least, *most)),
        Pattern::Rule(_) | Pattern::Text(_) => String::new(),
    }
}

fn count(least: u32, most: Option<u32>) -> String {
    match (least, most) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (least, None) => format!("{{{least},}}"),
        (least, Some(most)) => format!("{{{least},{most}}}"),
    }
}

fn class(characters: &Characters) -> String {
    let (shown, is_excluded) = characters.shortest();
    if is_excluded && shown.is_empty() {
        return "(?s:.)".to_owned();
    }
    let mut text = String::from(if is_excluded { "[^" } else { "[" });
    for (first, last) in shown.ranges() {
        text.push_str(&code(*first));
        if first < last {
            text.push('-');
            text.push_str(&code(*last));
        }
    }
    text.push(']');
    text
}

fn code(code: u32) -> String {
    match char::from_u32(code) {
        Some(plain) if plain.is_ascii_alphanumeric() => plain.to_string(),
        _ => format!("\\x{{{code:X}}}"),
    }
}

/// A text in a regular expression.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            control if control.is_control() => {
                let _ = write!(escaped, "\\x{{{:X}}}", u32::from(control));
            }
            sign if r"\.+*?()|[]{}^$#&-~/".contains(sign) => escaped.extend(['\\', sign]),
            plain => escaped.push(plain),
        }
    }
    escaped
}

/// A literal.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
