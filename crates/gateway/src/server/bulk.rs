//! How much of a request is read at all.

use crate::refusal::Refusal;

/// How many values and fields the body of a request may have together.
///
/// What is made of a small value takes a hundred times its length, so that a body of millions of them would take
/// gigabytes. A thousand tools with a hundred fields each are far below that.
pub(crate) const MOST_VALUES: usize = 250_000;

/// Looks whether the body of a request has few enough values. What is no JSON is found out later.
pub(crate) fn check(body: &[u8]) -> Result<(), Refusal> {
    if values(body, MOST_VALUES) <= MOST_VALUES {
        return Ok(());
    }
    let message = format!(
        "the body of the request has more than {MOST_VALUES} values: it may be long, but not of so many pieces"
    );
    Err(Refusal::request(message, None))
}

/// How many objects, lists and commas stand in a text, but not in its strings; it counts no further than behind the most.
fn values(body: &[u8], most: usize) -> usize {
    // Each has at least one byte.
    if body.len() <= most {
        return 0;
    }
    let (mut values, mut is_in_string, mut is_escaped) = (0, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            b'{' | b'[' | b',' if !is_in_string => {
                values += 1;
                if values > most {
                    break;
                }
            }
            _ => {}
        }
    }
    values
}
