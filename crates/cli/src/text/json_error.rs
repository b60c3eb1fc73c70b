//! What is wrong with a JSON text, in words.

/// What keeps a text from being JSON, in words, and where.
pub(crate) fn no_json(error: &serde_json::Error) -> String {
    format!(
        "line {}, column {}: {}",
        error.line(),
        error.column(),
        cause(error)
    )
}

/// The same without the place.
pub(crate) fn cause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let cause = text.strip_suffix(&place).unwrap_or(&text);
    match cause.strip_prefix("EOF while parsing ") {
        Some(part) => format!("unexpected end inside {part}"),
        None => cause.to_owned(),
    }
}
