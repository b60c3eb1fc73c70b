//! A macro for enums whose values have names.

/// Implements `ALL`, `name` and `from_name` for an enum.
#[macro_export]
macro_rules! named {
    ($type:ident { $($value:ident = $name:literal),* $(,)? }) => {
        impl $type {
            /// All values, in order.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            /// Returns the name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }

            /// Returns the value with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}
