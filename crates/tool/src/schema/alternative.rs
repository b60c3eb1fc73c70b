//! One alternative of the values that a schema allows.

use serde_json::Value;

use super::key_pattern::{Verdict, matches};
use super::keywords::{Keywords, keyword};
use super::kinds::Kinds;

/// With more ways to match a key against patterns, any value is allowed.
const MOST_WAYS: usize = 16;
/// So many patterns of which it is not known whether they match have this many ways.
const MOST_UNSURE: usize = 4;
/// The match of a key takes as long as this many comparisons of schemas, and one for each byte of the pattern.
const PATTERN: usize = 16;

/// Schemas that all apply, with `$ref`, `allOf`, `anyOf` and `oneOf` already resolved.
#[derive(Clone, Debug, Default)]
pub struct Alternative<'s> {
    pub all: Vec<&'s Keywords>,
}

impl<'s> Alternative<'s> {
    pub fn is_same(&self, other: &Self) -> bool {
        self.all.len() == other.all.len()
            && self
                .all
                .iter()
                .zip(&other.all)
                .all(|(one, two)| std::ptr::eq(*one, *two))
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut all = self.all.clone();
        for keywords in &other.all {
            if !all.iter().any(|known| std::ptr::eq(*known, *keywords)) {
                all.push(keywords);
            }
        }
        Self { all }
    }

    pub fn kinds(&self) -> Option<Kinds> {
        let by = |kinds: fn(&Keywords) -> Option<Kinds>| {
            self.all
                .iter()
                .filter_map(|keywords| kinds(keywords))
                .reduce(|one, other| one & other)
        };
        by(Kinds::stated).or_else(|| by(Kinds::implied))
    }

    /// Returns how many comparisons a step into a value takes. A pattern takes longer than a name.
    pub(crate) fn comparisons(&self) -> usize {
        let patterns = |keywords: &&Keywords| {
            let patterns = keyword(keywords, "patternProperties").and_then(Value::as_object);
            let patterns = patterns.into_iter().flat_map(Keywords::keys);
            1 + patterns.map(|one| PATTERN + one.len()).sum::<usize>()
        };
        self.all.iter().map(patterns).sum()
    }

    /// Returns `true` if any string is allowed, according to the keywords for reading.
    pub(crate) fn takes_any_text(&self) -> bool {
        let bounds = ["enum", "const", "minLength", "maxLength"];
        let is_bound =
            |keywords: &&Keywords| bounds.iter().any(|one| keyword(keywords, one).is_some());
        self.kinds().is_some_and(|kinds| kinds.has(Kinds::STRING)) && !self.all.iter().any(is_bound)
    }

    /// Returns `true` if the allowed values are listed.
    pub(crate) fn is_listed(&self) -> bool {
        let lists = |name| move |keywords: &&Keywords| keyword(keywords, name).is_some();
        self.all.iter().any(lists("enum")) || self.all.iter().any(lists("const"))
    }

    pub(crate) fn allows(&self, kinds: Kinds) -> bool {
        self.kinds().unwrap_or(Kinds::ALL).has_any(kinds)
    }

    /// Returns the schemas of the member `key`; none if any value is allowed. There are several ways if it is not known
    /// whether a pattern matches.
    pub(crate) fn member(&self, key: &str) -> Vec<Vec<&'s Value>> {
        let mut ways: Vec<Vec<&'s Value>> = vec![Vec::new()];
        for keywords in &self.all {
            let (mut sure, unsure) = named(keywords, key);
            let rest = keyword(keywords, "additionalProperties");
            if unsure.is_empty() {
                if sure.is_empty() {
                    sure.extend(rest);
                }
                for way in &mut ways {
                    way.extend(&sure);
                }
                continue;
            }
            let mut here = vec![sure];
            if unsure.len() > MOST_UNSURE {
                return vec![Vec::new()];
            }
            for schema in unsure {
                let with = |way: &Vec<&'s Value>| way.iter().copied().chain([schema]).collect();
                let with: Vec<Vec<&'s Value>> = here.iter().map(with).collect();
                here.extend(with);
            }
            if let Some(rest) = rest {
                let unnamed = here.iter_mut().filter(|way| way.is_empty());
                unnamed.for_each(|way| way.push(rest));
            }
            if here.len() * ways.len() > MOST_WAYS {
                return vec![Vec::new()];
            }
            let with_all = |way: &Vec<&'s Value>| {
                let way = way.clone();
                here.iter().map(move |more| [&*way, more].concat())
            };
            ways = ways.iter().flat_map(with_all).collect();
        }
        let rest = |keywords: &&'s Keywords| keyword(keywords, "unevaluatedProperties");
        let rest: Vec<&'s Value> = self.all.iter().filter_map(rest).collect();
        for way in ways.iter_mut().filter(|way| way.is_empty()) {
            way.extend(&rest);
        }
        ways
    }

    /// Returns `true` if it allows a member `key` explicitly.
    pub(crate) fn declares(&self, key: &str) -> bool {
        self.all.iter().any(|keywords| {
            let (sure, unsure) = named(keywords, key);
            let rest = keyword(keywords, "additionalProperties");
            !sure.is_empty()
                || !unsure.is_empty()
                || rest.is_some_and(|rest| *rest != Value::Bool(false))
        })
    }

    /// Returns `true` if only members with literal names are allowed. Missing keywords count as a no.
    pub(crate) fn names_all(&self) -> bool {
        !self.all.iter().any(|keywords| {
            let rest = keyword(keywords, "additionalProperties");
            let is_open = rest.is_some_and(|rest| *rest != Value::Bool(false));
            is_open || keyword(keywords, "patternProperties").is_some()
        })
    }

    /// Returns `true` if it names members of an object.
    pub(crate) fn describes_object(&self) -> bool {
        let names_member = self.properties().next().is_some() || self.required().next().is_some();
        names_member && self.allows(Kinds::OBJECT)
    }

    pub(crate) fn spells(&self, key: &str) -> bool {
        self.properties().any(|(name, _)| name == key)
    }

    /// Returns the schemas of the item at `index`; none if any value is allowed.
    pub(crate) fn item(&self, index: usize) -> Vec<Vec<&'s Value>> {
        let item = |keywords: &&'s Keywords| {
            let of = |name: &str| keyword(keywords, name);
            match (of("prefixItems"), of("items")) {
                (Some(Value::Array(first)), rest) => first.get(index).or(rest),
                (_, Some(Value::Array(first))) => {
                    first.get(index).or_else(|| of("additionalItems"))
                }
                (_, items) => items,
            }
        };
        vec![self.all.iter().filter_map(item).collect()]
    }

    /// Returns the smallest count that a keyword states.
    pub(crate) fn least(&self, name: &str) -> Option<usize> {
        let stated =
            |keywords: &&Keywords| usize::try_from(keyword(keywords, name)?.as_u64()?).ok();
        self.all.iter().filter_map(stated).min()
    }

    /// Returns the named members, in order; a name may appear more than once.
    pub fn properties(&self) -> impl Iterator<Item = (&'s str, &'s Value)> {
        self.all
            .iter()
            .filter_map(|keywords| keyword(keywords, "properties")?.as_object())
            .flat_map(|members| members.iter().map(|(name, schema)| (name.as_str(), schema)))
    }

    pub fn required(&self) -> impl Iterator<Item = &'s str> {
        self.all
            .iter()
            .filter_map(|keywords| keyword(keywords, "required")?.as_array())
            .flat_map(|names| names.iter().filter_map(Value::as_str))
    }
}

/// Returns the schemas of a member that `properties` or `patternProperties` name, and those of patterns that may match
/// it.
fn named<'s>(keywords: &'s Keywords, key: &str) -> (Vec<&'s Value>, Vec<&'s Value>) {
    let members = |name: &str| keyword(keywords, name).and_then(Value::as_object);
    let spelled = members("properties").and_then(|members| keyword(members, key));
    let (mut sure, mut unsure) = (Vec::from_iter(spelled), Vec::new());
    for (pattern, schema) in members("patternProperties").into_iter().flatten() {
        match matches(pattern, key) {
            Verdict::Yes => sure.push(schema),
            Verdict::Unknown => unsure.push(schema),
            Verdict::No => {}
        }
    }
    (sure, unsure)
}
