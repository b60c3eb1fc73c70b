//! A schema in short notation (`spec/prompt.md` 4).
//!
//! Each function takes the keywords that its notation spells and leaves the others. What nobody took stands behind it
//! as JSON, so nothing is lost.

mod keywords;
mod object;
mod references;
mod scalar;
mod words;

use plaincall_syntax::Syntax;
use serde_json::Value;

pub(super) use keywords::Keywords;
pub(super) use object::describe;
pub(super) use references::References;
use words::{Bind, Words, joined};
pub(super) use words::{comment, json};

/// Deeper schemas stand as JSON.
const DEEPEST: usize = 32;

/// Writes the schemas of one tool.
pub(super) struct Notation<'s> {
    references: References<'s>,
    /// The syntax that is taught: it says how keys are written.
    syntax: Syntax,
    depth: usize,
}

impl<'s> Notation<'s> {
    pub(super) fn new(references: References<'s>, syntax: Syntax) -> Self {
        Self {
            references,
            syntax,
            depth: 0,
        }
    }

    /// The next definition that what has been written names and that has not been written itself: its name, the
    /// notation, and its description.
    pub(super) fn next_definition(&mut self) -> Option<(String, String, String)> {
        let (name, schema) = self.references.next()?;
        let (words, description) = self.described(schema, 0);
        Some((name, words.text, description))
    }

    /// What binds: the notation, and behind it as JSON what has none.
    pub(super) fn whole(&mut self, keywords: Keywords<'s>, indent: usize) -> String {
        self.with_rest(keywords, indent).text
    }

    /// The keywords that are left, as JSON.
    pub(super) fn rest(&mut self, keywords: &Keywords<'s>) -> Option<String> {
        let rest = keywords.rest()?;
        self.references.name_all(&rest);
        Some(json(&rest))
    }

    /// A schema as a part of others, its description behind it.
    fn part(&mut self, schema: &'s Value, indent: usize) -> Words {
        let (words, description) = self.described(schema, indent);
        if description.is_empty() {
            return words;
        }
        let description = json(&description.into());
        words
            .within(Bind::Atom)
            .then(&format!("({description})"), Bind::Atom)
    }

    /// A schema with its default and examples, and its description apart.
    fn described(&mut self, schema: &'s Value, indent: usize) -> (Words, String) {
        let mut keywords = match schema {
            Value::Bool(true) => return (Words::atom("any"), String::new()),
            Value::Bool(false) => return (Words::atom("never"), String::new()),
            Value::Object(keywords) => Keywords::new(keywords),
            malformed => {
                let text = format!("schema {}", json(malformed));
                return (Words::atom(text), String::new());
            }
        };
        if self.depth >= DEEPEST {
            self.references.name_all(schema);
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
            words = words.then(&format!(" = {}", json(&default)), Bind::Annotated);
        }
        if let Some(Value::Array(examples)) = examples.as_deref() {
            let examples: Vec<String> = examples.iter().map(json).collect();
            words = words.then(&format!(" e.g. {}", examples.join(", ")), Bind::Annotated);
        }
        self.depth -= 1;
        (words, description)
    }

    fn with_rest(&mut self, mut keywords: Keywords<'s>, indent: usize) -> Words {
        let core = self.core(&mut keywords, indent);
        match (core, self.rest(&keywords)) {
            (Some(core), None) => core,
            (None, None) => Words::atom("any"),
            (None, Some(rest)) => Words::atom(rest),
            (Some(core), Some(rest)) => core
                .within(Bind::All)
                .then(&format!(" & {rest}"), Bind::All),
        }
    }

    /// The notation of what it takes; `None` if there is none for any of it.
    fn core(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Option<Words> {
        if let Some(words) = self.reference(keywords, indent) {
            return Some(words);
        }
        if let Some(words) = scalar::listed(keywords) {
            return Some(words);
        }
        if let Some(words) = self.combined(keywords, indent) {
            return Some(words);
        }
        self.typed(keywords, indent)
    }

    /// `$ref`: the definition itself where nothing else names it, else its name.
    fn reference(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Option<Words> {
        let reference = keywords.take_whole("$ref", Value::is_string)?;
        // All references of a document that is written in the notation lead to definitions.
        match self.references.follow(reference.as_str()?)? {
            references::Target::Named(name) => Some(Words::atom(name)),
            references::Target::Inline(schema) => Some(self.part(schema, indent)),
        }
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`, where nothing beside them says what there is.
    fn combined(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Option<Words> {
        const COMBINATIONS: [&str; 3] = ["anyOf", "oneOf", "allOf"];
        if keywords.says_parts() {
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
            let words = words.into_iter();
            return Some(match keyword {
                "anyOf" => {
                    let texts = words.map(|word| word.within(Bind::Any).text).collect();
                    Words {
                        text: joined(texts, "|", "", "", indent),
                        bind: Bind::Any,
                    }
                }
                "oneOf" => {
                    let texts = words.map(|word| word.within(Bind::All).text).collect();
                    Words::atom(joined(texts, "|", "one of (", ")", indent))
                }
                _ => {
                    let texts = words.map(|word| apart(word).text).collect();
                    Words {
                        text: joined(texts, "&", "", "", indent),
                        bind: Bind::All,
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

    /// `type` with what belongs to each type.
    fn typed(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Option<Words> {
        let types = keywords.take_types()?;
        let mut words: Vec<Words> = types
            .iter()
            .map(|name| match *name {
                "string" => scalar::string(keywords),
                "integer" | "number" => scalar::number(name, &types, keywords),
                "array" => self.list(keywords, indent),
                "object" => self.object(keywords, indent),
                name => Words::atom(name),
            })
            .collect();
        if words.len() == 1 {
            return words.pop();
        }
        let texts: Vec<String> = words.into_iter().map(|word| word.text).collect();
        Some(Words {
            text: texts.join(" | "),
            bind: Bind::Any,
        })
    }

    /// `[string] 1..5 items`, `tuple[string, number]`.
    fn list(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Words {
        let text = match self.tuple(keywords, indent) {
            Some(tuple) => tuple,
            None => match keywords.take_whole("items", |items| !items.is_array()) {
                Some(items) => format!("[{}]", self.part(items, indent).text),
                None => "[any]".to_owned(),
            },
        };
        let mut words = Words::atom(text);
        if let Some(bounds) = scalar::counts(keywords, "minItems", "maxItems") {
            words = words.then(&format!(" {bounds} items"), Bind::Narrowed);
        }
        match keywords
            .take_if("uniqueItems", Value::is_boolean)
            .as_deref()
        {
            Some(Value::Bool(true)) => words.then(" unique", Bind::Narrowed),
            _ => words,
        }
    }

    fn tuple(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Option<String> {
        let is_list = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty());
        let (places, behind) = match keywords.take_whole("prefixItems", is_list) {
            Some(places) => (places, "items"),
            None => (keywords.take_whole("items", is_list)?, "additionalItems"),
        };
        // A comma may also stand between examples.
        let mut place = |schema| self.part(schema, indent).within(Bind::Any).text;
        let mut places: Vec<String> = places.as_array()?.iter().map(&mut place).collect();
        match keywords.take_whole(behind, |value| !value.is_array()) {
            Some(Value::Bool(false)) => {}
            None | Some(Value::Bool(true)) => places.push("...".to_owned()),
            Some(schema) => places.push(format!("...{}", place(schema))),
        }
        Some(format!("tuple[{}]", places.join(", ")))
    }
}

/// A member of `allOf`. What depends on the keywords beside it is kept apart from theirs by parentheses.
fn apart(words: Words) -> Words {
    if words.text.contains("\"unevaluated") {
        return Words::atom(format!("({})", words.text));
    }
    words.within(Bind::All)
}
