//! Contents: a text, or a list whose items may contain texts.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use crate::field::{Field, TextVisitor, items};

/// Declares a content: a [text or a list](text_or_list) of objects that may have a `text`.
macro_rules! content {
    ($(#[$doc:meta])* pub enum $name:ident {
        $(#[$text_doc:meta])* Text,
        $(#[$list_doc:meta])* $list:ident($item:ident) expected $expected:literal,
    }) => {
        text_or_list! {
            $(#[$doc])*
            pub enum $name {
                $(#[$text_doc])*
                Text,
                $(#[$list_doc])*
                $list($item) expected $expected,
            }
        }

        impl $name<'_> {
            /// Returns the texts of the content, concatenated. Other parts are skipped.
            pub fn text(&self) -> std::borrow::Cow<'_, str> {
                match self {
                    Self::Text(text) => std::borrow::Cow::Borrowed(text),
                    Self::$list(items) => $crate::text_or_list::join(items.iter().filter_map(|item| item.text.as_deref())),
                }
            }
        }
    };
}

/// Declares a text or a list.
macro_rules! text_or_list {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $(#[$text_doc:meta])*
            Text,
            $(#[$list_doc:meta])*
            $list:ident($item:ident) expected $expected:literal,
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name<'a> {
            $(#[$text_doc])*
            Text(std::borrow::Cow<'a, str>),
            $(#[$list_doc])*
            $list(Vec<$item<'a>>),
        }

        const _: () = {
            use std::borrow::Cow;

            use $crate::field::Field;
            use $crate::text_or_list::read_text_or_list;

            impl $name<'_> {
                /// Converts it to an owned value.
                pub fn into_owned(self) -> $name<'static> {
                    match self {
                        Self::Text(text) => $name::Text(Cow::Owned(text.into_owned())),
                        Self::$list(items) => $name::$list(Field::into_owned(items)),
                    }
                }
            }

            impl<'a> From<&'a str> for $name<'a> {
                fn from(text: &'a str) -> Self {
                    Self::Text(Cow::Borrowed(text))
                }
            }

            impl From<String> for $name<'_> {
                fn from(text: String) -> Self {
                    Self::Text(Cow::Owned(text))
                }
            }

            impl<'de> Field<'de> for $name<'de> {
                type Owned = $name<'static>;

                fn read<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let content = read_text_or_list(deserializer, $expected)?;
                    Ok(content.map_or_else(Self::$list, Self::Text))
                }

                fn into_owned(self) -> Self::Owned {
                    self.into_owned()
                }
            }

            impl $crate::ToJson for $name<'_> {
                fn write_json(&self, out: &mut Vec<u8>) {
                    match self {
                        Self::Text(text) => text.write_json(out),
                        Self::$list(items) => items.write_json(out),
                    }
                }
            }
        };
    };
}

type TextOrList<'a, T> = Result<Cow<'a, str>, Vec<T>>;

/// Reads a text or a list. An error states that the field should be `expected`.
pub(crate) fn read_text_or_list<'de, T: Field<'de>, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<TextOrList<'de, T>, D::Error> {
    // Accepts texts and lists; rejects everything else.
    deserializer.deserialize_bytes(TextOrListVisitor {
        expected,
        item: PhantomData,
    })
}

struct TextOrListVisitor<T> {
    expected: &'static str,
    item: PhantomData<T>,
}

impl<'de, T: Field<'de>> Visitor<'de> for TextOrListVisitor<T> {
    type Value = TextOrList<'de, T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        TextVisitor.visit_borrowed_bytes(bytes).map(Ok)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        TextVisitor.visit_bytes(bytes).map(Ok)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        items(access).map(Err)
    }
}

/// Concatenates texts; borrows if there is only one.
pub(crate) fn join<'t>(mut texts: impl Iterator<Item = &'t str>) -> Cow<'t, str> {
    let mut joined = Cow::Borrowed(texts.next().unwrap_or_default());
    for text in texts {
        joined += text;
    }
    joined
}
