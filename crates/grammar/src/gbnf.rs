//! GBNF, the notation of llama.cpp, which `XGrammar` reads as EBNF.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::arguments::{ArgumentValue, Lines};
use crate::automaton::Automaton;
use crate::emoji::{EmojiBody, EmojiForm};
use crate::exclusion::{Exclusion, header};
use crate::grammar::{CallForm, Form, Grammar};
use crate::pattern::{Characters, Pattern};

/// The names of the states of an automaton: this and a number. The first state has the number 0.
const PROSE: &str = "t";
const VALUE: &str = "v";
const REASONING: &str = "r";
const TEXT: &str = "s";
const RULE: &str = "j";
/// The length of the longest code of a character: `\U` and eight digits.
const LONGEST_CODE: usize = 10;

pub(crate) fn print(grammar: &Grammar) -> String {
    let mut rules = root(grammar);
    if grammar.most > 0 {
        rules.push_str(&calls(grammar));
    }
    if grammar.has_ids && grammar.most > 0 {
        let header = header(&grammar.markers.all);
        let _ = writeln!(rules, "header ::= {}", pattern(&header));
    }
    let (is_free, texts) = grammar.used_texts();
    let values = is_free.then(|| value_name(grammar));
    if values.is_some() || (!grammar.needs_call && grammar.prose == grammar.value) {
        rules.push_str(&states(value_name(grammar), &grammar.free_text));
    }
    if !grammar.needs_call && grammar.prose != grammar.value {
        rules.push_str(&states(PROSE, &Automaton::excluding(&grammar.prose)));
    }
    if let Some(reasoning) = &grammar.reasoning {
        let close = Exclusion::of_texts([reasoning.close.clone()]);
        rules.push_str(&states(REASONING, &Automaton::excluding(&close)));
    }
    for (index, rule) in grammar.rules.iter().enumerate() {
        if *rule != Pattern::Choice(Vec::new()) {
            rules.push_str(&named_rule(index, rule));
        }
    }
    rules.extend(texts.into_iter().map(|text| text_rules(grammar, text)));
    rules
}

/// A pattern as a grammar of its own, with the rules that it needs. Only these texts keep their limits.
pub(crate) fn alone(grammar: &Grammar, written: &Pattern, limited: &BTreeSet<usize>) -> String {
    let (mut reached, mut texts) = (BTreeSet::new(), BTreeSet::new());
    let mut open = vec![written];
    while let Some(one) = open.pop() {
        one.references(&mut |reference| match reference {
            Pattern::Rule(index) if reached.insert(*index) => {
                open.extend(grammar.rules.get(*index));
            }
            Pattern::Text(index) => texts.extend([*index]),
            _ => {}
        });
    }
    let mut rules = format!("root ::= {}\n", pattern(written));
    for index in reached {
        rules.extend(grammar.rules.get(index).map(|rule| named_rule(index, rule)));
    }
    for index in texts {
        if limited.contains(&index) {
            rules.push_str(&text_rules(grammar, index));
        } else if let Some(automaton) = grammar.texts.without_limits(index) {
            rules.push_str(&states(&text_name(index), &automaton));
        }
    }
    rules
}

fn named_rule(index: usize, rule: &Pattern) -> String {
    format!("{RULE}-{index} ::= {}\n", pattern(rule))
}

fn text_rules(grammar: &Grammar, index: usize) -> String {
    let text = grammar.texts.all.get(index);
    let rules = text.map(|text| states(&text_name(index), &text.automaton));
    rules.unwrap_or_default()
}

fn root(grammar: &Grammar) -> String {
    let head = match &grammar.reasoning {
        Some(reasoning) if reasoning.is_open => {
            format!("{REASONING}-0 {} ", quoted(&reasoning.close))
        }
        Some(reasoning) => format!(
            "([ \\t\\r\\n]* {} {REASONING}-0 {})? ",
            quoted(&reasoning.open),
            quoted(&reasoning.close)
        ),
        None => String::new(),
    };
    let more = match grammar.most {
        0 | 1 => String::new(),
        most => format!(r#" ("\n"{{1,2}} call){{0,{}}}"#, most - 1),
    };
    let calls = format!(r#"call{more} "\n"{{0,2}}"#);
    let body = match (grammar.needs_call, grammar.most) {
        (true, _) => format!(r#""\n"{{0,2}} {calls}"#),
        (false, 0) => format!("{PROSE}-0"),
        (false, _) => format!("{PROSE}-0 ({calls})?"),
    };
    format!("root ::= {head}{body}\n")
}

fn calls(grammar: &Grammar) -> String {
    let names = (0..grammar.calls.len()).map(|index| format!("call-{index}"));
    let names: Vec<String> = names.collect();
    let start = quoted(&grammar.markers.start);
    let mut rules = format!("call ::= {start} ({})\n", names.join(" | "));
    for (name, call) in names.iter().zip(&grammar.calls) {
        let _ = writeln!(rules, "{name} ::= {}", call_form(grammar, call));
    }
    rules
}

fn call_form(grammar: &Grammar, call: &CallForm) -> String {
    let end = quoted(&grammar.markers.end);
    match &call.form {
        Form::Block(arguments) => {
            let arguments = lines(grammar, arguments);
            let name = if grammar.has_ids {
                format!("{} header", quoted(&call.name))
            } else {
                quoted(&format!("{}\n", call.name))
            };
            format!("{name} {arguments} {end}")
        }
        Form::Emoji(EmojiForm { line, body }) => {
            let name = quoted(&call.name);
            let line = pattern(line);
            let body = match body {
                EmojiBody::Pattern(body) => pattern(body),
                EmojiBody::Text {
                    is_required,
                    limited,
                } => {
                    let text = limited.map_or_else(|| format!("{}-0", value_name(grammar)), text);
                    let sign = if *is_required { "" } else { "?" };
                    format!("(\"\\n\" {text}){sign}")
                }
            };
            format!("{name} {line} \"]\" {body} {end}")
        }
    }
}

/// Returns the name of the states of text in values: that of prose, if both exclude the same.
fn value_name(grammar: &Grammar) -> &'static str {
    if grammar.prose == grammar.value {
        PROSE
    } else {
        VALUE
    }
}

fn lines(grammar: &Grammar, written: &Lines) -> String {
    match written {
        Lines::Argument { pointer, value } => {
            let begin = quoted(&format!("{}{pointer}\n", grammar.markers.arg));
            let value = match value {
                ArgumentValue::Text => format!("{}-0", value_name(grammar)),
                ArgumentValue::Limited(index) => text(*index),
                ArgumentValue::Pattern(value) => pattern(value),
            };
            format!("{begin} {value} \"\\n\"")
        }
        Lines::Sequence(parts) => {
            let parts = parts.iter().map(|(is_required, part)| {
                let part = lines(grammar, part);
                if *is_required {
                    part
                } else {
                    format!("({part})?")
                }
            });
            let parts: Vec<String> = parts.collect();
            if parts.is_empty() {
                "\"\"".to_owned()
            } else {
                parts.join(" ")
            }
        }
        Lines::Choice(options) => {
            let options: Vec<String> = options.iter().map(|one| lines(grammar, one)).collect();
            format!("({})", options.join(" | "))
        }
    }
}

fn pattern(written: &Pattern) -> String {
    match written {
        Pattern::Literal(text) => quoted(text),
        Pattern::Characters(characters) => class(characters),
        Pattern::Sequence(parts) if parts.is_empty() => "\"\"".to_owned(),
        Pattern::Sequence(parts) => {
            let parts: Vec<String> = parts.iter().map(pattern).collect();
            parts.join(" ")
        }
        Pattern::Choice(options) => {
            let options: Vec<String> = options.iter().map(pattern).collect();
            format!("({})", options.join(" | "))
        }
        Pattern::Repeat { of, least, most } => {
            let inner = match **of {
                Pattern::Sequence(_) => format!("({})", pattern(of)),
                _ => pattern(of),
            };
            match (least, most) {
                (0, None) => format!("{inner}*"),
                (1, None) => format!("{inner}+"),
                (0, Some(1)) => format!("{inner}?"),
                (least, None) => format!("{inner}{{{least},}}"),
                (least, Some(most)) if least == most => format!("{inner}{{{least}}}"),
                (least, Some(most)) => format!("{inner}{{{least},{most}}}"),
            }
        }
        Pattern::Rule(rule) => format!("{RULE}-{rule}"),
        Pattern::Text(index) => text(*index),
    }
}

fn text(index: usize) -> String {
    format!("{}-0", text_name(index))
}

fn text_name(index: usize) -> String {
    format!("{TEXT}{index}")
}

/// One rule for each state of an automaton.
fn states(name: &str, automaton: &Automaton) -> String {
    let mut rules = String::new();
    for (index, state) in automaton.states.iter().enumerate() {
        let end = state.may_end.then(|| "\"\"".to_owned());
        let next = state.next.iter();
        let next = next.map(|(characters, to)| format!("{} {name}-{to}", class(characters)));
        let options: Vec<String> = end.into_iter().chain(next).collect();
        let _ = writeln!(rules, "{name}-{index} ::= {}", options.join(" | "));
    }
    rules
}

fn class(characters: &Characters) -> String {
    let (shown, is_excluded) = characters.shortest();
    let mut text = String::from(if is_excluded { "[^" } else { "[" });
    if is_excluded && shown.is_empty() {
        // Every character: a class needs at least one.
        return "[\\x00-\\U0010FFFF]".to_owned();
    }
    for (first, last) in shown.ranges() {
        push_code(&mut text, *first);
        if first < last {
            text.push('-');
            push_code(&mut text, *last);
        }
    }
    text.push(']');
    text
}

/// Appends a character of a class. To `XGrammar`, all hexadecimal digits behind `\x` belong to it.
fn push_code(class: &mut String, code: u32) {
    let plain = char::from_u32(code).filter(|plain| {
        let is_digit_of_code = plain.is_ascii_hexdigit() && ends_with_code(class);
        let is_sign = " _!#$%&'*+,./:;<=>?@{|}~`()".contains(*plain);
        (plain.is_ascii_alphanumeric() && !is_digit_of_code) || is_sign
    });
    let _ = match plain {
        Some(plain) => write!(class, "{plain}"),
        _ if code < 0x80 => write!(class, "\\x{code:02X}"),
        _ if code <= 0xFFFF => write!(class, "\\u{code:04X}"),
        _ => write!(class, "\\U{code:08X}"),
    };
}

/// Returns `true` if the text ends with the code of a character. All hexadecimal digits behind a code are codes too, so it is
/// short.
fn ends_with_code(text: &str) -> bool {
    let begin = text.len().saturating_sub(LONGEST_CODE);
    let end = (begin..=text.len()).find_map(|begin| text.get(begin..));
    let before = end.unwrap_or_default();
    let before = before.trim_end_matches(|one: char| one.is_ascii_hexdigit());
    let is_code = |begin: &&str| before.ends_with(*begin);
    ["\\x", "\\u", "\\U"].iter().any(is_code)
}

/// A literal.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_ascii_control() => {
                let _ = write!(quoted, "\\x{:02X}", u32::from(control));
            }
            digit if digit.is_ascii_hexdigit() && ends_with_code(&quoted) => {
                let _ = write!(quoted, "\\x{:02X}", u32::from(digit));
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}
