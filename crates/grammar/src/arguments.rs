//! The arguments of a block call: pointer lines in declared order (`spec/grammar.md` 4).

use crate::keywords;
use crate::pattern::Pattern;
use crate::schema_values::SchemaValues;
use crate::text::{Location, Strings};
use plaincall_names::pointers::escape;
use plaincall_tool::pointer::is_index;
use plaincall_tool::pointer::unusable_key;
use plaincall_tool::schema::{AllowedValues, Alternative, Kinds};

/// Longer lists are written as JSON.
const MOST_ITEMS: usize = 8;
/// Deeper values are written as JSON.
const DEEPEST: usize = 6;
/// Objects with more optional members and no required one are written as JSON.
const MOST_OPTIONAL: usize = 12;
/// The maximum number of parts of such an object, in all its copies.
const MOST_COPIED: usize = 1000;
/// The longest pointer. The parser accepts longer ones.
const LONGEST_POINTER: usize = 1024;

/// Pointer lines with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    Argument {
        pointer: String,
        value: ArgumentValue,
    },
    /// Parts in order, and whether each is required.
    Sequence(Vec<(bool, Self)>),
    Choice(Vec<Self>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentValue {
    /// Any text.
    Text,
    /// The text with this index.
    Limited(usize),
    Pattern(Pattern),
}

impl Lines {
    /// Returns the number of its parts.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Argument { value, .. } => match value {
                ArgumentValue::Text | ArgumentValue::Limited(_) => 2,
                ArgumentValue::Pattern(pattern) => 1 + pattern.size(),
            },
            Self::Sequence(parts) => parts.iter().map(|(_, part)| part.size()).sum(),
            Self::Choice(options) => options.iter().map(Self::size).sum(),
        }
    }

    /// Visits each pointer and its value.
    pub(crate) fn arguments<'l>(&'l self, visit: &mut dyn FnMut(&'l str, &'l ArgumentValue)) {
        match self {
            Self::Argument { pointer, value } => visit(pointer, value),
            Self::Sequence(parts) => parts.iter().for_each(|(_, part)| part.arguments(visit)),
            Self::Choice(options) => options.iter().for_each(|option| option.arguments(visit)),
        }
    }

    fn choice(mut options: Vec<Self>) -> Option<Self> {
        match options.len() {
            0 | 1 => options.pop(),
            _ => Some(Self::Choice(options)),
        }
    }
}

/// The location of a value.
struct Place<'p> {
    pointer: &'p str,
    depth: usize,
    is_in_list: bool,
    /// The alternatives on the way here.
    trail: &'p [Vec<usize>],
}

impl<'s> SchemaValues<'_, 's> {
    /// Returns the arguments of the tool; `None` if no call can be valid.
    pub(crate) fn arguments(&mut self) -> Option<Lines> {
        let root = self.reader.root();
        let place = Place {
            pointer: "",
            depth: 0,
            is_in_list: false,
            trail: &[],
        };
        let objects = root.only(Kinds::OBJECT).alternatives;
        let mut options = Vec::new();
        for alternative in &objects {
            self.report_keywords("", alternative);
            if keywords::listed(alternative).is_some() {
                self.report("", "enum");
            }
            options.extend(self.members(&place, alternative).map(Lines::Sequence));
        }
        Lines::choice(options)
    }

    fn value(&mut self, place: &Place<'_>, allowed: &AllowedValues<'s>) -> Option<Lines> {
        if self.is_too_large() {
            return None;
        }
        self.lines_left = self.lines_left.saturating_sub(1);
        let mut text = false;
        let mut strings: Vec<&Alternative<'s>> = Vec::new();
        let mut patterns: Vec<Pattern> = Vec::new();
        let mut options: Vec<Lines> = Vec::new();
        // Beside a string, JSON is text.
        let may_be_json = !allowed.kinds().has(Kinds::STRING);
        for alternative in &allowed.alternatives {
            self.report_keywords(place.pointer, alternative);
            let kinds = alternative.kinds().unwrap_or(Kinds::ALL);
            let is_listed = keywords::listed(alternative).is_some();
            if is_listed && self.has_too_many(place.pointer, alternative) {
                text = true;
                continue;
            }
            if !is_listed && kinds.has(Kinds::STRING) {
                strings.push(alternative);
            }
            patterns.extend(self.scalars(place.pointer, alternative, allowed));
            if is_listed || alternative.kinds().is_none() {
                continue;
            }
            if kinds.has(Kinds::OBJECT) {
                match self.object(place, alternative, kinds) {
                    Some(lines) => options.push(lines),
                    None if may_be_json => {
                        patterns.extend(self.json_parts(place.pointer, alternative, Kinds::OBJECT));
                    }
                    None => {}
                }
                let has_no_required = keywords::members(alternative)
                    .iter()
                    .all(|(_, is_required)| !is_required);
                if may_be_json && has_no_required {
                    patterns.push(Pattern::literal("{}"));
                }
            }
            if kinds.has(Kinds::LIST) {
                options.extend(self.list(place, alternative));
                if may_be_json {
                    patterns.extend(self.json_list(place.pointer, alternative));
                }
            }
        }
        let kinds = allowed.kinds();
        let found = self.strings(place.pointer, &strings, &Location::Value, &patterns, kinds);
        text |= !strings.is_empty() && matches!(found, Strings::Any);
        let value = match found {
            _ if text => Some(ArgumentValue::Text),
            Strings::Limited(text) => Some(ArgumentValue::Limited(text)),
            _ if patterns.is_empty() => None,
            _ => Some(ArgumentValue::Pattern(Pattern::choice(patterns))),
        };
        if let Some(ArgumentValue::Pattern(value)) = &value {
            self.lines_size = self.lines_size.saturating_add(value.size());
        }
        for alternative in &allowed.alternatives {
            self.note(place.pointer, alternative);
        }
        let pointer = place.pointer.to_owned();
        let argument = value.map(|value| Lines::Argument { pointer, value });
        Lines::choice(argument.into_iter().chain(options).collect())
    }

    /// Returns an object by its members; `None` if only JSON expresses it.
    fn object(
        &mut self,
        place: &Place<'_>,
        alternative: &Alternative<'s>,
        kinds: Kinds,
    ) -> Option<Lines> {
        let names = keywords::members(alternative);
        let is_recursive = place.trail.contains(&keywords::identity(alternative));
        let looks_like_a_list = || names.iter().any(|(name, _)| is_index(name));
        if names.is_empty()
            || self.lines_left == 0
            || is_recursive
            || place.depth >= DEEPEST
            || (kinds.has(Kinds::LIST) && looks_like_a_list())
        {
            return None;
        }
        let members = self.members(place, alternative)?;
        if members.iter().any(|(is_required, _)| *is_required) {
            return Some(Lines::Sequence(members));
        }
        let size: usize = members.iter().map(|(_, part)| part.size()).sum();
        if members.is_empty() || members.len() > MOST_OPTIONAL || members.len() * size > MOST_COPIED
        {
            return None;
        }
        // At least one member makes the object: each in turn is the first.
        let firsts = (0..members.len()).filter_map(|first| {
            let (_, part) = members.get(first)?;
            let rest = members.get(first + 1..)?.iter().cloned();
            let parts = [(true, part.clone())].into_iter().chain(rest);
            Some(Lines::Sequence(parts.collect()))
        });
        Lines::choice(firsts.collect())
    }

    /// Returns the members in order; `None` if a required one cannot be expressed.
    fn members(
        &mut self,
        place: &Place<'_>,
        alternative: &Alternative<'s>,
    ) -> Option<Vec<(bool, Lines)>> {
        let mut trail = place.trail.to_vec();
        trail.push(keywords::identity(alternative));
        let mut members = Vec::new();
        for (name, is_required) in keywords::members(alternative) {
            let pointer = match place.pointer {
                "" => escape(name).into_owned(),
                above => format!("{above}/{}", escape(name)),
            };
            let below = Place {
                pointer: &pointer,
                depth: place.depth + 1,
                is_in_list: place.is_in_list,
                trail: &trail,
            };
            let allowed = self.member(alternative, name);
            let is_usable = unusable_key(name).is_none()
                && pointer.len() <= LONGEST_POINTER
                && self.may_be_written(&pointer);
            let lines = Some(allowed).filter(|_| is_usable);
            let lines = lines.and_then(|allowed| self.value(&below, &allowed));
            match lines {
                Some(lines) => members.push((is_required, lines)),
                None if is_required => return None,
                None => {}
            }
        }
        Some(members)
    }

    /// Returns a non-empty list by its items; `None` if only JSON expresses it.
    fn list(&mut self, place: &Place<'_>, alternative: &Alternative<'s>) -> Option<Lines> {
        if place.is_in_list || place.depth >= DEEPEST || self.lines_left == 0 {
            return None;
        }
        let (least, most) = self.bounds(place.pointer, alternative)?;
        let most = most.map_or(MOST_ITEMS, |most| most.min(MOST_ITEMS));
        if least > most {
            return None;
        }
        let one = alternative.clone();
        let list = AllowedValues {
            alternatives: vec![one],
        };
        let mut items = Vec::new();
        let first = keywords::first_items(alternative);
        for index in 0..most {
            let pointer = format!("{}/{index}", place.pointer);
            let below = Place {
                pointer: &pointer,
                depth: place.depth + 1,
                is_in_list: true,
                trail: place.trail,
            };
            let allowed = self.reader.item(&list, index);
            if index > first {
                self.repeated = Some((pointer.clone(), format!("{}/{first}", place.pointer)));
            }
            match self.value(&below, &allowed) {
                Some(item) => items.push(item),
                None => break,
            }
        }
        self.repeated = None;
        if items.len() < least {
            return None;
        }
        // From the last item to the first: each item requires the one before.
        let mut lines: Option<Lines> = None;
        for (index, item) in items.into_iter().enumerate().rev() {
            let rest = lines.map(|rest| (index + 1 < least, rest));
            let parts = [(true, item)].into_iter().chain(rest);
            lines = Some(Lines::Sequence(parts.collect()));
        }
        lines
    }
}
