//! The steps of a validation, counted before it begins.
//!
//! The crate `jsonschema` has no limit of work: a schema of a kilobyte whose definitions each refer to another one twice
//! takes it exponential time, and memory for a tree of errors. So the pairs of a schema and a value that it may visit are
//! counted first.

use std::collections::HashSet;
use std::slice;

use serde_json::{Map, Value};

use crate::schema::Targets;

/// The maximum number of steps to decide whether a value is valid, in addition to those for its size.
pub(crate) const MOST_STEPS: usize = 200_000;
/// The same for each member, item and 64 bytes of the value.
const MOST_STEPS_FOR_SIZE: usize = 32;
/// The maximum number of steps to list what is invalid, which needs memory for each.
pub(crate) const MOST_LISTING_STEPS: usize = 50_000;
/// The maximum depth of visited schemas, each in the one before or in its target.
const DEEPEST: usize = 256;
/// The number of times that a pattern with look-around or back-references may backtrack in one text.
pub(crate) const BACKTRACKS: usize = 10_000;
/// The maximum size of one compiled pattern, in bytes.
pub(crate) const PATTERN_BYTES: usize = 2 << 20;
/// The steps that this can take.
const BACKTRACKING: usize = 200;
/// The number of combinations of outcomes that the validator tries.
const MOST_OUTCOMES: usize = 64;
/// From this number of members on, the validator looks up which one an object names, and visits no other.
const LOOKED_UP: usize = 3;

/// The purpose of a validation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To find out whether a value is valid.
    Decide,
    /// To list all that is invalid: it visits each member of a union.
    List,
}

/// The validation takes more steps than it may.
pub(crate) struct TooManySteps;

struct Counter<'s> {
    targets: Targets<'s>,
    left: usize,
    purpose: Purpose,
    /// Whether a pattern may backtrack, so that the validator tries both outcomes of each match that it does not finish.
    is_backtracking: bool,
    /// The targets of references that are being visited, with the value: a cycle ends there.
    trail: Vec<(*const Value, *const Value)>,
}

/// Checks that validating `value` by `schema` takes at most [`MOST_STEPS`], or [`MOST_LISTING_STEPS`], and adds what it takes to
/// `taken`, without what its size allows. `has_names` is the result of [`Targets::has_names`].
///
/// # Errors
/// Returns an error if it may take more, or if a reference leads to an unknown place.
pub(crate) fn check(
    schema: &Value,
    has_names: bool,
    value: &Value,
    purpose: Purpose,
    taken: &mut usize,
) -> Result<(), TooManySteps> {
    let targets = if has_names {
        Targets::new(schema)
    } else {
        Targets::without_names(schema)
    };
    let mut counter = Counter {
        is_backtracking: false,
        targets,
        left: usize::MAX,
        purpose,
        trail: Vec::new(),
    };
    counter.weigh(value)?;
    let size = usize::MAX - counter.left;
    let (most, for_size) = match purpose {
        Purpose::Decide => (MOST_STEPS, size.saturating_mul(MOST_STEPS_FOR_SIZE)),
        Purpose::List => (MOST_LISTING_STEPS, 0),
    };
    let limit = most.saturating_add(for_size);
    counter.left = limit;
    let visited = counter.visit(schema, value, At::default());
    *taken += (limit - counter.left).saturating_sub(for_size);
    visited
}

/// The place of a visit.
#[derive(Clone, Copy, Default)]
struct At {
    depth: usize,
    /// The number of unions around it. Each is decided before its errors are listed.
    unions: usize,
    /// The length of the path to the value, in bytes. Each error contains the path.
    path: usize,
}

impl At {
    fn below(self, path: usize) -> Self {
        Self {
            depth: self.depth + 1,
            path: self.path.saturating_add(path),
            ..self
        }
    }
}

impl<'s> Counter<'s> {
    fn take(&mut self, steps: usize) -> Result<(), TooManySteps> {
        self.left = self.left.checked_sub(steps).ok_or(TooManySteps)?;
        Ok(())
    }

    /// Counts a visit. Recurses at most `DEEPEST` levels.
    fn visit(&mut self, schema: &'s Value, value: &Value, at: At) -> Result<(), TooManySteps> {
        let Value::Object(keywords) = schema else {
            return self.take(1);
        };
        if at.depth > DEEPEST {
            return Err(TooManySteps);
        }
        self.take(1 + keywords.len())?;
        if self.purpose == Purpose::List {
            self.take(at.path / 64 + at.unions)?;
            if at.unions > 0 {
                // Each error in a union has a copy of the value.
                self.weigh(value)?;
            }
        }
        for (name, keyword) in keywords {
            self.keyword(name, keyword, keywords, value, at)?;
        }
        let is_unevaluated = |name: &String| name.starts_with("unevaluated");
        if !keywords.keys().any(is_unevaluated) {
            return Ok(());
        }
        // The members that other schemas evaluate are found by deciding and visiting these again.
        for _ in 0..2 {
            for (name, keyword) in keywords.iter().filter(|(name, _)| is_in_place(name)) {
                self.keyword(name, keyword, keywords, value, at)?;
            }
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        name: &str,
        keyword: &'s Value,
        keywords: &'s Map<String, Value>,
        value: &Value,
        at: At,
    ) -> Result<(), TooManySteps> {
        let below = at.below(0);
        match (name, keyword, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                self.reference(reference, value, at)
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(members), _) => {
                self.members(name, members, value, below)
            }
            ("not" | "if" | "then" | "else", _, _) => self.visit(keyword, value, below),
            ("enum" | "const", _, _) => self.weigh(keyword),
            ("pattern", Value::String(pattern), Value::String(text)) => self.pattern(pattern, text),
            ("format" | "minLength" | "maxLength", _, Value::String(text)) => {
                self.take(text.len() / 16)
            }
            ("uniqueItems", Value::Bool(true), Value::Array(_)) => self.weigh(value),
            ("items" | "prefixItems", Value::Array(list), Value::Array(items)) => {
                let mut pairs = list.iter().zip(items);
                pairs.try_for_each(|(schema, item)| self.visit(schema, item, at.below(8)))
            }
            (
                "items" | "additionalItems" | "unevaluatedItems" | "contains",
                _,
                Value::Array(items),
            ) => items
                .iter()
                .try_for_each(|item| self.visit(keyword, item, at.below(8))),
            (
                "dependentSchemas" | "dependencies",
                Value::Object(schemas),
                Value::Object(object),
            ) => {
                self.take(schemas.len() / 8)?;
                let mut schemas = schemas.iter().filter(|(key, _)| object.contains_key(*key));
                schemas.try_for_each(|(_, schema)| self.visit(schema, value, below))
            }
            (_, _, Value::Object(object)) => self.by_members(name, keyword, keywords, object, at),
            _ => Ok(()),
        }
    }

    /// Counts a keyword about the members of an object.
    fn by_members(
        &mut self,
        name: &str,
        keyword: &'s Value,
        keywords: &'s Map<String, Value>,
        object: &Map<String, Value>,
        at: At,
    ) -> Result<(), TooManySteps> {
        let below = |key: &str| at.below(1 + key.len());
        match (name, keyword) {
            ("properties", Value::Object(schemas)) => {
                self.take(schemas.len().max(object.len()) / 8)?;
                let mut members = object.iter();
                members.try_for_each(|(key, member)| match schemas.get(key) {
                    Some(schema) => self.visit(schema, member, below(key)),
                    None => Ok(()),
                })
            }
            ("patternProperties", Value::Object(schemas)) => {
                for (key, member) in object {
                    for (pattern, schema) in schemas {
                        self.pattern(pattern, key)?;
                        self.visit(schema, member, below(key))?;
                    }
                }
                Ok(())
            }
            ("additionalProperties" | "unevaluatedProperties", _) => {
                let named = keywords.get("properties").and_then(Value::as_object);
                let is_named = |key: &str| named.is_some_and(|named| named.contains_key(key));
                let mut others = object.iter().filter(|(key, _)| !is_named(key));
                others.try_for_each(|(key, member)| self.visit(keyword, member, below(key)))
            }
            ("propertyNames", _) => object
                .keys()
                .try_for_each(|key| self.visit(keyword, &Value::String(key.clone()), below(key))),
            ("required" | "dependentRequired", _) => self.weigh(keyword),
            _ => Ok(()),
        }
    }

    fn reference(&mut self, reference: &str, value: &Value, at: At) -> Result<(), TooManySteps> {
        let targets = self.targets.of(reference);
        if targets.is_empty() {
            return Err(TooManySteps);
        }
        for target in targets {
            let visit = (std::ptr::from_ref(target), std::ptr::from_ref(value));
            if self.trail.contains(&visit) {
                continue;
            }
            self.trail.push(visit);
            self.visit(target, value, at.below(0))?;
            self.trail.pop();
        }
        Ok(())
    }

    fn members(
        &mut self,
        name: &str,
        members: &'s [Value],
        value: &Value,
        at: At,
    ) -> Result<(), TooManySteps> {
        let is_union = name != "allOf";
        let mut at = at;
        let mut visited = members;
        if is_union && self.purpose == Purpose::List {
            at.unions += 1;
            // The message may contain the value.
            self.weigh(value)?;
        } else if is_union {
            self.take(members.len())?;
            visited = self.possible_members(members, value);
        }
        let mut visited = visited.iter();
        visited.try_for_each(|member| self.visit(member, value, at))
    }

    /// Returns the member of a union that an object names by a constant, or none, if each member requires another text under
    /// the same key; otherwise all.
    fn possible_members(&self, members: &'s [Value], value: &Value) -> &'s [Value] {
        let object = value.as_object().filter(|_| members.len() >= LOOKED_UP);
        let (Some(object), Some(first)) = (object, members.first()) else {
            return members;
        };
        for (key, _) in self.constants(first) {
            let constant = |member: &'s Value| {
                let mut constants = self.constants(member).into_iter();
                constants
                    .find(|(known, _)| *known == key)
                    .map(|(_, text)| text)
            };
            let texts: Option<Vec<&str>> = members.iter().map(constant).collect();
            let Some(texts) = texts else {
                continue;
            };
            let different: HashSet<&str> = texts.iter().copied().collect();
            if different.len() < texts.len() {
                continue;
            }
            let named = object.get(key).and_then(Value::as_str);
            let mut members = members.iter().zip(texts);
            let member = members.find(|(_, text)| Some(*text) == named);
            return member.map_or(&[], |(member, _)| slice::from_ref(member));
        }
        members
    }

    /// Returns the required members of a schema that have a constant text.
    fn constants(&self, schema: &'s Value) -> Vec<(&'s str, &'s str)> {
        let schema = match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => match *self.targets.of(reference) {
                [target] => target,
                _ => return Vec::new(),
            },
            None => schema,
        };
        let required = schema.get("required").and_then(Value::as_array);
        let constant = |name: &'s Value| {
            let name = name.as_str()?;
            let schema = schema.get("properties")?.get(name)?;
            Some((name, schema.get("const")?.as_str()?))
        };
        required
            .into_iter()
            .flatten()
            .filter_map(constant)
            .collect()
    }

    /// Counts the match of a pattern.
    fn pattern(&mut self, pattern: &str, text: &str) -> Result<(), TooManySteps> {
        self.take(1 + text.len().saturating_mul(1 + pattern.len() / 32) / 16)?;
        if !backtracks(pattern) {
            return Ok(());
        }
        if self.purpose == Purpose::List && !self.is_backtracking {
            self.is_backtracking = true;
            self.left /= MOST_OUTCOMES;
        }
        // Each time, it may search the rest of the text.
        self.take(BACKTRACKING.saturating_mul(1 + text.len() / 64))
    }

    /// Counts the size of a value that is compared or written.
    fn weigh(&mut self, value: &Value) -> Result<(), TooManySteps> {
        let mut rest = vec![value];
        while let Some(value) = rest.pop() {
            match value {
                Value::String(text) => self.take(1 + text.len() / 64)?,
                Value::Array(items) => {
                    self.take(items.len())?;
                    rest.extend(items);
                }
                Value::Object(members) => {
                    self.take(members.len())?;
                    rest.extend(members.values());
                }
                _ => self.take(1)?,
            }
        }
        Ok(())
    }
}

/// Returns whether a keyword applies schemas to the value itself.
fn is_in_place(name: &str) -> bool {
    let names = [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "dependentSchemas",
        "dependencies",
    ];
    names.contains(&name)
}

/// Returns whether a pattern has look-around, back-references or atomic groups.
fn backtracks(pattern: &str) -> bool {
    let signs = [
        "(?=", "(?!", "(?<", "(?>", "(?(", "\\k", "\\K", "\\G", "++", "*+", "?+", "}+",
    ];
    let mut escapes = pattern.match_indices('\\');
    let is_digit = |at: usize| {
        pattern
            .get(at + 1..)
            .is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
    };
    signs.iter().any(|sign| pattern.contains(sign)) || escapes.any(|(at, _)| is_digit(at))
}
