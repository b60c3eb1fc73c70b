//! Values as Python and Gemma write them.

use serde_json::{Map, Value};

use plaincall_tool::json_text;

/// The maximum nesting of lists and objects.
const DEPTH: usize = 64;
/// Texts around a string without escapes.
const DELIMITERS: [&str; 2] = ["<|\"|>", "<escape>"];

/// A text that is read from its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Literals<'t>(pub(super) &'t str);

impl<'t> Literals<'t> {
    /// Reads this text, if it follows after white space.
    pub(super) fn skip(&mut self, text: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Reads a name: of a tool, or of a parameter.
    pub(super) fn name(&mut self) -> Option<&'t str> {
        let text = self.0.trim_start();
        let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"'`<>{}[](),=".contains(c);
        let (name, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
        self.0 = rest;
        Some(name).filter(|name| !name.is_empty())
    }

    /// Reads members up to this sign: keys, with `separator` before their values.
    pub(super) fn members(
        &mut self,
        separator: &str,
        end: &str,
        depth: usize,
    ) -> Option<Map<String, Value>> {
        let mut members = Map::new();
        while !self.skip(end) {
            let key = if self.begins_string() {
                self.string()?
            } else {
                self.key(separator)?
            };
            let value = self.skip(separator).then(|| self.value(depth))??;
            if members.insert(key, value).is_some()
                || !(self.skip(",") || self.0.trim_start().starts_with(end))
            {
                return None;
            }
        }
        Some(members)
    }

    /// Reads a key without quotes.
    fn key(&mut self, separator: &str) -> Option<String> {
        let (key, _) = self.0.split_once(separator)?;
        self.0 = self.0.get(key.len()..)?;
        let key = key.trim();
        let is_name = !key.is_empty()
            && !key.contains(|c: char| c.is_whitespace() || "\"'`<>{}[](),".contains(c));
        is_name.then(|| key.to_owned())
    }

    pub(super) fn value(&mut self, depth: usize) -> Option<Value> {
        if self.begins_string() {
            return self.string().map(Value::String);
        }
        let depth = depth.checked_add(1).filter(|depth| *depth <= DEPTH)?;
        if self.skip("{") {
            return Some(Value::Object(self.members(":", "}", depth)?));
        }
        if self.skip("[") {
            let mut items = Vec::new();
            while !self.skip("]") {
                items.push(self.value(depth)?);
                if !(self.skip(",") || self.0.trim_start().starts_with(']')) {
                    return None;
                }
            }
            return Some(Value::Array(items));
        }
        let text = self.0.trim_start();
        let (word, rest) = text.split_at(text.find([',', ')', ']', '}'])?);
        self.0 = rest;
        match word.trim() {
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            "None" => Some(Value::Null),
            word => json_text::parse(word)
                .ok()
                .filter(|value| !value.is_string()),
        }
    }

    /// Returns whether a string follows.
    fn begins_string(&self) -> bool {
        let text = self.0.trim_start();
        let has_delimiter = DELIMITERS
            .iter()
            .any(|delimiter| text.starts_with(delimiter));
        has_delimiter || text.starts_with(['"', '\''])
    }

    fn string(&mut self) -> Option<String> {
        let text = self.0.trim_start();
        for delimiter in DELIMITERS {
            if let Some(rest) = text.strip_prefix(delimiter) {
                let (string, rest) = rest.split_once(delimiter)?;
                self.0 = rest;
                return Some(string.to_owned());
            }
        }
        let quote = text.chars().next()?;
        let mut string = String::new();
        let mut chars = text.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => {
                    let (_, c) = chars.next()?;
                    let digits = match c {
                        'x' => 2,
                        'u' => 4,
                        'U' => 8,
                        _ => 0,
                    };
                    match c {
                        'n' => string.push('\n'),
                        't' => string.push('\t'),
                        'r' => string.push('\r'),
                        '\\' | '\'' | '"' => string.push(c),
                        '\n' => {}
                        _ if digits > 0 => {
                            let number: String =
                                chars.by_ref().take(digits).map(|(_, c)| c).collect();
                            let number = u32::from_str_radix(&number, 16).ok()?;
                            string.push(char::from_u32(number)?);
                        }
                        c => string.extend(['\\', c]),
                    }
                }
                c if c == quote => {
                    self.0 = text.get(at + 1..)?;
                    return Some(string);
                }
                c => string.push(c),
            }
        }
        None
    }
}
