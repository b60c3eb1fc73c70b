//! The work that a schema takes for every value: to compile it, and to validate one value by it.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::form::SCHEMAS_BY_NAME;
use super::keywords::Keywords;
use super::resolve::Targets;
use crate::SpecError;
use crate::pointer::escape;

/// The maximum number of schemas and keywords that apply to one value, through references and unions.
const MOST_FOR_ONE_VALUE: usize = 20_000;
/// The same in total for all schemas with `unevaluatedProperties` or `unevaluatedItems`: the validator keeps a tree for each.
const MOST_UNEVALUATED: usize = 10_000;
/// The maximum depth of schemas that apply to one value.
const DEEPEST: usize = 128;
/// The maximum number of references to a schema from itself without a step into the value.
const MOST_CYCLES: usize = 8;
/// The maximum size of all patterns, in characters with their repetitions.
const MOST_PATTERNS: usize = 200_000;
/// A schema with an id is compiled for each way to it.
const MOST_IDS: usize = 16;

/// Returns the parts of a schema that take too many steps, in the order of the document.
pub(super) fn errors(root: &Value) -> Vec<SpecError> {
    let mut cost = Cost {
        targets: Targets::new(root),
        known: HashMap::new(),
        trail: Vec::new(),
        cycles: 0,
        unevaluated: 0,
        patterns: 0,
        ids: 0,
        errors: Vec::new(),
    };
    cost.visit(root, &mut String::new(), 0, false);
    cost.errors
}

struct Cost<'s> {
    targets: Targets<'s>,
    /// The steps of each schema for one value.
    known: HashMap<*const Keywords, usize>,
    trail: Vec<*const Keywords>,
    cycles: usize,
    unevaluated: usize,
    patterns: usize,
    ids: usize,
    errors: Vec<SpecError>,
}

impl<'s> Cost<'s> {
    fn report(&mut self, at: &str, message: &str) {
        self.errors.push(SpecError::new(at, message));
    }

    /// Visits every object of the document that may be a schema: a reference may lead to any. Only the members of one with
    /// names are schemas.
    fn visit(&mut self, value: &'s Value, at: &mut String, depth: usize, has_names: bool) {
        // The form of the schema reports deeper ones.
        if depth > 2 * DEEPEST {
            return;
        }
        let length = at.len();
        match value {
            Value::Object(keywords) => {
                if !has_names && self.for_one_value(keywords, 0) > MOST_FOR_ONE_VALUE {
                    self.report(at, "validating a value by this schema takes too many steps");
                    return;
                }
                for (name, keyword) in keywords {
                    at.push('/');
                    at.push_str(&escape(name));
                    if has_names {
                        self.visit(keyword, at, depth + 1, false);
                    } else {
                        self.keyword(name, keyword, keywords, at);
                        if !matches!(&**name, "enum" | "const" | "default" | "examples") {
                            let has_names = SCHEMAS_BY_NAME.contains(&&**name);
                            self.visit(keyword, at, depth + 1, has_names);
                        }
                    }
                    at.truncate(length);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let _ = write!(at, "/{index}");
                    self.visit(item, at, depth + 1, false);
                    at.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn keyword(&mut self, name: &str, value: &'s Value, keywords: &'s Keywords, at: &mut String) {
        match (name, value) {
            ("unevaluatedProperties" | "unevaluatedItems", _) => {
                self.unevaluated += self.for_one_value(keywords, 0);
                if self.unevaluated > MOST_UNEVALUATED {
                    self.report(at, "compiling this keyword takes too many steps");
                }
            }
            ("$id", Value::String(_)) => {
                self.ids += 1;
                if self.ids > MOST_IDS {
                    self.report(at, "the schema has too many ids");
                }
            }
            ("pattern", Value::String(pattern)) => self.pattern(pattern, at),
            ("patternProperties", Value::Object(members)) => {
                let length = at.len();
                for pattern in members.keys() {
                    at.push('/');
                    at.push_str(&escape(pattern));
                    self.pattern(pattern, at);
                    at.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn pattern(&mut self, pattern: &str, at: &str) {
        let size = pattern_size(pattern);
        if self.patterns.saturating_add(size) > MOST_PATTERNS {
            self.report(at, "the patterns take too many steps to compile");
        } else {
            self.patterns += size;
        }
    }

    /// Returns the number of schemas and keywords that apply to one value. Recurses at most `DEEPEST` levels.
    fn for_one_value(&mut self, keywords: &'s Keywords, depth: usize) -> usize {
        let place = std::ptr::from_ref(keywords);
        if let Some(steps) = self.known.get(&place) {
            return *steps;
        }
        if self.trail.contains(&place) {
            self.cycles += 1;
            let is_too_many = self.cycles > MOST_CYCLES;
            return if is_too_many { usize::MAX } else { 0 };
        }
        if depth > DEEPEST {
            return usize::MAX;
        }
        self.trail.push(place);
        let mut steps = 1 + keywords.len();
        for (name, keyword) in keywords {
            for schema in self.in_place(name, keyword) {
                steps = steps.saturating_add(self.for_one_value(schema, depth + 1));
            }
        }
        self.trail.pop();
        self.known.insert(place, steps);
        steps
    }

    /// Returns the schemas of a keyword that apply to the value itself.
    fn in_place(&self, name: &str, keyword: &'s Value) -> Vec<&'s Keywords> {
        let found: Vec<&'s Value> = match (name, keyword) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                self.targets.of(reference)
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(members)) => members.iter().collect(),
            ("dependentSchemas" | "dependencies", Value::Object(members)) => {
                members.values().collect()
            }
            ("not" | "if" | "then" | "else", schema) => vec![schema],
            _ => Vec::new(),
        };
        found.into_iter().filter_map(Value::as_object).collect()
    }
}

/// Returns the size of a pattern: its characters, each as often as the repetitions around it.
fn pattern_size(pattern: &str) -> usize {
    /// A class of Unicode has hundreds of ranges.
    const CLASS: usize = 200;
    let folds = if pattern.contains("(?i") { 4 } else { 1 };
    let mut open: Vec<usize> = Vec::new();
    let (mut size, mut last, mut is_escaped) = (0_usize, 0, false);
    for (at, character) in pattern.char_indices() {
        match character {
            _ if is_escaped => {
                is_escaped = false;
                last = if "pP".contains(character) { CLASS } else { 1 };
                size = size.saturating_add(last);
            }
            '\\' => is_escaped = true,
            '(' => open.push(std::mem::take(&mut size)),
            ')' => {
                last = size;
                size = size.saturating_add(open.pop().unwrap_or_default());
            }
            '{' => {
                let counts = pattern.get(at + 1..).unwrap_or_default();
                let counts = counts.split('}').next().unwrap_or_default();
                let counts = counts.split(',').filter_map(|count| count.parse().ok());
                let times: usize = counts.max().unwrap_or(1);
                let more = last.saturating_mul(times.saturating_sub(1));
                size = size.saturating_add(more);
                last = last.saturating_add(more);
            }
            _ => {
                last = folds;
                size = size.saturating_add(folds);
            }
        }
    }
    open.into_iter().fold(size, usize::saturating_add)
}
