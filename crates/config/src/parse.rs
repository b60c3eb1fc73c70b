//! Parsing of a file into a tree.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, ast};
use toml::de::{DeTable, DeValue};

use crate::node::{Node, Origin, Value};

/// Syntax errors with their byte ranges.
pub(crate) type SyntaxErrors = Vec<(Range<usize>, String)>;

/// Parses TOML.
pub(crate) fn toml(file: &Arc<str>, text: &str) -> (Node, SyntaxErrors) {
    let mut parser = Parser::new(file, text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or_default();
        match (error.message(), text.get(span.clone())) {
            ("duplicate key", Some(key)) => parser.duplicate(span, key),
            (message, _) => parser.error(span, message),
        }
    }
    let root = parser.toml_table(document.get_ref());
    parser.result(root)
}

/// Parses JSON with comments, trailing commas and the other extensions of JSON5.
pub(crate) fn json(file: &Arc<str>, text: &str) -> (Node, SyntaxErrors) {
    let mut parser = Parser::new(file, text);
    // A byte order mark is not part of the JSON. Replacing it with spaces preserves all spans.
    let without_mark = text.strip_prefix('\u{feff}');
    let text = without_mark.map_or(text.into(), |rest| Cow::Owned(format!("   {rest}")));
    let options = ParseOptions {
        allow_missing_commas: false,
        ..ParseOptions::default()
    };
    let root = match jsonc_parser::parse_to_ast(&text, &CollectOptions::default(), &options) {
        Ok(parsed) => match parsed.value {
            Some(root @ (ast::Value::Object(_) | ast::Value::Array(_))) => {
                parser.json_node(None, root).value
            }
            other => {
                let span = other.map_or(0..0, |value| range(&value));
                parser.error(span, "the file must contain a JSON object or array");
                Value::Null
            }
        },
        Err(error) => {
            let mut message = error.kind().to_string();
            if let Some(first) = message.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            let at = error.range().start;
            parser.error(at..at, format!("invalid JSON: {message}"));
            Value::Null
        }
    };
    parser.result(root)
}

/// Creates nodes with their file names and lines.
struct Parser<'t> {
    text: &'t str,
    file: Arc<str>,
    line_ends: Vec<usize>,
    errors: SyntaxErrors,
}

impl<'t> Parser<'t> {
    fn new(file: &Arc<str>, text: &'t str) -> Self {
        Self {
            text,
            file: Arc::clone(file),
            line_ends: text.match_indices('\n').map(|(at, _)| at).collect(),
            errors: Vec::new(),
        }
    }

    fn node(&self, key: Range<usize>, span: Range<usize>, value: Value) -> Node {
        let line = self.line_ends.partition_point(|end| *end < key.start) + 1;
        let file = Arc::clone(&self.file);
        Node {
            value,
            span,
            key,
            origin: Origin::File { file, line },
        }
    }

    /// Returns the tree, which is empty after a syntax error, and the errors.
    fn result(self, root: Value) -> (Node, SyntaxErrors) {
        let value = match root {
            Value::Table(_) | Value::List(_) if self.errors.is_empty() => root,
            _ => Value::Table(IndexMap::new()),
        };
        (self.node(0..0, 0..self.text.len(), value), self.errors)
    }

    fn toml_table(&self, table: &DeTable<'_>) -> Value {
        let entries = table.iter().map(|(key, value)| {
            let name = key.get_ref().clone().into_owned();
            (name, self.toml_node(key.span(), value))
        });
        Value::Table(entries.collect())
    }

    fn toml_node(&self, key: Range<usize>, value: &toml::Spanned<DeValue<'_>>) -> Node {
        let plain = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Integer(number) => {
                let whole = i128::from_str_radix(number.as_str(), number.radix());
                Value::Number(whole.map_or(number.to_string(), |whole| whole.to_string()))
            }
            DeValue::Float(number) => Value::Number(number.to_string()),
            DeValue::Boolean(value) => Value::Boolean(*value),
            DeValue::Datetime(moment) => Value::DateTime(moment.to_string()),
            DeValue::Array(items) => {
                let items = items.iter().map(|item| self.toml_node(item.span(), item));
                Value::List(items.collect())
            }
            DeValue::Table(table) => self.toml_table(table),
        };
        self.node(key, value.span(), plain)
    }

    fn error(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.errors.push((span, message.into()));
    }

    fn duplicate(&mut self, span: Range<usize>, key: &str) {
        self.error(span, format!("duplicate key `{key}`"));
    }

    fn json_table(&mut self, object: ast::Object<'_>) -> Value {
        let mut entries = IndexMap::new();
        for property in object.properties {
            let key = range(&property.name);
            let name = property.name.into_string();
            let node = self.json_node(Some(key.clone()), property.value);
            if entries.insert(name.clone(), node).is_some() {
                self.duplicate(key, &name);
            }
        }
        Value::Table(entries)
    }

    fn json_node(&mut self, key: Option<Range<usize>>, value: ast::Value<'_>) -> Node {
        let span = range(&value);
        let plain = match value {
            ast::Value::StringLit(text) => Value::Text(text.value.into_owned()),
            ast::Value::NumberLit(number) => Value::Number(number.value.to_owned()),
            ast::Value::BooleanLit(value) => Value::Boolean(value.value),
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::Array(items) => {
                let items = items.elements.into_iter();
                Value::List(items.map(|item| self.json_node(None, item)).collect())
            }
            ast::Value::Object(object) => self.json_table(object),
        };
        self.node(key.unwrap_or(span.clone()), span, plain)
    }
}

fn range(part: &impl Ranged) -> Range<usize> {
    let range = part.range();
    range.start..range.end
}
