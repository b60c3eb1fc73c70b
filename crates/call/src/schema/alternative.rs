//! One way in which a value may be allowed.

use serde_json::{Map, Value};

use super::key_pattern::{Verdict, matches};
use super::kinds::Kinds;

/// The keywords of one schema.
pub(crate) type Keywords = Map<String, Value>;

/// Schemas of which all must hold, with `$ref`, `allOf`, `anyOf` and `oneOf` already followed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alternative<'s> {
    pub(crate) all: Vec<&'s Keywords>,
}

impl<'s> Alternative<'s> {
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.all.len() == other.all.len()
            && self
                .all
                .iter()
                .zip(&other.all)
                .all(|(one, two)| std::ptr::eq(*one, *two))
    }

    /// Both together.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut all = self.all.clone();
        for keywords in &other.all {
            if !all.iter().any(|known| std::ptr::eq(*known, *keywords)) {
                all.push(keywords);
            }
        }
        Self { all }
    }

    /// The types it allows; `None` if it says nothing about them.
    pub(crate) fn kinds(&self) -> Option<Kinds> {
        let by = |kinds: fn(&Keywords) -> Option<Kinds>| {
            self.all
                .iter()
                .filter_map(|keywords| kinds(keywords))
                .reduce(|one, other| one & other)
        };
        by(Kinds::stated).or_else(|| by(Kinds::implied))
    }

    /// The schemas of the member `key`; none if anything goes.
    pub(crate) fn member(&self, key: &str) -> Vec<&'s Value> {
        let mut found = Vec::new();
        let mut is_named = false;
        for keywords in &self.all {
            let before = found.len();
            named(keywords, key, &mut found);
            if found.len() > before {
                is_named = true;
            } else if let Some(rest) = keywords.get("additionalProperties") {
                found.push(rest);
                is_named = true;
            }
        }
        if !is_named {
            let rest = |keywords: &&'s Keywords| keywords.get("unevaluatedProperties");
            found.extend(self.all.iter().filter_map(rest));
        }
        found
    }

    /// Whether it says that there may be a member `key`.
    pub(crate) fn declares(&self, key: &str) -> bool {
        self.all.iter().any(|keywords| {
            let mut found = Vec::new();
            named(keywords, key, &mut found);
            let rest = keywords.get("additionalProperties");
            !found.is_empty() || rest.is_some_and(|rest| *rest != Value::Bool(false))
        })
    }

    /// Whether there may be no members but those it names letter by letter. What it says nothing about counts as no.
    pub(crate) fn names_all(&self) -> bool {
        !self.all.iter().any(|keywords| {
            let rest = keywords.get("additionalProperties");
            let is_open = rest.is_some_and(|rest| *rest != Value::Bool(false));
            is_open || keywords.contains_key("patternProperties")
        })
    }

    /// Whether it names a member `key` letter by letter.
    pub(crate) fn spells(&self, key: &str) -> bool {
        self.properties().any(|(name, _)| name == key)
    }

    /// The schemas of the item at `index`; none if anything goes.
    pub(crate) fn item(&self, index: usize) -> Vec<&'s Value> {
        let item = |keywords: &&'s Keywords| {
            let of = |name: &str| keywords.get(name);
            match (of("prefixItems"), of("items")) {
                (Some(Value::Array(first)), rest) => first.get(index).or(rest),
                (_, Some(Value::Array(first))) => {
                    first.get(index).or_else(|| of("additionalItems"))
                }
                (_, items) => items,
            }
        };
        self.all.iter().filter_map(item).collect()
    }

    /// The members it names, in order; a name may come more than once.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&'s str, &'s Value)> {
        self.all
            .iter()
            .filter_map(|keywords| keywords.get("properties")?.as_object())
            .flat_map(|members| members.iter().map(|(name, schema)| (name.as_str(), schema)))
    }

    /// The members it demands.
    pub(crate) fn required(&self) -> impl Iterator<Item = &'s str> {
        self.all
            .iter()
            .filter_map(|keywords| keywords.get("required")?.as_array())
            .flat_map(|names| names.iter().filter_map(Value::as_str))
    }
}

/// Adds the schemas of a member that `properties` or `patternProperties` name. A pattern that is not understood
/// counts as one that matches.
fn named<'s>(keywords: &'s Keywords, key: &str, found: &mut Vec<&'s Value>) {
    let members = |name: &str| keywords.get(name).and_then(Value::as_object);
    found.extend(members("properties").and_then(|members| members.get(key)));
    for (pattern, schema) in members("patternProperties").into_iter().flatten() {
        if matches(pattern, key) != Verdict::No {
            found.push(schema);
        }
    }
}
