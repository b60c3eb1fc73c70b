//! A table of the file whose values know where they stand and what they should be.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::Mistakes;

/// How many characters of a text a message shows.
const SHOWN: usize = 40;

type Key<'i> = Spanned<Cow<'i, str>>;

/// The definition of one tool.
pub(super) struct Table<'t, 'i> {
    name: &'t Key<'i>,
    table: &'t DeTable<'i>,
}

/// A key and its value.
pub(super) struct Entry<'t, 'i> {
    key: &'t Key<'i>,
    value: &'t Spanned<DeValue<'i>>,
}

impl<'t, 'i> Table<'t, 'i> {
    pub(super) fn new(name: &'t Key<'i>, table: &'t DeTable<'i>) -> Self {
        Self { name, table }
    }

    pub(super) fn name(&self) -> &'t str {
        self.name.get_ref()
    }

    pub(super) fn name_span(&self) -> Range<usize> {
        self.name.span()
    }

    pub(super) fn get(&self, key: &str) -> Option<Entry<'t, 'i>> {
        let (key, value) = self
            .table
            .iter()
            .find(|(known, _)| known.get_ref() == key)?;
        Some(Entry { key, value })
    }

    pub(super) fn refuse_other_keys(&self, known: &[&str], mistakes: &mut Mistakes<'_>) {
        for key in self.table.keys() {
            let name = key.get_ref();
            if !known.contains(&name.as_ref()) {
                mistakes.add(
                    key.span(),
                    format!(
                        "there is no key `{name}`; a tool may have {}",
                        known.join(", ")
                    ),
                );
            }
        }
    }
}

impl<'t, 'i> Entry<'t, 'i> {
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

    /// A whole number from 1 on.
    pub(super) fn count(&self, mistakes: &mut Mistakes<'_>) -> Option<u32> {
        let number = self.value().as_integer();
        let count = number
            .and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok())
            .filter(|count| *count > 0);
        if count.is_none() {
            self.refuse("a whole number from 1 on", mistakes);
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
