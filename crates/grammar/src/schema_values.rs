//! The values that a schema allows at one location, as patterns: scalars as texts, and any value as JSON.

use std::collections::HashMap;

use indexmap::IndexSet;
use serde_json::Value;

use crate::automaton::Automaton;
use crate::keywords;
use crate::pattern::Pattern;
use crate::text::{Location, Strings, Texts};
use crate::unheld::Unheld;
use plaincall_tool::decimal::scalar_text;
use plaincall_tool::schema::{AllowedValues, Alternative, Kinds, SchemaReader};

/// The maximum size of all calls and rules, in parts. An engine needs seconds for more.
pub(crate) const MOST_PARTS: usize = 100_000;
/// With more listed values, any text is possible. Engines compare all of them at each token.
const MOST_LISTED: usize = 1000;
/// Deeper values in JSON are any JSON.
const DEEPEST_JSON: usize = 48;
/// The largest count of a repetition. llama.cpp writes each repetition out.
const MOST_REPEATED: usize = 200;
/// The maximum number of steps to report keywords of schemas that are used again.
const MOST_STEPS: usize = 2_000_000;

/// The rules that patterns refer to, and what the grammar cannot enforce.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) all: Vec<Pattern>,
    pub(crate) texts: Texts,
    pub(crate) unheld: IndexSet<Unheld>,
    any_json: Option<usize>,
    /// The number of parts of all rules.
    size: usize,
    /// The steps that are left to report keywords again.
    steps_left: usize,
}

impl Rules {
    pub(crate) fn new(texts: Texts) -> Self {
        Self {
            all: Vec::new(),
            texts,
            unheld: IndexSet::new(),
            any_json: None,
            size: 0,
            steps_left: MOST_STEPS,
        }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    fn add(&mut self) -> usize {
        self.all.push(Pattern::Choice(Vec::new()));
        self.all.len() - 1
    }

    fn set(&mut self, rule: usize, pattern: Pattern) {
        self.size = self.size.saturating_add(pattern.size());
        if let Some(place) = self.all.get_mut(rule) {
            *place = pattern;
        }
    }

    /// Any JSON value, without white space except a space after a comma or colon.
    fn any_json(&mut self) -> Pattern {
        if let Some(rule) = self.any_json {
            return Pattern::Rule(rule);
        }
        let rule = self.add();
        self.any_json = Some(rule);
        let value = || Pattern::Rule(rule);
        let scalars = [
            Pattern::literal("null"),
            Pattern::literal("true"),
            Pattern::literal("false"),
            number(true),
            self.texts.json_string(),
        ];
        let key = self.texts.json_string();
        let parts = [list_of(value(), 0, None), map_of(key, value())];
        self.set(rule, Pattern::choice(scalars.into_iter().chain(parts)));
        value()
    }
}

/// Reads one tool's schema.
pub(crate) struct SchemaValues<'v, 's> {
    pub(crate) reader: &'v SchemaReader<'s>,
    pub(crate) tool: &'v str,
    pub(crate) rules: &'v mut Rules,
    /// Accepts the texts that a value may be.
    pub(crate) free_text: &'v Automaton,
    /// The rule of each alternative that was written as JSON, and where.
    pub(crate) known: HashMap<(Vec<usize>, Kinds), (usize, String)>,
    /// The depth of the JSON value that is being written.
    pub(crate) json_depth: usize,
    /// The pointers of the current item of a list, and of the first with the same schema, at which its keywords are reported.
    pub(crate) repeated: Option<(String, String)>,
    /// How many more pointer lines the tool may have. Then objects and lists are JSON.
    pub(crate) lines_left: usize,
    /// The number of parts of its pointer lines so far.
    pub(crate) lines_size: usize,
    /// The pointer and a keyword of the first value with which the grammar is too large.
    pub(crate) culprit: Option<(String, &'static str)>,
    /// Whether ` /]` ends an emoji call.
    pub(crate) is_self_closing: bool,
    /// In an escaped dialect: the beginnings of escapes, which listed texts must not contain.
    pub(crate) escapes: &'v [String],
}

impl<'s> SchemaValues<'_, 's> {
    pub(crate) fn is_too_large(&self) -> bool {
        self.rules.size().saturating_add(self.lines_size) > MOST_PARTS || self.has_no_steps()
    }

    /// Returns `true` if the schemas take too many steps.
    pub(crate) fn has_no_steps(&self) -> bool {
        self.rules.steps_left == 0 || self.reader.has_no_steps()
    }

    /// Remembers the first value with which the grammar is too large.
    pub(crate) fn note(&mut self, pointer: &str, alternative: &Alternative<'s>) {
        if self.culprit.is_none() && self.is_too_large() {
            let pointer = pointer.trim_start_matches('/').to_owned();
            self.culprit = Some((pointer, keywords::largest(alternative)));
        }
    }

    /// Returns the texts of the scalars and of the listed values of an alternative at a location.
    pub(crate) fn scalars(
        &mut self,
        pointer: &str,
        alternative: &Alternative<'s>,
        allowed: &AllowedValues<'s>,
    ) -> Vec<Pattern> {
        if let Some(values) = self.listed(alternative) {
            let texts = values.into_iter().map(|value| self.text_of(value, allowed));
            let texts: Vec<Option<String>> = texts.collect();
            if texts.iter().any(Option::is_none) {
                self.report(pointer, "enum");
            }
            self.report_limits(pointer, alternative);
            return texts.into_iter().flatten().map(Pattern::literal).collect();
        }
        let kinds = alternative.kinds().unwrap_or(Kinds::ALL);
        scalars(kinds, alternative)
    }

    /// Returns the listed values that the other keywords allow too; `None` if no keyword lists values.
    fn listed(&self, alternative: &Alternative<'s>) -> Option<Vec<&'s Value>> {
        let mut values = keywords::listed(alternative)?;
        values.retain(|value| self.reader.is_fitting(alternative, value));
        Some(values)
    }

    /// Returns the text of a listed value, if it is read as this value and no text may not be.
    fn text_of(&self, value: &Value, allowed: &AllowedValues<'s>) -> Option<String> {
        let text = scalar_text(value).unwrap_or_else(|| value.to_string());
        let spelling = self.reader.spelling(allowed, &text);
        let is_same = spelling.type_error.is_none() && spelling.text_type.value(&text) == *value;
        (is_same && !text.ends_with('\r') && self.may_be_written(&text)).then_some(text)
    }

    /// Returns whether a text is read as it is written, and contains nothing that is excluded.
    pub(crate) fn may_be_written(&self, text: &str) -> bool {
        let is_escape = |escape: &String| text.contains(escape.as_str());
        self.free_text.accepts(text) && !self.escapes.iter().any(is_escape)
    }

    /// Returns the values as JSON on one line; `None` if there are none. Once the rules are too large, reads no further schemas.
    pub(crate) fn json(&mut self, pointer: &str, allowed: &AllowedValues<'s>) -> Option<Pattern> {
        if self.is_too_large() {
            return Some(self.rules.any_json());
        }
        let options = allowed.alternatives.iter();
        let options: Vec<Pattern> = options
            .filter_map(|alternative| {
                let written = self.json_alternative(pointer, alternative);
                self.note(pointer, alternative);
                written
            })
            .collect();
        (!options.is_empty()).then(|| Pattern::choice(options))
    }

    fn json_alternative(
        &mut self,
        pointer: &str,
        alternative: &Alternative<'s>,
    ) -> Option<Pattern> {
        self.report_keywords(pointer, alternative);
        if self.has_too_many(pointer, alternative) {
            return Some(self.rules.any_json());
        }
        if let Some(values) = self.listed(alternative) {
            let count = values.len();
            let texts = values.into_iter().map(Value::to_string);
            let texts = texts.filter(|text| self.may_be_written(text));
            let texts: Vec<Pattern> = texts.map(Pattern::literal).collect();
            if texts.len() < count {
                self.report(pointer, "enum");
            }
            self.report_limits(pointer, alternative);
            return (!texts.is_empty()).then(|| Pattern::choice(texts));
        }
        let Some(kinds) = alternative.kinds() else {
            self.report_limits(pointer, alternative);
            // Of its objects.
            self.report(pointer, "additionalProperties");
            return Some(self.rules.any_json());
        };
        let mut all = scalars(kinds, alternative);
        if kinds.has(Kinds::STRING) {
            match self.strings(pointer, &[alternative], &Location::Json, &[], kinds) {
                Strings::Any => all.push(self.rules.texts.json_string()),
                Strings::Limited(text) => all.push(Pattern::Text(text)),
                Strings::Impossible => {}
            }
        }
        all.extend(self.json_parts(pointer, alternative, kinds));
        (!all.is_empty()).then(|| Pattern::choice(all))
    }

    /// Returns the lists and objects of an alternative as JSON on one line.
    pub(crate) fn json_parts(
        &mut self,
        pointer: &str,
        alternative: &Alternative<'s>,
        kinds: Kinds,
    ) -> Option<Pattern> {
        if !kinds.has_any(Kinds::LIST | Kinds::OBJECT) {
            return None;
        }
        let key = (keywords::identity(alternative), kinds);
        if let Some((rule, first)) = self.known.get(&key).cloned() {
            self.report_again(&first, pointer);
            return Some(Pattern::Rule(rule));
        }
        if self.json_depth >= DEEPEST_JSON {
            self.report(pointer, "$ref");
            return Some(self.rules.any_json());
        }
        let rule = self.rules.add();
        self.known.insert(key, (rule, self.reported(pointer)));
        self.json_depth += 1;
        let mut options = Vec::new();
        if kinds.has(Kinds::LIST) {
            options.extend(self.json_list(pointer, alternative));
        }
        if kinds.has(Kinds::OBJECT) {
            options.extend(self.json_object(pointer, alternative));
        }
        self.json_depth -= 1;
        // A rule without texts cannot be part of a grammar: what needs it is omitted.
        let has_texts = !options.is_empty();
        self.rules.set(rule, Pattern::choice(options));
        has_texts.then_some(Pattern::Rule(rule))
    }

    pub(crate) fn json_list(
        &mut self,
        pointer: &str,
        alternative: &Alternative<'s>,
    ) -> Option<Pattern> {
        let (least, most) = self.bounds(pointer, alternative)?;
        let first = keywords::first_items(alternative);
        let one = alternative.clone();
        let list = AllowedValues {
            alternatives: vec![one],
        };
        let mut item = |index: usize| {
            let allowed = self.reader.item(&list, index);
            self.json(&format!("{pointer}/{index}"), &allowed)
        };
        let rest = match most {
            Some(most) if most <= first => None,
            _ => item(first),
        };
        if first == 0 {
            return match rest {
                Some(rest) => Some(list_of(rest, least, most)),
                None => (least == 0).then(|| Pattern::literal("[]")),
            };
        }
        let most_first = most.map_or(first, |most| most.min(first));
        let firsts: Vec<Pattern> = (0..most_first).map_while(item).collect();
        // The list ends before an impossible item.
        let is_cut = firsts.len() < most_first;
        let (most_first, rest) = (firsts.len(), rest.filter(|_| !is_cut));
        // From the last item to the first: what follows it.
        let more = most.map(|most| most - most_first);
        let mut tail = match rest {
            Some(rest) => {
                let needed = least.saturating_sub(most_first);
                Pattern::sequence([comma(), rest]).repeat(count(needed), more.map(count))
            }
            None if least > most_first => return None,
            None => Pattern::literal(""),
        };
        for (index, item) in firsts.into_iter().enumerate().rev() {
            let begin = (index > 0).then(comma);
            let here = Pattern::sequence(begin.into_iter().chain([item, tail]));
            tail = if index < least { here } else { here.optional() };
        }
        Some(Pattern::sequence([
            Pattern::literal("["),
            tail,
            Pattern::literal("]"),
        ]))
    }

    /// Returns the least and the greatest number of items that the grammar enforces; `None` if no list is possible.
    pub(crate) fn bounds(
        &mut self,
        pointer: &str,
        alternative: &Alternative<'s>,
    ) -> Option<(usize, Option<usize>)> {
        let (least, most) = keywords::bounds(alternative, "minItems", "maxItems")?;
        if least > MOST_REPEATED {
            self.report(pointer, "minItems");
        }
        if most.is_some_and(|most| most > MOST_REPEATED) {
            self.report(pointer, "maxItems");
        }
        Some((
            least.min(MOST_REPEATED),
            most.filter(|most| *most <= MOST_REPEATED),
        ))
    }

    fn json_object(&mut self, pointer: &str, alternative: &Alternative<'s>) -> Option<Pattern> {
        let names = keywords::members(alternative);
        if names.is_empty() {
            return Some(self.json_map(pointer, alternative));
        }
        let mut members: Vec<(bool, Pattern)> = Vec::new();
        for (name, is_required) in names {
            let below = format!("{pointer}/{}", plaincall_names::pointers::escape(name));
            let key = Value::from(name).to_string();
            let allowed = self.member(alternative, name);
            let value = Some(allowed).filter(|_| self.may_be_written(&key));
            let value = value.and_then(|allowed| self.json(&below, &allowed));
            match value {
                Some(value) => {
                    let key = Pattern::literal(format!("{key}:"));
                    let space = Pattern::literal(" ").optional();
                    members.push((is_required, Pattern::sequence([key, space, value])));
                }
                None if is_required => return None,
                None => {}
            }
        }
        // `after` follows a member, `first` follows the brace.
        let mut after = Pattern::literal("");
        let mut first = Pattern::literal("");
        for (is_required, member) in members.into_iter().rev() {
            let begin = Pattern::sequence([member.clone(), after.clone()]);
            first = if is_required {
                begin
            } else {
                self.shared(Pattern::choice([begin, first]))
            };
            let here = Pattern::sequence([comma(), member]);
            let here = if is_required { here } else { here.optional() };
            after = self.shared(Pattern::sequence([here, after]));
        }
        Some(Pattern::sequence([
            Pattern::literal("{"),
            first,
            Pattern::literal("}"),
        ]))
    }

    /// Makes a rule of a pattern, so that it is written once.
    fn shared(&mut self, pattern: Pattern) -> Pattern {
        if pattern.size() < 3 {
            return pattern;
        }
        let rule = self.rules.add();
        self.rules.set(rule, pattern);
        Pattern::Rule(rule)
    }

    fn json_map(&mut self, pointer: &str, alternative: &Alternative<'s>) -> Pattern {
        if keywords::is_closed(alternative) {
            return Pattern::literal("{}");
        }
        // Equal keys cannot be excluded.
        self.report(pointer, "additionalProperties");
        let allowed = self.member(alternative, "key");
        match self.json(&format!("{pointer}/*"), &allowed) {
            Some(value) => map_of(self.rules.texts.json_string(), value),
            None => Pattern::literal("{}"),
        }
    }

    pub(crate) fn member(&self, alternative: &Alternative<'s>, name: &str) -> AllowedValues<'s> {
        let one = alternative.clone();
        let object = AllowedValues {
            alternatives: vec![one],
        };
        self.reader.member(&object, name)
    }

    /// Returns `true` if so many values are listed that any text is possible instead.
    pub(crate) fn has_too_many(&mut self, pointer: &str, alternative: &Alternative<'s>) -> bool {
        let count = keywords::listed(alternative).map_or(0, |values| values.len());
        if count > MOST_LISTED {
            self.report(pointer, "enum");
            self.report_limits(pointer, alternative);
        }
        count > MOST_LISTED
    }

    pub(crate) fn report_keywords(&mut self, pointer: &str, alternative: &Alternative<'s>) {
        for keyword in keywords::unheld(alternative) {
            self.report(pointer, keyword);
        }
    }

    /// Reports the keywords at and below one pointer for another one too, where the same schema is used again. Below it, that is
    /// the same value.
    fn report_again(&mut self, first: &str, pointer: &str) {
        let [first, other] = [first, pointer].map(|one| one.trim_start_matches('/'));
        let is_below = |one: &str| {
            let rest = one.strip_prefix(first);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if is_below(other) {
            return;
        }
        let texts = self.rules.texts.all.iter();
        let limits: usize = texts.map(|text| 1 + text.limits.len()).sum();
        let steps = self.rules.unheld.len() + limits;
        self.rules.steps_left = self.rules.steps_left.saturating_sub(steps);
        if self.rules.steps_left == 0 {
            return;
        }
        let is_same_item = is_below(&self.reported(other));
        let is_again = |one: &&Unheld| one.tool == self.tool && is_below(&one.pointer);
        let unheld = self.rules.unheld.iter().filter(is_again);
        let keywords: Vec<&'static str> = unheld.map(|one| one.keyword).collect();
        let texts = self.rules.texts.all.iter().enumerate();
        let limits = texts.flat_map(|(index, text)| {
            let limits = text.limits.iter().filter(is_again);
            limits.map(move |limit| (index, limit.keyword))
        });
        let limits: Vec<(usize, &'static str)> = limits.collect();
        for keyword in keywords.into_iter().filter(|_| !is_same_item) {
            self.report(pointer, keyword);
        }
        for (text, keyword) in limits {
            match self.rules.texts.all.get_mut(text) {
                Some(text) if is_same_item => text.places += 1,
                _ => self.report_limit(pointer, keyword, Some(text)),
            }
        }
    }

    pub(crate) fn report(&mut self, pointer: &str, keyword: &'static str) {
        let unheld = self.unheld(pointer, keyword);
        self.rules.unheld.insert(unheld);
    }

    /// Describes a keyword that is not enforced.
    pub(crate) fn unheld(&self, pointer: &str, keyword: &'static str) -> Unheld {
        Unheld {
            tool: self.tool.to_owned(),
            pointer: self.reported(pointer),
            keyword,
        }
    }

    /// Returns the pointer at which keywords are reported.
    fn reported(&self, pointer: &str) -> String {
        let pointer = pointer.trim_start_matches('/');
        let repeated = self.repeated.as_ref();
        let below =
            repeated.and_then(|(item, first)| Some((first, pointer.strip_prefix(&**item)?)));
        below.map_or_else(
            || pointer.to_owned(),
            |(first, rest)| format!("{first}{rest}"),
        )
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn comma() -> Pattern {
    Pattern::sequence([Pattern::literal(","), Pattern::literal(" ").optional()])
}

fn list_of(item: Pattern, least: usize, most: Option<usize>) -> Pattern {
    if most == Some(0) {
        return Pattern::literal("[]");
    }
    let more = Pattern::sequence([comma(), item.clone()]).repeat(
        count(least.saturating_sub(1)),
        most.map(|most| count(most - 1)),
    );
    let items = Pattern::sequence([item, more]);
    let items = if least == 0 { items.optional() } else { items };
    Pattern::sequence([Pattern::literal("["), items, Pattern::literal("]")])
}

fn map_of(key: Pattern, value: Pattern) -> Pattern {
    let colon = [Pattern::literal(":"), Pattern::literal(" ").optional()];
    let pair = [key].into_iter().chain(colon).chain([value]);
    let pair = Pattern::sequence(pair);
    let more = Pattern::sequence([comma(), pair.clone()]).repeat(0, None);
    let pairs = Pattern::sequence([pair, more]).optional();
    Pattern::sequence([Pattern::literal("{"), pairs, Pattern::literal("}")])
}

/// Returns the booleans, null and numbers of an alternative.
fn scalars(kinds: Kinds, alternative: &Alternative<'_>) -> Vec<Pattern> {
    let literals = [
        (Kinds::BOOLEAN, "true"),
        (Kinds::BOOLEAN, "false"),
        (Kinds::NULL, "null"),
    ];
    let literals = literals.into_iter().filter(|(kind, _)| kinds.has(*kind));
    let literals = literals.map(|(_, text)| Pattern::literal(text));
    literals.chain(numbers(kinds, alternative)).collect()
}

fn numbers(kinds: Kinds, alternative: &Alternative<'_>) -> Option<Pattern> {
    let is_negative = !keywords::has_no_sign(alternative);
    if kinds.has(Kinds::FRACTION) {
        return Some(number(is_negative));
    }
    kinds.has(Kinds::WHOLE).then(|| integer(is_negative))
}

/// An integer of up to 8999999999999999999, with a minus sign too: nearly all integers of 64 bits, with a short pattern.
fn integer(is_negative: bool) -> Pattern {
    let led = |first: &str, least, most| {
        Pattern::sequence([Pattern::one_of(first), Pattern::digits(least, most)])
    };
    let natural = Pattern::choice([led("123456789", 0, 17), led("12345678", 18, 18)]);
    let sign = is_negative.then(|| Pattern::literal("-").optional());
    let signed = Pattern::sequence(sign.into_iter().chain([natural]));
    Pattern::choice([Pattern::literal("0"), signed])
}

/// An integer, or a decimal number with at most 15 significant digits, which a 64-bit float keeps.
fn number(is_negative: bool) -> Pattern {
    let whole = |most: u32| {
        let more = [Pattern::one_of("123456789"), Pattern::digits(0, most - 1)];
        Pattern::choice([Pattern::literal("0"), Pattern::sequence(more)])
    };
    let fraction = |most: u32| Pattern::sequence([Pattern::literal("."), Pattern::digits(1, most)]);
    let splits = [(9, 6), (6, 9), (3, 12)];
    let splits =
        splits.map(|(before, behind)| Pattern::sequence([whole(before), fraction(behind)]));
    let small = Pattern::sequence([Pattern::literal("0"), fraction(15)]);
    let decimals = Pattern::choice([whole(15)].into_iter().chain(splits).chain([small]));
    let exponent = [
        Pattern::literal("e"),
        Pattern::one_of("+-").optional(),
        Pattern::digits(1, 2),
    ];
    let long = [Pattern::one_of("123456789"), Pattern::digits(15, 17)];
    let sign = is_negative.then(|| Pattern::literal("-").optional());
    let decimal = Pattern::sequence([decimals, Pattern::sequence(exponent).optional()]);
    let magnitude = Pattern::choice([decimal, Pattern::sequence(long)]);
    Pattern::sequence(sign.into_iter().chain([magnitude]))
}
