//! The limits of strings: `minLength`, `maxLength` and `pattern` (`spec/grammar.md` 4.1).

use crate::ecma_pattern::texts_of;
use crate::keywords;
use crate::pattern::{Characters, Pattern};
use crate::schema_values::SchemaValues;
use crate::text::{Location, Strings};
use plaincall_tool::schema::{Alternative, Kinds};

/// Up to this length, a value has one line.
const SHORT: usize = 100;

impl<'s> SchemaValues<'_, 's> {
    /// Returns the strings of alternatives, none of which lists values. Limits that are not enforced are reported. `others` are
    /// the texts of other values that are possible too; `kinds` are those of all values.
    pub(crate) fn strings(
        &mut self,
        pointer: &str,
        alternatives: &[&Alternative<'s>],
        location: &Location,
        others: &[Pattern],
        kinds: Kinds,
    ) -> Strings {
        let [alternative] = alternatives else {
            for alternative in alternatives {
                self.report_limits(pointer, alternative);
            }
            return Strings::Any;
        };
        let with_others = |pattern: Pattern| match others {
            [] => pattern,
            others => Pattern::choice([pattern].into_iter().chain(others.iter().cloned())),
        };
        let found = keywords::patterns(alternative);
        // A text that looks like a number might be read as a string, to which the pattern applies.
        let is_readable = others.is_empty() || !kinds.has_any(Kinds::WHOLE | Kinds::FRACTION);
        let known = found.iter().filter_map(|text| texts_of(text));
        let known: Vec<Pattern> = known.filter(|_| is_readable).map(with_others).collect();
        let length = keywords::bounds(alternative, "minLength", "maxLength");
        let has_content = *location == Location::Value && keywords::has_format(alternative);
        let length = length.map(|(least, most)| (least.max(usize::from(has_content)), most));
        let lengths = match length {
            Some((0, None)) => vec![None],
            // Without the longest length, the text may need fewer states.
            Some((least @ 1.., Some(most))) => {
                vec![Some((least, Some(most))), Some((least, None)), None]
            }
            Some(length) => vec![Some(length), None],
            None => vec![Some((1, Some(0))), None],
        };
        for patterns in [known.as_slice(), &[]] {
            for limit in &lengths {
                let is_value = *location == Location::Value && patterns.is_empty();
                let of_length = limit.map(|limit| with_others(of_length(limit, is_value)));
                let all: Vec<Pattern> = patterns.iter().cloned().chain(of_length).collect();
                if alternative.kinds().is_none() || all.is_empty() {
                    continue;
                }
                let Some(text) = self.rules.texts.matching(location.clone(), all) else {
                    continue;
                };
                let (is_least_left, is_most_left) = match limit {
                    Some((_, most)) => (false, most.is_none()),
                    None => (true, true),
                };
                for keyword in keywords::limits(alternative) {
                    let is_left = match keyword {
                        "pattern" => patterns.len() < found.len(),
                        "minLength" => is_least_left,
                        _ => is_most_left,
                    };
                    self.report_limit(pointer, keyword, Some(text).filter(|_| !is_left));
                }
                return if self.rules.texts.is_empty(text) {
                    Strings::Impossible
                } else {
                    Strings::Limited(text)
                };
            }
            if known.is_empty() {
                break;
            }
        }
        self.report_limits(pointer, alternative);
        Strings::Any
    }

    /// Reports a limit, or records the text that enforces it.
    pub(crate) fn report_limit(
        &mut self,
        pointer: &str,
        keyword: &'static str,
        text: Option<usize>,
    ) {
        let limit = self.unheld(pointer, keyword);
        let Some(text) = text.and_then(|text| self.rules.texts.all.get_mut(text)) else {
            return self.report(pointer, keyword);
        };
        text.places += 1;
        text.is_length &= keyword != "pattern";
        text.limits.insert(limit);
    }

    pub(crate) fn report_limits(&mut self, pointer: &str, alternative: &Alternative<'s>) {
        for keyword in keywords::limits(alternative) {
            self.report(pointer, keyword);
        }
    }
}

/// Returns the texts of these lengths. A value that must have content does not begin with a line end, and a short one has none: weak
/// models begin a value with a line end, and then write no end.
fn of_length((least, most): (usize, Option<usize>), is_value: bool) -> Pattern {
    if most.is_some_and(|most| most < least) {
        return Pattern::Choice(Vec::new());
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let any = |least, most: Option<usize>| {
        Pattern::Characters(Characters::any()).repeat(count(least), most.map(count))
    };
    let of_line = Pattern::Characters(Characters::one_of("\r\n").not());
    match (is_value, least, most) {
        (true, _, Some(most @ ..=SHORT)) => of_line.repeat(count(least), Some(count(most))),
        (true, 1.., _) => {
            let rest = any(least - 1, most.map(|most| most - 1));
            Pattern::sequence([of_line, rest])
        }
        _ => any(least, most),
    }
}
