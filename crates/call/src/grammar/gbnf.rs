//! GBNF, the notation of llama.cpp, which `XGrammar` reads as EBNF.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::arguments::{ArgumentValue, Lines};
use super::automaton::Automaton;
use super::emoji::{EmojiBody, EmojiForm};
use super::exclusion::{Exclusion, header};
use super::pattern::{Characters, Pattern};
use super::{CallForm, Form, Grammar, MostCalls};

/// The names of the states of an automaton: this and a number. The first state has the number 0.
const PROSE: &str = "t";
const VALUE: &str = "v";
const REASONING: &str = "r";
const JSON: &str = "s";
const RULE: &str = "j";

pub(super) fn print(grammar: &Grammar) -> String {
    let mut rules = root(grammar);
    if grammar.most != MostCalls::None {
        rules.push_str(&calls(grammar));
    }
    if grammar.has_ids && grammar.most != MostCalls::None {
        let header = header(&grammar.markers.all);
        let _ = writeln!(rules, "header ::= {}", pattern(&header));
    }
    let values = grammar.has_free_text().then(|| value_name(grammar));
    if !grammar.needs_call || values == Some(PROSE) {
        rules.push_str(&text(PROSE, &grammar.prose));
    }
    if values == Some(VALUE) {
        rules.push_str(&text(VALUE, &grammar.value));
    }
    if let Some(reasoning) = &grammar.reasoning {
        let close = Exclusion::of_texts([reasoning.close.clone()]);
        rules.push_str(&text(REASONING, &close));
    }
    rules.push_str(&json_rules(grammar));
    rules
}

/// A pattern as a grammar of its own, with the rules that it needs.
pub(super) fn alone(grammar: &Grammar, written: &Pattern) -> String {
    let mut reached = BTreeSet::new();
    let mut open = vec![written];
    let mut has_json_string = false;
    while let Some(one) = open.pop() {
        has_json_string |= one.has_json_string();
        for index in one.rules() {
            if reached.insert(index) {
                open.extend(grammar.rules.get(index));
            }
        }
    }
    let mut rules = format!("root ::= {}\n", pattern(written));
    for index in reached {
        rules.extend(grammar.rules.get(index).map(|rule| json_rule(index, rule)));
    }
    if has_json_string {
        rules.push_str(&json_string(grammar));
    }
    rules
}

/// The rules for JSON.
fn json_rules(grammar: &Grammar) -> String {
    let rules = grammar.rules.iter().enumerate();
    let rules = rules.filter(|(_, rule)| **rule != Pattern::Choice(Vec::new()));
    let mut rules: String = rules.map(|(index, rule)| json_rule(index, rule)).collect();
    if grammar.has_json_string() {
        rules.push_str(&json_string(grammar));
    }
    rules
}

fn json_rule(index: usize, rule: &Pattern) -> String {
    format!("{RULE}-{index} ::= {}\n", pattern(rule))
}

fn json_string(grammar: &Grammar) -> String {
    let plain = Automaton::excluding(&grammar.json);
    states(JSON, &plain.within(&json_characters()))
}

/// The contents of a JSON string.
pub(super) fn json_characters() -> Pattern {
    let hex = "0123456789abcdefABCDEF";
    let code = |first: &str, second: &str, rest: u32| {
        Pattern::sequence([
            Pattern::one_of(first),
            Pattern::one_of(second),
            Pattern::one_of(hex).repeat(rest, Some(rest)),
        ])
    };
    // Not a surrogate: it would need its other half.
    let unit = Pattern::choice([
        code("0123456789abcefABCEF", hex, 2),
        code("dD", "01234567", 2),
    ]);
    let escape = Pattern::sequence([
        Pattern::literal("\\"),
        Pattern::choice([
            Pattern::one_of("\"\\/bfnrt"),
            Pattern::sequence([Pattern::literal("u"), unit]),
        ]),
    ]);
    let plain = Characters::of_ranges([(0, 0x1F)]).not().without("\"\\");
    Pattern::choice([Pattern::Characters(plain), escape]).repeat(0, None)
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
    let body = match (grammar.needs_call, grammar.most) {
        (true, MostCalls::Any) => r#""\n"{0,2} call ("\n"{1,2} call)* "\n"{0,2}"#.to_owned(),
        (true, _) => r#""\n"{0,2} call "\n"{0,2}"#.to_owned(),
        (false, MostCalls::None) => format!("{PROSE}-0"),
        (false, most) => {
            let rest = if most == MostCalls::Any {
                " (call after)?"
            } else {
                ""
            };
            let after = format!(r#"after ::= "" | "\n" {PROSE}-0{rest}"#);
            format!("{PROSE}-0 (call after)?\n{after}")
        }
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
                EmojiBody::Text { is_required: true } => {
                    format!("\"\\n\" {}-0", value_name(grammar))
                }
                EmojiBody::Text { is_required: false } => {
                    format!("(\"\\n\" {}-0)?", value_name(grammar))
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
        Pattern::JsonCharacters => format!("{JSON}-0"),
    }
}

fn text(name: &str, exclusion: &Exclusion) -> String {
    states(name, &Automaton::excluding(exclusion))
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

/// Returns `true` if the text ends with the code of a character.
fn ends_with_code(text: &str) -> bool {
    let before = text.trim_end_matches(|one: char| one.is_ascii_hexdigit());
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
