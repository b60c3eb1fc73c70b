//! The examples of the specification: fenced blocks in `spec/*.md`, in the format of `spec/README.md`.

use std::path::{Path, PathBuf};

use plaincall_syntax::Dialect;

use crate::merged::{Kind, Merged};

/// The operation of an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads it.
    Read,
    /// Renders the call that it describes as JSON.
    Render,
    /// Escapes it.
    Escape,
    /// Looks for near misses.
    Near,
}

/// One example.
#[derive(Clone, Debug)]
pub struct Example {
    /// The file and line of its input fence.
    pub place: String,
    /// The number of the section that holds it.
    pub section: String,
    /// The operation.
    pub operation: Operation,
    /// With which dialect.
    pub dialect: Dialect,
    /// The words that choose the dialect.
    pub words: Vec<String>,
    /// `must`, `must-not` or `free`.
    pub class: String,
    /// The input.
    pub input: String,
    /// The fences behind it: their first word and their content.
    pub expectations: Vec<(String, String)>,
}

impl Example {
    /// The content of the expectation of this name.
    pub fn expectation(&self, name: &str) -> Option<&str> {
        self.expectations
            .iter()
            .find(|(word, _)| word == name)
            .map(|(_, content)| content.as_str())
    }
}

/// The folder of the specification.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec")
}

/// All examples of the given files of `spec/`.
///
/// # Panics
/// When a file cannot be read or a fence does not have the format of `spec/README.md`.
pub fn all(files: &[&str]) -> Vec<Example> {
    files.iter().flat_map(|file| of_file(file)).collect()
}

/// A fenced block of a Markdown text.
#[derive(Clone, Debug)]
pub struct Fence {
    /// The line it begins at, from 1.
    pub line: usize,
    /// The last line of the fence.
    pub end: usize,
    /// The words behind its backticks.
    pub info: Vec<String>,
    /// The lines in it, joined.
    pub content: String,
}

fn of_file(file: &str) -> Vec<Example> {
    let text = std::fs::read_to_string(folder().join(file))
        .unwrap_or_else(|error| panic!("spec/{file}: {error}"));
    let mut examples: Vec<Example> = Vec::new();
    let mut last_end = 0;
    let fences = fences(&text);
    let sections = sections(&text, &fences);
    for fence in fences {
        let place = format!("spec/{file}:{}", fence.line);
        let is_next = fence.line <= last_end + 2 && last_end > 0;
        let Some(first) = fence.info.first() else {
            continue;
        };
        match first.as_str() {
            "block" | "emoji" | "auto" | "render" | "escape" | "near" if fence.info.len() > 1 => {
                let before = sections.iter().take_while(|(line, _)| *line < fence.line);
                let section = before.last().map_or("0", |(_, number)| number);
                examples.push(example(place, section, &fence));
                last_end = fence.end;
            }
            "events" | "json" | "text" | "refused" | "near" | "schema" if is_next => {
                let example = examples.last_mut().expect("an input before an expectation");
                example.expectations.push((first.clone(), fence.content));
                last_end = fence.end;
            }
            "ebnf" | "json" | "text" => last_end = 0,
            other => panic!("{place}: a fence that begins with {other:?} has no meaning here"),
        }
    }
    for example in &examples {
        assert!(
            !example.expectations.is_empty(),
            "{}: no expectation",
            example.place
        );
    }
    examples
}

/// The numbers of the sections, with the line of each heading.
fn sections<'t>(text: &'t str, fences: &[Fence]) -> Vec<(usize, &'t str)> {
    let numbered = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    numbered
        .filter(|(line, _)| !fences.iter().any(|it| (it.line..=it.end).contains(line)))
        .filter_map(|(line, text)| {
            let title = text.strip_prefix('#')?.trim_start_matches('#').trim_start();
            let number = title.split(' ').next()?.trim_end_matches('.');
            number
                .starts_with(|c: char| c.is_ascii_digit())
                .then_some((line, number))
        })
        .collect()
}

fn example(place: String, section: &str, fence: &Fence) -> Example {
    let mut words = fence.info.clone();
    let is_class = |word: &String| ["must", "must-not", "free"].contains(&word.as_str());
    let class = words.iter().find(|word| is_class(word)).cloned();
    let class = class.unwrap_or_else(|| panic!("{place}: the class is missing"));
    words.retain(|word| !is_class(word));
    let operation = match words.first().map(String::as_str) {
        Some("render") => Operation::Render,
        Some("escape") => Operation::Escape,
        Some("near") => Operation::Near,
        _ => Operation::Read,
    };
    if operation != Operation::Read {
        words.remove(0);
    }
    let has_escapes = words.iter().any(|word| word == "escapes");
    words.retain(|word| word != "escapes");
    let input = if has_escapes {
        unescape(&fence.content)
    } else {
        fence.content.clone()
    };
    Example {
        dialect: dialect(&words).unwrap_or_else(|word| panic!("{place}: what is {word:?}?")),
        place,
        section: section.to_owned(),
        words,
        operation,
        class,
        input,
        expectations: Vec::new(),
    }
}

/// The dialect that these words of `spec/README.md` name.
///
/// # Errors
/// Returns the first word that has no meaning.
pub fn dialect(words: &[String]) -> Result<Dialect, String> {
    let mut dialect = Dialect::auto();
    for word in words {
        dialect = match word.split_once('=') {
            Some(("start", marker)) => dialect.start(marker),
            Some(("end", marker)) => dialect.end(marker),
            Some(("arg", marker)) => dialect.arg(marker),
            Some(("key", key)) => dialect.keyed(key),
            Some((word @ ("reasoning" | "leading-reasoning"), markers)) => {
                match markers.split_once(',') {
                    Some((open, close)) if word == "reasoning" => dialect.reasoning(open, close),
                    Some((open, close)) => dialect.leading_reasoning(open, close),
                    None => return Err(word.to_owned()),
                }
            }
            _ => match word.as_str() {
                "block" => Dialect::block(),
                "emoji" => Dialect::emoji(),
                "auto" => Dialect::auto(),
                "escaped" => dialect.escaped(),
                "anywhere" => dialect.markers_anywhere(),
                "strict" => dialect.strict(),
                "self-closing" => dialect.self_closing(),
                "in-reasoning" => dialect.in_reasoning(),
                _ => return Err(word.clone()),
            },
        };
    }
    Ok(dialect)
}

/// The fenced blocks of a text. A fence ends with as many backticks as it begins with.
///
/// # Panics
/// When a fence is never closed.
pub fn fences(text: &str) -> Vec<Fence> {
    let mut fences = Vec::new();
    let mut open: Option<(String, Fence)> = None;
    let mut content: Vec<&str> = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        match &mut open {
            None if line.starts_with("```") => {
                let ticks = line.chars().take_while(|c| *c == '`').count();
                let info = line[ticks..]
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect();
                let fence = Fence {
                    line: index + 1,
                    end: 0,
                    info,
                    content: String::new(),
                };
                open = Some((line[..ticks].to_owned(), fence));
            }
            None => {}
            Some((ticks, _)) if line == ticks => {
                if let Some((_, mut fence)) = open.take() {
                    fence.end = index + 1;
                    fence.content = content.join("\n");
                    fences.push(fence);
                }
                content.clear();
            }
            Some(_) => content.push(line),
        }
    }
    assert!(open.is_none(), "a fence is never closed");
    fences
}

/// Reads `\n`, `\r`, `\t`, `\\` and `\u{…}`.
pub(crate) fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('\\') => out.push('\\'),
            Some('u') => {
                let digits: String = chars
                    .by_ref()
                    .skip_while(|c| *c == '{')
                    .take_while(|c| *c != '}')
                    .collect();
                let code = u32::from_str_radix(&digits, 16).expect("hexadecimal digits");
                out.push(char::from_u32(code).expect("a character"));
            }
            other => panic!("\\{other:?} is not an escape"),
        }
    }
    out
}

/// The merged events in the form of an `events` fence.
pub fn events_text(merged: &[Merged], source: &str) -> String {
    let line = |event: &Merged| match &event.kind {
        Kind::Text(text) => Some(format!("text {}", json(text))),
        Kind::Reasoning(text) => Some(format!("reasoning {}", json(text))),
        Kind::Value(text) => Some(format!("value {}", json(text))),
        Kind::Ignored(text) => Some(format!("ignored {}", json(text))),
        Kind::BlockCall {
            name,
            id,
            dependencies,
        } => {
            let id = id.iter().map(|id| format!(" id={}", json(id)));
            let list: Vec<_> = dependencies.iter().map(|id| json(id)).collect();
            let list = match list.as_slice() {
                [] => String::new(),
                list => format!(" dependencies=[{}]", list.join(", ")),
            };
            Some(format!(
                "call {}{}{list}",
                json(name),
                id.collect::<String>()
            ))
        }
        Kind::EmojiCall { name, raw_args } => {
            Some(format!("call {} raw_args={}", json(name), json(raw_args)))
        }
        Kind::Argument(pointer) => Some(format!("argument {}", json(pointer))),
        Kind::Body => Some("body".to_owned()),
        Kind::ValueEnd => None,
        Kind::CallEnd(how) => Some(format!("end {how}")),
        Kind::Diagnostic(code) => Some(format!(
            "diagnostic {code} {}",
            json(&source[event.span.clone()])
        )),
    };
    merged
        .iter()
        .filter_map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// An `events` fence with its strings spelled as [`events_text`] spells them.
///
/// # Panics
/// When a string is not JSON.
pub fn normalized(events: &str) -> String {
    let mut out = String::new();
    let mut rest = events;
    while let Some(at) = rest.find('"') {
        out.push_str(&rest[..at]);
        let mut strings = serde_json::Deserializer::from_str(&rest[at..]).into_iter::<String>();
        let text = strings.next().and_then(Result::ok);
        let text = text.unwrap_or_else(|| panic!("no JSON string at {:?}", &rest[at..]));
        out.push_str(&json(&text));
        rest = &rest[at + strings.byte_offset()..];
    }
    out + rest
}

fn json(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}
