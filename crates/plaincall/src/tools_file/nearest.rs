//! The name that was probably meant, in the words of the messages about the file.

use plaincall_call::nearest_name;

/// `; perhaps `command` is meant`, if one of the names is near to what is written; else nothing.
pub(super) fn perhaps<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match nearest_name(written, names) {
        Some(name) => format!("; perhaps `{name}` is meant"),
        None => String::new(),
    }
}
