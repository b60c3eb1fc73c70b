//! The text of a file as a tree whose parts know where they stand: of JSON as of TOML.

use std::collections::HashSet;
use std::ops::Range;

use plaincall::Problem;
use toml::de::{DeTable, DeValue};

/// How many characters of a text a message shows.
const SHOWN: usize = 40;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) value: Value,
}

/// A value.
#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    Number(String),
    Boolean(bool),
    /// What only one of the forms has: null, or a time.
    Other(&'static str),
    List(Vec<Node>),
    Table(Vec<(Key, Node)>),
}

/// A key of a table.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) span: Range<usize>,
}

impl Node {
    /// What it is, in words.
    pub(super) fn kind(&self) -> String {
        match &self.value {
            Value::Text(text) => match text.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("the text `{}…`", text.get(..end).unwrap_or_default()),
                None => format!("the text `{text}`"),
            },
            Value::Number(number) => format!("the number {number}"),
            Value::Boolean(value) => value.to_string(),
            Value::Other(what) => (*what).to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    pub(super) fn table(&self) -> Option<&[(Key, Self)]> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }
}

/// The problems at these places of a text.
pub(super) fn problems(text: &str, mut found: Vec<(Range<usize>, String)>) -> Vec<Problem> {
    found.sort_by_key(|(span, _)| span.start);
    let (mut place, mut line, mut column) = (0, 1, 1);
    let problems = found.into_iter().map(|(span, message)| {
        let passed = text.get(place..span.start).unwrap_or_default();
        line += passed.matches('\n').count();
        column = match passed.rsplit_once('\n') {
            Some((_, last)) => 1 + last.chars().count(),
            None => column + passed.chars().count(),
        };
        place += passed.len();
        Problem {
            line,
            column,
            span,
            pointer: String::new(),
            message,
        }
    });
    problems.collect()
}

/// Reads a file: JSON if it begins with a table or a comment of that form, with comments and commas at the end of lists as some editors write
/// them; else TOML.
///
/// # Errors
/// What keeps the text from being either.
pub(super) fn read(text: &str) -> Result<Node, Vec<Problem>> {
    let begins_as_json = text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with(['{', '/']);
    if begins_as_json {
        of_json(text).map_err(|mistake| problems(text, vec![mistake]))
    } else {
        of_toml(text)
    }
}

fn of_toml(text: &str) -> Result<Node, Vec<Problem>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Node {
            span: 0..text.len(),
            value: table(document.get_ref()),
        });
    }
    let mistake = |error: &toml::de::Error| {
        let span = error.span().unwrap_or_default();
        if error.message() == "duplicate key" {
            let key = text.get(span.clone()).unwrap_or_default();
            let message = format!("`{key}` stands here for the second time");
            return (span, message);
        }
        (span, error.message().to_owned())
    };
    Err(problems(text, errors.iter().map(mistake).collect()))
}

fn table(table: &DeTable<'_>) -> Value {
    let entries = table.iter().map(|(key, value)| {
        let key = Key {
            name: key.get_ref().clone().into_owned(),
            span: key.span(),
        };
        (key, node(value))
    });
    Value::Table(entries.collect())
}

fn node(value: &toml::Spanned<DeValue<'_>>) -> Node {
    Node {
        span: value.span(),
        value: match value.get_ref() {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Integer(number) => Value::Number(number.to_string()),
            DeValue::Float(number) => Value::Number(number.to_string()),
            DeValue::Boolean(value) => Value::Boolean(*value),
            DeValue::Datetime(_) => Value::Other("a time"),
            DeValue::Array(items) => Value::List(items.iter().map(node).collect()),
            DeValue::Table(entries) => table(entries),
        },
    }
}

fn of_json(text: &str) -> Result<Node, (Range<usize>, String)> {
    let plain = without_comments(text);
    // It also bounds how deep lists and tables lie in each other.
    if let Err(error) = serde_json::from_str::<serde_json::Value>(&plain) {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let cause = error.to_string();
        let cause = cause.strip_suffix(&place).unwrap_or(&cause);
        let at = offset(text, error.line(), error.column());
        let message = match cause.strip_prefix("EOF while parsing ") {
            Some(part) => format!("the file ends inside {part}"),
            None => format!("this is no JSON: {cause}"),
        };
        return Err((at..at, message));
    }
    let mut scanner = Scanner {
        text: &plain,
        at: 0,
        twice: None,
    };
    let node = scanner.node();
    match scanner.twice {
        None => Ok(node),
        Some(key) => {
            let message = format!("`{}` stands here for the second time", key.name);
            Err((key.span, message))
        }
    }
}

/// The byte at a line and a column, both from 1, the column in bytes.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    text.floor_char_boundary((before + column.saturating_sub(1)).min(text.len()))
}

/// The text with blanks for a mark at its beginning, for comments, and for a comma behind the last item of a list or
/// table. Everything else stays in its place.
fn without_comments(text: &str) -> String {
    let mut plain = text.as_bytes().to_vec();
    let mut blank = |range: Range<usize>| {
        for byte in plain.get_mut(range).unwrap_or_default() {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    let rest = |at: usize| text.get(at..).unwrap_or_default();
    let mut at = 0;
    if text.starts_with('\u{feff}') {
        at = '\u{feff}'.len_utf8();
        blank(0..at);
    }
    let mut comma = None;
    while let Some(first) = rest(at).chars().next() {
        let end = match first {
            '"' => at + string_length(rest(at)),
            '/' if rest(at).starts_with("//") => {
                let end = at + rest(at).find('\n').unwrap_or(rest(at).len());
                blank(at..end);
                at = end;
                continue;
            }
            '/' if rest(at).starts_with("/*") => {
                let length = rest(at + 2)
                    .find("*/")
                    .map_or(rest(at).len(), |end| end + 4);
                blank(at..at + length);
                at += length;
                continue;
            }
            _ => at + first.len_utf8(),
        };
        match (first, comma) {
            ('}' | ']', Some(last)) => blank(last..last + 1),
            (',', _) => comma = Some(at),
            _ => {}
        }
        if first != ',' && !first.is_ascii_whitespace() {
            comma = None;
        }
        at = end;
    }
    // Only whole characters were taken out.
    String::from_utf8(plain).unwrap_or_default()
}

/// How many bytes a text in quotes has that begins here, quotes and all.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Walks through a text that is known to be JSON.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// The first key that stands in its table already.
    twice: Option<Key>,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character that is not blank.
    fn peek(&mut self) -> Option<char> {
        self.at += self.rest().len() - self.rest().trim_ascii_start().len();
        self.rest().chars().next()
    }

    /// Goes over a sign if it is the next one.
    fn passes(&mut self, sign: char) -> bool {
        let is_next = self.peek() == Some(sign);
        self.at += usize::from(is_next);
        is_next
    }

    fn node(&mut self) -> Node {
        let first = self.peek();
        let start = self.at;
        let value = match first {
            Some('{') => self.table(),
            Some('[') => self.list(),
            Some('"') => Value::Text(self.string()),
            _ => {
                let length = self
                    .rest()
                    .find(|c: char| ",]}".contains(c) || c.is_ascii_whitespace())
                    .unwrap_or(self.rest().len());
                let word = self.rest().get(..length).unwrap_or_default().to_owned();
                self.at += length;
                match word.as_str() {
                    "true" => Value::Boolean(true),
                    "false" => Value::Boolean(false),
                    "null" => Value::Other("null"),
                    _ => Value::Number(word),
                }
            }
        };
        Node {
            span: start..self.at,
            value,
        }
    }

    fn string(&mut self) -> String {
        let length = string_length(self.rest());
        let text = self.rest().get(..length).unwrap_or_default();
        let read = serde_json::from_str(text).unwrap_or_default();
        self.at += length;
        read
    }

    fn list(&mut self) -> Value {
        self.passes('[');
        let mut items = Vec::new();
        while !self.passes(']') && self.peek().is_some() {
            items.push(self.node());
            self.passes(',');
        }
        Value::List(items)
    }

    fn table(&mut self) -> Value {
        self.passes('{');
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut names = HashSet::new();
        while !self.passes('}') && self.peek().is_some() {
            let start = self.at;
            let name = self.string();
            let span = start..self.at;
            self.passes(':');
            if !names.insert(name.clone()) && self.twice.is_none() {
                self.twice = Some(Key {
                    name: name.clone(),
                    span: span.clone(),
                });
            }
            let node = self.node();
            entries.push((Key { name, span }, node));
            self.passes(',');
        }
        Value::Table(entries)
    }
}
