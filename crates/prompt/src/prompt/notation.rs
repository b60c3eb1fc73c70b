//! A schema in a short notation (`spec/prompt.md` 4).
//!
//! Each function takes the keywords that its notation covers and leaves the others. The remaining keywords follow as
//! JSON, so nothing is lost.

mod keywords;
mod object;
mod references;
mod scalar;
mod words;

use plaincall_syntax::Syntax;
use serde_json::Value;

use super::need::{Need, Needs};

pub(super) use keywords::Keywords;
pub(super) use object::describe;
pub(super) use references::References;
use words::{Precedence, Words, joined};
pub(super) use words::{comment, json};

/// Schemas nested more deeply are written as JSON.
const DEEPEST: usize = 32;

pub(super) struct Notation<'s, 'n> {
    references: References<'s>,
    /// The syntax of the prompt, which decides how keys are written.
    syntax: Syntax,
    /// Signs and values that the notation has shown.
    needs: &'n mut Needs,
    depth: usize,
}

impl<'s, 'n> Notation<'s, 'n> {
    pub(super) fn new(references: References<'s>, syntax: Syntax, needs: &'n mut Needs) -> Self {
        Self {
            references,
            syntax,
            needs,
            depth: 0,
        }
    }

    pub(super) fn next_definition(&mut self) -> Option<(String, String, String)> {
        let (name, schema) = self.references.next()?;
        let (words, description) = self.described(schema, 0);
        Some((name, words.text, description))
    }

    /// Writes the type of all values.
    fn any(&mut self) -> Words {
        self.needs.extend(Need::OF_ANY);
        Words::atom("any")
    }

    /// Writes all constraints: the notation, followed by JSON for keywords without a notation.
    pub(super) fn whole(&mut self, keywords: Keywords<'s>, indent: usize) -> String {
        self.with_rest(keywords, indent).text
    }

    pub(super) fn rest(&mut self, keywords: &Keywords<'s>) -> Option<String> {
        let rest = keywords.rest()?;
        self.references.name_all(&rest);
        // It may describe anything.
        self.needs.extend(Need::OF_ANY);
        Some(json(&rest))
    }

    /// Writes a schema inside others, followed by its description.
    fn part(&mut self, schema: &'s Value, indent: usize) -> Words {
        let (words, description) = self.described(schema, indent);
        if description.is_empty() {
            return words;
        }
        let description = json(&description.into());
        words
            .within(Precedence::Atom)
            .then(&format!("({description})"), Precedence::Atom)
    }

    /// Writes a schema with its default and examples, and returns the description separately.
    fn described(&mut self, schema: &'s Value, indent: usize) -> (Words, String) {
        let mut keywords = match schema {
            Value::Bool(true) => return (self.any(), String::new()),
            Value::Bool(false) => return (Words::atom("never"), String::new()),
            Value::Object(keywords) => Keywords::new(keywords),
            malformed => {
                let text = format!("schema {}", json(malformed));
                return (Words::atom(text), String::new());
            }
        };
        if self.depth >= DEEPEST {
            self.references.name_all(schema);
            self.needs.extend(Need::OF_ANY);
            return (Words::atom(json(schema)), String::new());
        }
        self.depth += 1;
        let description = keywords.take_text("description").unwrap_or_default();
        let default = keywords.take("default");
        let examples = keywords.take_if("examples", |value| {
            value.as_array().is_some_and(|list| !list.is_empty())
        });
        let mut words = self.with_rest(keywords, indent);
        if let Some(default) = default {
            self.needs.insert(Need::Default);
            words = words.then(&format!(" = {}", json(&default)), Precedence::Annotated);
        }
        if let Some(Value::Array(examples)) = examples.as_deref() {
            let examples: Vec<String> = examples.iter().map(json).collect();
            words = words.then(
                &format!(" e.g. {}", examples.join(", ")),
                Precedence::Annotated,
            );
        }
        self.depth -= 1;
        (words, description)
    }

    fn with_rest(&mut self, mut keywords: Keywords<'s>, indent: usize) -> Words {
        let core = self.core(&mut keywords, indent);
        match (core, self.rest(&keywords)) {
            (Some(core), None) => core,
            (None, None) => self.any(),
            (None, Some(rest)) => Words::atom(rest),
            (Some(core), Some(rest)) => core
                .within(Precedence::All)
                .then(&format!(" & {rest}"), Precedence::All),
        }
    }

    /// Writes the notation of the keywords that it takes; `None` if none of them has one.
    fn core(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Option<Words> {
        if let Some(words) = self.reference(keywords, indent) {
            return Some(words);
        }
        let enum_values = keywords.get("enum").and_then(Value::as_array);
        let lists_null = keywords.get("const").is_some_and(Value::is_null)
            || enum_values.is_some_and(|values| values.contains(&Value::Null));
        if let Some(words) = scalar::listed(keywords) {
            self.needs.insert(Need::Choice);
            self.needs.extend(lists_null.then_some(Need::Null));
            return Some(words);
        }
        if let Some(words) = self.combined(keywords, indent) {
            return Some(words);
        }
        self.typed(keywords, indent)
    }

    /// Writes a `$ref`: the definition itself if this is the only reference, otherwise its name.
    fn reference(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Option<Words> {
        let reference = keywords.take_whole("$ref", Value::is_string)?;
        // All references of a document in the notation lead to definitions.
        match self.references.follow(reference.as_str()?)? {
            references::Target::Named(name) => Some(Words::atom(name)),
            references::Target::Inline(schema) => Some(self.part(schema, indent)),
        }
    }

    /// Writes `anyOf`, `oneOf`, `allOf` and `not`, if no keyword beside them lists members or items.
    fn combined(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Option<Words> {
        const COMBINATIONS: [&str; 3] = ["anyOf", "oneOf", "allOf"];
        if keywords.describes_parts() {
            return None;
        }
        for keyword in COMBINATIONS {
            let Some(members) = keywords.take_members(keyword) else {
                continue;
            };
            let mut words: Vec<Words> = members
                .iter()
                .map(|member| self.part(member, indent))
                .collect();
            if words.len() == 1 {
                return words.pop();
            }
            self.needs.insert(Need::Choice);
            let words = words.into_iter();
            return Some(match keyword {
                "anyOf" => {
                    let texts = words
                        .map(|word| word.within(Precedence::Any).text)
                        .collect();
                    Words {
                        text: joined(texts, "|", "", "", indent),
                        precedence: Precedence::Any,
                    }
                }
                "oneOf" => {
                    let texts = words
                        .map(|word| word.within(Precedence::All).text)
                        .collect();
                    Words::atom(joined(texts, "|", "one of (", ")", indent))
                }
                _ => {
                    let texts = words.map(|word| apart(word).text).collect();
                    Words {
                        text: joined(texts, "&", "", "", indent),
                        precedence: Precedence::All,
                    }
                }
            });
        }
        if keywords.has("type") {
            return None;
        }
        let schema = keywords.take_whole("not", |_| true)?;
        let text = format!("not ({})", self.part(schema, indent).text);
        Some(Words::atom(text))
    }

    fn typed(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Option<Words> {
        let types = keywords.take_types()?;
        let mut words: Vec<Words> = types
            .iter()
            .map(|name| match *name {
                "string" => scalar::string(keywords),
                "integer" | "number" => scalar::number(name, &types, keywords),
                "array" => self.list(keywords, indent),
                "object" => self.object(keywords, indent),
                name => {
                    self.needs.extend((name == "null").then_some(Need::Null));
                    Words::atom(name)
                }
            })
            .collect();
        if words.len() == 1 {
            return words.pop();
        }
        self.needs.insert(Need::Choice);
        let texts: Vec<String> = words.into_iter().map(|word| word.text).collect();
        Some(Words {
            text: texts.join(" | "),
            precedence: Precedence::Any,
        })
    }

    /// Writes `[string] 1..5 items` or `tuple[string, number]`.
    fn list(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Words {
        self.needs.insert(Need::List);
        let text = match self.tuple(keywords, indent) {
            Some(tuple) => tuple,
            None => match keywords.take_whole("items", |items| !items.is_array()) {
                Some(items) => format!("[{}]", self.part(items, indent).text),
                None => format!("[{}]", self.any().text),
            },
        };
        let mut words = Words::atom(text);
        if let Some(bounds) = scalar::counts(keywords, "minItems", "maxItems") {
            words = words.then(&format!(" {bounds} items"), Precedence::Narrowed);
        }
        match keywords
            .take_if("uniqueItems", Value::is_boolean)
            .as_deref()
        {
            Some(Value::Bool(true)) => words.then(" unique", Precedence::Narrowed),
            _ => words,
        }
    }

    fn tuple(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Option<String> {
        let is_list = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty());
        let (places, behind) = match keywords.take_whole("prefixItems", is_list) {
            Some(places) => (places, "items"),
            None => (keywords.take_whole("items", is_list)?, "additionalItems"),
        };
        // A comma may also appear between examples.
        let mut place = |schema| self.part(schema, indent).within(Precedence::Any).text;
        let mut places: Vec<String> = places.as_array()?.iter().map(&mut place).collect();
        match keywords.take_whole(behind, |value| !value.is_array()) {
            Some(Value::Bool(false)) => {}
            None | Some(Value::Bool(true)) => places.push("...".to_owned()),
            Some(schema) => places.push(format!("...{}", place(schema))),
        }
        Some(format!("tuple[{}]", places.join(", ")))
    }
}

/// Puts a member of `allOf` in parentheses if it depends on its neighboring keywords.
fn apart(words: Words) -> Words {
    if words.text.contains("\"unevaluated") {
        return Words::atom(format!("({})", words.text));
    }
    words.within(Precedence::All)
}
