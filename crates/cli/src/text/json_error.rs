//! Messages for JSON errors.

/// Describes an error with its line and column.
pub(crate) fn describe(error: &serde_json::Error) -> String {
    format!(
        "line {}, column {}: {}",
        error.line(),
        error.column(),
        cause(error)
    )
}

/// Describes an error without its position.
pub(crate) fn cause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let cause = text.strip_suffix(&position).unwrap_or(&text);
    match cause.strip_prefix("EOF while parsing ") {
        Some(part) => format!("unexpected end inside {part}"),
        None => cause.to_owned(),
    }
}

/// Describes an error in a line, with its position in the line.
pub(crate) fn in_line(error: &serde_json::Error) -> String {
    match (error.is_data(), cause(error)) {
        (true, cause) => cause,
        (false, cause) => format!("not JSON: {cause} at byte {}", error.column()),
    }
}
