//! A tolerant parser for JSON that a model writes: what common hand-written parsers accept, and no more.
//!
//! It accepts line ends and tabs within strings, commas before a closing bracket, and Python's `True`, `False` and `None`.

use serde_json::{Map, Value};

/// The deepest nesting.
const DEEPEST: u32 = 60;

/// Parses a whole text.
///
/// # Errors
/// Returns the problem with its line and column.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let (value, length) = parse_prefix(text)?;
    let rest = text.get(length..).unwrap_or_default();
    if rest.trim().is_empty() {
        return Ok(value);
    }
    let at = length + rest.len() - rest.trim_start().len();
    Err(place(text, at, "unexpected text after the value"))
}

/// Parses the value at the beginning of a text, and returns its length too.
///
/// # Errors
/// Returns the problem with its line and column.
pub(crate) fn parse_prefix(text: &str) -> Result<(Value, usize), String> {
    let mut parser = Parser { text, at: 0 };
    match parser.value(0) {
        Ok(value) => Ok((value, parser.at)),
        Err(problem) => Err(place(text, parser.at, problem)),
    }
}

fn place(text: &str, at: usize, problem: &str) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!("{problem} at line {line} column {column}")
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Skips white space and this character.
    fn eat(&mut self, c: char) -> bool {
        self.skip_space();
        let is_there = self.rest().starts_with(c);
        self.at += if is_there { c.len_utf8() } else { 0 };
        is_there
    }

    fn value(&mut self, depth: u32) -> Result<Value, &'static str> {
        if depth > DEEPEST {
            return Err("nested too deeply");
        }
        self.skip_space();
        match self.rest().chars().next() {
            Some('{') => self.object(depth),
            Some('[') => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.eat(']') {
                    items.push(self.value(depth + 1)?);
                    if !self.eat(',') && !self.rest().starts_with(']') {
                        return Err("expected `,` or `]`");
                    }
                }
                Ok(items.into())
            }
            Some('"') => self.string().map(Value::String),
            Some(_) => self.word(),
            None => Err("unexpected end"),
        }
    }

    fn object(&mut self, depth: u32) -> Result<Value, &'static str> {
        self.at += 1;
        let mut fields = Map::new();
        while !self.eat('}') {
            if !self.rest().starts_with('"') {
                return Err("expected a name in quotation marks");
            }
            let name = self.string()?;
            if !self.eat(':') {
                return Err("expected `:`");
            }
            fields.insert(name, self.value(depth + 1)?);
            if !self.eat(',') && !self.rest().starts_with('}') {
                return Err("expected `,` or `}`");
            }
        }
        Ok(fields.into())
    }

    fn string(&mut self) -> Result<String, &'static str> {
        let mut escaped = String::from("\"");
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    escaped.push('"');
                    let string = serde_json::from_str(&escaped);
                    let string = string.map_err(|_| "invalid escape in a string")?;
                    self.at += at + 1;
                    return Ok(string);
                }
                '\\' => {
                    escaped.push(c);
                    escaped.extend(characters.next().map(|(_, c)| c));
                }
                '\n' => escaped.push_str("\\n"),
                '\r' => escaped.push_str("\\r"),
                '\t' => escaped.push_str("\\t"),
                c => escaped.push(c),
            }
        }
        Err("a string has no end")
    }

    fn word(&mut self) -> Result<Value, &'static str> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let value = match word {
            "True" => true.into(),
            "False" => false.into(),
            "None" => Value::Null,
            word => serde_json::from_str(word).map_err(|_| "expected a value")?,
        };
        self.at += end;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::parse;

    #[test]
    fn accepted_texts() {
        for (text, expected) in [
            (
                r#"{"a": [1, -2.5e3, "x\ny", true, null]}"#,
                json!({"a": [1, -2500.0, "x\ny", true, null]}),
            ),
            ("{\"a\": \"x\n\ty\",}", json!({"a": "x\n\ty"})),
            ("[True, False, None, ]", json!([true, false, null])),
            ("{}", json!({})),
            (r#""\u00e9 \\ \"""#, json!("é \\ \"")),
        ] {
            assert_eq!(parse(text).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn rejected_texts() {
        for (text, expected) in [
            (
                r#"{"a": "the "no""}"#,
                "expected `,` or `}` at line 1 column 13",
            ),
            (
                r#"{"a": "\d"}"#,
                "invalid escape in a string at line 1 column 7",
            ),
            (
                "{'a': 1}",
                "expected a name in quotation marks at line 1 column 2",
            ),
            ("{\n\"a\": 1", "expected `,` or `}` at line 2 column 7"),
            ("[1 2]", "expected `,` or `]` at line 1 column 4"),
            ("{} x", "unexpected text after the value at line 1 column 4"),
            (r#""abc"#, "a string has no end at line 1 column 1"),
            ("", "unexpected end at line 1 column 1"),
            ("nope", "expected a value at line 1 column 1"),
        ] {
            assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(
            parse(&deep).unwrap_err(),
            "nested too deeply at line 1 column 62"
        );
        let fine: Result<Value, _> = parse(&("[".repeat(50) + &"]".repeat(50)));
        assert!(fine.is_ok());
    }
}
