//! A table of the file whose values know where they stand and what they should be.

use std::borrow::Cow;
use std::ops::Range;

use plaincall_call::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::Mistakes;

/// How many characters of a text a message shows.
const SHOWN: usize = 40;

type Key<'i> = Spanned<Cow<'i, str>>;

/// A table with its name and where that stands.
pub(super) struct Table<'t, 'i> {
    name: &'t str,
    name_span: Range<usize>,
    entries: &'t DeTable<'i>,
}

/// A key and its value.
pub(super) struct Entry<'t, 'i> {
    key: &'t Key<'i>,
    value: &'t Spanned<DeValue<'i>>,
}

impl<'t, 'i> Table<'t, 'i> {
    pub(super) fn new(name: &'t str, name_span: Range<usize>, table: &'t DeTable<'i>) -> Self {
        Self {
            name,
            name_span,
            entries: table,
        }
    }

    pub(super) fn name(&self) -> &'t str {
        self.name
    }

    pub(super) fn name_span(&self) -> Range<usize> {
        self.name_span.clone()
    }

    /// All keys and their values, in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'t, 'i>> {
        self.entries.iter().map(|(key, value)| Entry { key, value })
    }

    pub(super) fn get(&self, key: &str) -> Option<Entry<'t, 'i>> {
        let (key, value) = self
            .entries
            .iter()
            .find(|(known, _)| known.get_ref() == key)?;
        Some(Entry { key, value })
    }

    /// `what` the table is, with its article.
    pub(super) fn refuse_other_keys(
        &self,
        what: &str,
        known: &[&str],
        mistakes: &mut Mistakes<'_>,
    ) {
        for key in self.entries.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let mut end = did_you_mean(name, known.iter().copied());
                if end.is_empty() {
                    end = format!("; {what} may have {}", known.join(", "));
                }
                mistakes.add(key.span(), format!("there is no key `{name}`{end}"));
            }
        }
    }
}

impl<'t, 'i> Entry<'t, 'i> {
    pub(super) fn key(&self) -> &'t str {
        self.key.get_ref()
    }

    pub(super) fn value(&self) -> &'t DeValue<'i> {
        self.value.get_ref()
    }

    /// Where the value stands.
    pub(super) fn span(&self) -> Range<usize> {
        self.value.span()
    }

    pub(super) fn key_span(&self) -> Range<usize> {
        self.key.span()
    }

    /// Where an element of the list stands that is the value.
    pub(super) fn element_span(&self, index: usize) -> Range<usize> {
        let element = self.value().as_array().and_then(|list| list.get(index));
        element.map_or(self.span(), Spanned::span)
    }

    /// The value is another one than it should be.
    pub(super) fn refuse(&self, wanted: &str, mistakes: &mut Mistakes<'_>) {
        let (key, found) = (self.key.get_ref(), kind(self.value()));
        mistakes.add(
            self.span(),
            format!("`{key}` is {found}; it must be {wanted}"),
        );
    }

    pub(super) fn string(&self, mistakes: &mut Mistakes<'_>) -> Option<&'t str> {
        let text = self.value().as_str();
        if text.is_none() {
            self.refuse("a text", mistakes);
        }
        text
    }

    pub(super) fn strings(&self, mistakes: &mut Mistakes<'_>) -> Option<Vec<&'t str>> {
        let Some(list) = self.value().as_array() else {
            self.refuse("a list of texts", mistakes);
            return None;
        };
        let before = mistakes.count();
        let mut strings = Vec::new();
        for element in list {
            match element.get_ref() {
                DeValue::String(text) => strings.push(text.as_ref()),
                other => {
                    let (key, found) = (self.key.get_ref(), kind(other));
                    mistakes.add(
                        element.span(),
                        format!("an element of `{key}` is {found}; all must be texts"),
                    );
                }
            }
        }
        (mistakes.count() == before).then_some(strings)
    }

    pub(super) fn boolean(&self, mistakes: &mut Mistakes<'_>) -> Option<bool> {
        let boolean = self.value().as_bool();
        if boolean.is_none() {
            self.refuse("true or false", mistakes);
        }
        boolean
    }

    /// A text, or a list of them, each with its place.
    pub(super) fn one_or_more_strings(
        &self,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Vec<(&'t str, Range<usize>)>> {
        match self.value() {
            DeValue::String(text) => Some(vec![(text.as_ref(), self.span())]),
            DeValue::Array(_) => {
                let texts = self.strings(mistakes)?.into_iter().enumerate();
                Some(
                    texts
                        .map(|(index, text)| (text, self.element_span(index)))
                        .collect(),
                )
            }
            _ => {
                self.refuse("a text or a list of texts", mistakes);
                None
            }
        }
    }

    /// A whole number from `least` on.
    pub(super) fn count_from(&self, least: u32, mistakes: &mut Mistakes<'_>) -> Option<u32> {
        let number = self.value().as_integer();
        let count = number
            .and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok())
            .filter(|count| *count >= least);
        if count.is_none() {
            self.refuse(&format!("a whole number from {least} on"), mistakes);
        }
        count
    }
}

/// What a value is, in words.
pub(super) fn kind(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("the text `{}…`", text.get(..end).unwrap_or_default()),
            None => format!("the text `{text}`"),
        },
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => format!("the time {time}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
