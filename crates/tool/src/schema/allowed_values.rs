//! The values that a schema allows at one location in the arguments.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::LazyLock;

use serde_json::Value;

use super::alternative::Alternative;
use super::keywords::{Keywords, keyword};
use super::kinds::Kinds;
use super::resolve::resolve;
use crate::pointer::{is_index, unescape};

/// With more alternatives at one location, any value is allowed.
const MOST_ALTERNATIVES: usize = 256;
/// With schemas nested more deeply without a step into the value, any value is allowed.
const DEEPEST: usize = 64;
/// The maximum number of schemas visited for one call. After that, any value is allowed.
const MOST_STEPS: u32 = 500_000;
/// With more schemas visited for one location, any value is allowed.
const MOST_STEPS_AT_ONE_LOCATION: u32 = 10_000;

/// A visit of a schema takes as long as this many comparisons of schemas.
const COMPARISONS: usize = 8;

/// The comparisons to find a schema by its name, usually.
const NAME: usize = 1000;

/// The type that `nullable` of `OpenAPI` adds.
static NULL: LazyLock<Keywords> =
    LazyLock::new(|| Keywords::from_iter([("const".to_owned(), Value::Null)]));

/// Reads a schema within a limit of work.
#[derive(Debug)]
pub struct SchemaReader<'s> {
    root: &'s Value,
    /// The steps that are left, and how many are left at the end of the current location.
    steps: Cell<u32>,
    end: Cell<u32>,
}

/// The allowed values at a location: those of any of the alternatives. Without alternatives, none.
#[derive(Clone, Debug)]
pub struct AllowedValues<'s> {
    pub alternatives: Vec<Alternative<'s>>,
}

/// A schema that is being read, and those that led to it.
struct Trail<'t, 's> {
    schema: &'s Value,
    above: Option<&'t Self>,
    /// The number of these schemas.
    depth: usize,
}

/// The reason to stop: a schema refers to itself without a step into the value, or the limit of work is reached.
enum Stop {
    Cycle,
    TooMuch,
}

impl<'s> AllowedValues<'s> {
    fn open() -> Self {
        Self {
            alternatives: vec![Alternative::default()],
        }
    }

    /// Returns the allowed types: all if an alternative does not restrict them.
    pub fn kinds(&self) -> Kinds {
        self.alternatives
            .iter()
            .map(|alternative| alternative.kinds().unwrap_or(Kinds::ALL))
            .fold(Kinds::NONE, |all, one| all | one)
    }

    /// Returns `true` if the types are not restricted.
    pub(crate) fn is_open(&self) -> bool {
        self.alternatives
            .iter()
            .any(|alternative| alternative.kinds().is_none())
    }

    pub fn only(&self, kinds: Kinds) -> Self {
        let alternatives = self.alternatives.iter().filter(|one| one.allows(kinds));
        Self {
            alternatives: alternatives.cloned().collect(),
        }
    }

    /// Returns the union with another location, and whether both are equal.
    pub(crate) fn or(mut self, other: Self) -> (Self, bool) {
        let is_known = |one: &Self, below: &Alternative<'s>| {
            one.alternatives.iter().any(|known| known.is_same(below))
        };
        let is_same = self.alternatives.len() == other.alternatives.len()
            && self
                .alternatives
                .iter()
                .all(|known| is_known(&other, known));
        for below in other.alternatives {
            if !is_known(&self, &below) {
                self.alternatives.push(below);
            }
        }
        (self, is_same)
    }

    /// Returns the alternatives that restrict the types.
    pub(crate) fn stated(&self) -> Cow<'_, Self> {
        if !self.is_open() {
            return Cow::Borrowed(self);
        }
        let stated = |alternative: &&Alternative<'s>| alternative.kinds().is_some();
        Cow::Owned(Self {
            alternatives: self.alternatives.iter().filter(stated).cloned().collect(),
        })
    }

    /// Returns `true` if any string is allowed, according to the keywords for reading.
    pub(crate) fn takes_any_text(&self) -> bool {
        self.alternatives.iter().any(Alternative::takes_any_text)
    }

    /// Returns `true` if a segment that looks like an index is a key here.
    pub(crate) fn has_keys_only(&self) -> bool {
        let kinds = self.kinds();
        kinds.has(Kinds::OBJECT) && !kinds.has(Kinds::LIST)
    }

    /// Returns `true` if an alternative requires an object and excludes a list, so that such segments may be keys.
    pub(crate) fn states_keys(&self) -> bool {
        let mut stated = self.alternatives.iter().filter_map(Alternative::kinds);
        stated.any(|kinds| kinds.has(Kinds::OBJECT) && !kinds.has(Kinds::LIST))
    }

    /// Returns `true` if such segments are keys rather than indices: an alternative requires an object, and none a
    /// list.
    pub(crate) fn prefers_keys(&self) -> bool {
        let kinds = self.stated_kinds();
        kinds.has(Kinds::OBJECT) && !kinds.has(Kinds::LIST)
    }

    fn stated_kinds(&self) -> Kinds {
        let stated = self.alternatives.iter().filter_map(Alternative::kinds);
        stated.fold(Kinds::NONE, |all, one| all | one)
    }

    pub fn properties(&self) -> impl Iterator<Item = (&'s str, &'s Value)> {
        self.alternatives.iter().flat_map(Alternative::properties)
    }

    pub fn required_always(&self) -> impl Iterator<Item = &'s str> {
        let (first, others) = match self.alternatives.split_first() {
            Some((first, others)) => (Some(first), others),
            None => (None, &[][..]),
        };
        let first = first.into_iter().flat_map(Alternative::required);
        first.filter(move |name| {
            let demands = |other: &Alternative<'_>| other.required().any(|one| one == *name);
            others.iter().all(demands)
        })
    }

    /// Returns the first value of a keyword without constraints.
    pub fn annotation(&self, keyword: &str) -> Option<&'s Value> {
        self.alternatives
            .iter()
            .flat_map(|alternative| &alternative.all)
            .find_map(|keywords| keywords.get(keyword))
    }

    pub fn is_listed(&self) -> bool {
        !self.alternatives.is_empty() && self.alternatives.iter().all(Alternative::is_listed)
    }

    pub fn declares(&self, key: &str) -> bool {
        self.alternatives.iter().any(|one| one.declares(key))
    }

    pub(crate) fn spells(&self, key: &str) -> bool {
        self.alternatives.iter().any(|one| one.spells(key))
    }
}

impl<'s> SchemaReader<'s> {
    pub(crate) fn new(root: &'s Value) -> Self {
        Self {
            root,
            steps: Cell::new(MOST_STEPS),
            end: Cell::new(0),
        }
    }

    pub fn root(&self) -> AllowedValues<'s> {
        self.allowed([self.root])
    }

    pub fn member(&self, allowed: &AllowedValues<'s>, key: &str) -> AllowedValues<'s> {
        self.below(allowed, |alternative| self.ways(alternative, key))
    }

    /// Returns the schemas of a member ([`Alternative::member`]); any value if the limit of work is reached.
    pub(super) fn ways(&self, alternative: &Alternative<'s>, key: &str) -> Vec<Vec<&'s Value>> {
        self.charge(alternative.comparisons());
        if self.has_no_steps() {
            return vec![Vec::new()];
        }
        alternative.member(key)
    }

    pub fn item(&self, allowed: &AllowedValues<'s>, index: usize) -> AllowedValues<'s> {
        self.below(allowed, |alternative| alternative.item(index))
    }

    /// Returns the values allowed at a pointer.
    pub(crate) fn at(&self, pointer: &str) -> AllowedValues<'s> {
        let segments = pointer.split('/').map(unescape);
        segments.fold(self.root(), |allowed, segment| {
            self.under(&allowed, &segment)
        })
    }

    /// Returns the values allowed under a segment that is a key, an index, or either.
    pub fn under(&self, allowed: &AllowedValues<'s>, segment: &str) -> AllowedValues<'s> {
        if allowed.has_keys_only() || !is_index(segment) {
            return self.member(allowed, segment);
        }
        let item = self.item(allowed, segment.parse().unwrap_or(usize::MAX));
        if allowed.states_keys() {
            item.or(self.member(&allowed.only(Kinds::OBJECT), segment))
                .0
        } else {
            item
        }
    }

    fn below(
        &self,
        allowed: &AllowedValues<'s>,
        step: impl Fn(&Alternative<'s>) -> Vec<Vec<&'s Value>>,
    ) -> AllowedValues<'s> {
        let mut found: Vec<Alternative<'s>> = Vec::new();
        for alternative in &allowed.alternatives {
            let ways = step(alternative).into_iter();
            for below in ways.flat_map(|schemas| self.allowed(schemas).alternatives) {
                self.charge(found.len());
                if !found.iter().any(|known| known.is_same(&below)) {
                    found.push(below);
                }
            }
            if found.len() > MOST_ALTERNATIVES {
                return AllowedValues::open();
            }
        }
        AllowedValues {
            alternatives: found,
        }
    }

    pub(crate) fn allowed(
        &self,
        schemas: impl IntoIterator<Item = &'s Value>,
    ) -> AllowedValues<'s> {
        let mut alternatives = None;
        self.end
            .set(self.steps.get().saturating_sub(MOST_STEPS_AT_ONE_LOCATION));
        for schema in schemas {
            let found = self.alternatives(schema, None);
            match found.and_then(|found| self.both(alternatives.as_deref(), found)) {
                Ok(found) => alternatives = Some(found),
                Err(Stop::Cycle) => {}
                Err(Stop::TooMuch) => return AllowedValues::open(),
            }
        }
        alternatives.map_or_else(AllowedValues::open, |alternatives| AllowedValues {
            alternatives,
        })
    }

    /// Counts a step of work; returns `false` when the limit is reached.
    pub(crate) fn step(&self) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0
    }

    /// Counts comparisons, which are shorter than visits.
    fn charge(&self, comparisons: usize) {
        let steps = u32::try_from(comparisons / COMPARISONS).unwrap_or(u32::MAX);
        self.steps.set(self.steps.get().saturating_sub(steps));
    }

    /// Returns `true` if the limit of work is reached, so that any value is allowed.
    pub fn has_no_steps(&self) -> bool {
        self.steps.get() == 0
    }

    /// Returns the number of steps that it took.
    pub(crate) fn steps_taken(&self) -> usize {
        usize::try_from(MOST_STEPS - self.steps.get()).unwrap_or(usize::MAX)
    }

    /// Returns the alternatives of one schema. Recurses at most `DEEPEST` levels.
    fn alternatives(
        &self,
        schema: &'s Value,
        above: Option<&Trail<'_, 's>>,
    ) -> Result<Vec<Alternative<'s>>, Stop> {
        let depth = above.map_or(0, |above| above.depth);
        if depth >= DEEPEST || !self.step() || self.steps.get() < self.end.get() {
            return Err(Stop::TooMuch);
        }
        let keywords = match schema {
            Value::Bool(false) => return Ok(Vec::new()),
            Value::Object(keywords) => keywords,
            _ => return Ok(vec![Alternative::default()]),
        };
        let mut trail = std::iter::successors(above, |trail| trail.above);
        if trail.any(|known| std::ptr::eq(known.schema, schema)) {
            return Err(Stop::Cycle);
        }
        let depth = depth + 1;
        let trail = Trail {
            schema,
            above,
            depth,
        };
        self.combined(keywords, &trail)
    }

    fn combined(
        &self,
        keywords: &'s Keywords,
        trail: &Trail<'_, 's>,
    ) -> Result<Vec<Alternative<'s>>, Stop> {
        let mut found = vec![Alternative {
            all: vec![keywords],
        }];
        let list = |name: &str| keyword(keywords, name).and_then(Value::as_array);
        let target = keyword(keywords, "$ref")
            .and_then(Value::as_str)
            .and_then(|reference| {
                let is_pointer = reference.starts_with("#/") || reference == "#";
                self.charge(if is_pointer { 0 } else { NAME });
                resolve(self.root, reference)
            });
        for schema in target
            .into_iter()
            .chain(list("allOf").into_iter().flatten())
        {
            match self.alternatives(schema, Some(trail)) {
                Ok(more) => found = self.both(Some(&found), more)?,
                Err(Stop::Cycle) => {}
                Err(Stop::TooMuch) => return Err(Stop::TooMuch),
            }
        }
        for members in ["anyOf", "oneOf"].into_iter().filter_map(list) {
            let mut any = Vec::new();
            let mut is_cycle = members.is_empty();
            for member in members {
                match self.alternatives(member, Some(trail)) {
                    Ok(more) => any.extend(more),
                    // It is allowed if another member allows it, so it adds nothing.
                    Err(Stop::Cycle) => is_cycle = true,
                    Err(Stop::TooMuch) => return Err(Stop::TooMuch),
                }
            }
            if !any.is_empty() || !is_cycle {
                found = self.both(Some(&found), any)?;
            }
        }
        if keyword(keywords, "nullable") == Some(&Value::Bool(true)) {
            found.push(Alternative { all: vec![&NULL] });
        }
        Ok(found)
    }

    fn both(
        &self,
        one: Option<&[Alternative<'s>]>,
        two: Vec<Alternative<'s>>,
    ) -> Result<Vec<Alternative<'s>>, Stop> {
        let count = one.map_or(1, <[_]>::len);
        if count.saturating_mul(two.len()) > MOST_ALTERNATIVES {
            return Err(Stop::TooMuch);
        }
        let Some(one) = one else {
            return Ok(two);
        };
        let schemas = |all: &[Alternative<'s>]| all.iter().map(|one| one.all.len()).sum::<usize>();
        self.charge(schemas(one).saturating_mul(schemas(&two)));
        let with_all = |first: &Alternative<'s>| {
            let first = first.clone();
            two.iter().map(move |second| first.and(second))
        };
        Ok(one.iter().flat_map(with_all).collect())
    }
}
