//! Objects with known fields that keep all others as text.

/// Declares objects with known fields. Reading and writing preserve every other field and the order of all.
///
/// A field is required, or an `Option`, which may be missing or `null`. With `as TYPE`, it is read as another type and converted.
macro_rules! object {
    (@read $value:ident, $kind:ty, $read:ty) => {
        $value.and_then(|value: $read| {
            let converted = value.try_into();
            converted.map_err(|error: $crate::ReadError| serde::de::Error::custom(error.message))
        })
    };
    (@read $value:ident, $kind:ty) => {
        $value.map(|$crate::field::Value::<$kind>(value)| value)
    };
    ($(
        $(#[$doc:meta])*
        $vis:vis struct $name:ident<$life:lifetime> {
            $( $(#[$field_doc:meta])* $key:literal $field:ident: $kind:ty $(as $read:ty)?, )*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $name<$life> {
            $( $(#[$field_doc])* $vis $field: $kind, )*
            /// All other fields.
            $vis unknown: $crate::Unknown<$life>,
        }

        const _: () = {
            use $crate::field::{Field, Name};
            use $crate::read_error::inside;
            use $crate::unknown::FieldSlot;

            #[allow(non_camel_case_types, reason = "they are the names of the fields")]
            enum Named { $($field,)* Count }
            #[allow(clippy::cast_possible_truncation, reason = "at most 32 fields")]
            const COUNT: u8 = Named::Count as u8;
            const _: () = assert!(COUNT <= 32, "one bit for each field");

            struct ObjectVisitor;

            impl<$life> serde::de::Visitor<$life> for ObjectVisitor {
                type Value = $name<$life>;

                fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    formatter.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<$life>>(
                    self,
                    mut access: A,
                ) -> Result<Self::Value, A::Error> {
                    let mut unknown = $crate::Unknown::default();
                    $( let mut $field: Option<$kind> = None; )*
                    while let Some(Name(key)) = access.next_key()? {
                        match key.as_ref() {
                            $( $key => {
                                let value = access.next_value();
                                let value: $kind = object!(@read value, $kind $(, $read)?)
                                    .map_err(|error| inside($key, &error))?;
                                unknown.note(Named::$field as u8, value.is_absent());
                                $field = Some(value);
                            } )*
                            _ => unknown.push(key, access.next_value()?),
                        }
                    }
                    Ok($name {
                        $( $field: $field.or_else(Field::absent).ok_or_else(|| {
                            serde::de::Error::custom(concat!($key, ": the field is missing"))
                        })?, )*
                        unknown,
                    })
                }
            }

            impl<$life> Field<$life> for $name<$life> {
                type Owned = $name<'static>;

                fn read<D: serde::Deserializer<$life>>(deserializer: D) -> Result<Self, D::Error> {
                    deserializer.deserialize_map(ObjectVisitor)
                }

                fn into_owned(self) -> Self::Owned {
                    self.into_owned()
                }
            }

            impl<'de: $life, $life> serde::Deserialize<'de> for $name<$life> {
                fn deserialize<D: serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> Result<Self, D::Error> {
                    deserializer.deserialize_map(ObjectVisitor)
                }
            }

            impl $crate::ToJson for $name<'_> {
                fn write_json(&self, out: &mut Vec<u8>) {
                    let mut object = $crate::to_json::Object::new(out);
                    for place in self.unknown.layout(COUNT) {
                        match place {
                            FieldSlot::Field(name, value) => object.field(name, value),
                            $( FieldSlot::Named(index) if index == Named::$field as u8 => {
                                if !self.$field.is_absent() {
                                    object.known_field(concat!("\"", $key, "\":"), &self.$field);
                                } else if self.unknown.was_null(index) {
                                    object.known_field(concat!("\"", $key, "\":"), &());
                                }
                            } )*
                            FieldSlot::Named(_) => {}
                        }
                    }
                    object.end();
                }
            }

            impl $name<'_> {
                /// Converts it to an owned value.
                $vis fn into_owned(self) -> $name<'static> {
                    $name {
                        $( $field: Field::into_owned(self.$field), )*
                        unknown: self.unknown.into_owned(),
                    }
                }
            }
        };
    )*};
}
