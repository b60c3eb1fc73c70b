//! Ids of calls, of which this API accepts only letters, digits, `_` and `-`.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The beginning of a changed id.
const CHANGED: &str = "id_";

/// Returns the id that the client gets: every byte that the API does not accept, and `_`, becomes `_` and two hexadecimal digits, after
/// [`CHANGED`]. Other ids stay as they are, unless they look like a changed one.
pub(super) fn for_client(id: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_valid = id.bytes().all(|byte| is_plain(byte) || byte == b'_');
    if is_valid && original(id).is_none() {
        return id.into();
    }
    let mut changed = CHANGED.to_owned();
    for byte in id.bytes() {
        if is_plain(byte) {
            changed.push(char::from(byte));
        } else {
            let _ = write!(changed, "_{byte:02x}");
        }
    }
    changed.into()
}

/// Returns the id of the model server.
pub(super) fn for_server(id: Cow<'_, str>) -> Cow<'_, str> {
    original(&id).map_or(id, Cow::Owned)
}

/// Returns the id that was changed to this one.
fn original(id: &str) -> Option<String> {
    let (first, rest) = id.strip_prefix(CHANGED)?.split_once('_')?;
    let mut bytes = first.as_bytes().to_vec();
    let parts = rest.split('_');
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{for_client, for_server};

    #[test]
    fn ids_are_valid_and_come_back() {
        for (id, expected) in [
            ("call_1-a", "call_1-a"),
            ("functions.x_y:0", "id_functions_2ex_5fy_3a0"),
            ("é", "id__c3_a9"),
            ("id_x", "id_x"),
            ("id_functions_2ex", "id_id_5ffunctions_5f2ex"),
            ("id_x_zz", "id_x_zz"),
            ("7", "7"),
        ] {
            assert_eq!(for_client(id), expected, "{id}");
            assert_eq!(for_server(expected.into()), id);
        }
    }
}
