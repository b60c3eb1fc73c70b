//! Help for diagnostics.

use plaincall_syntax::Syntax;

/// The code for text that looks like a marker but is not one.
pub(crate) const NEAR_MISS: &str = "near_miss";
/// The code for a call without an end marker.
pub(crate) const NOT_CLOSED: &str = "not_closed";
/// The code for a call after one without an end marker.
pub(crate) const AFTER_UNCLOSED: &str = "after_unclosed";
/// The code for a value that contains a probable end marker.
pub(crate) const END_MARKER_IN_VALUE: &str = "end_marker_in_value";
/// The code for a call before a stray close marker.
pub(crate) const MAYBE_REASONING: &str = "maybe_reasoning";
/// The codes for ids and dependencies.
pub(crate) const SELF_DEPENDENCY: &str = "self_dependency";
pub(crate) const DEPENDENCY_CYCLE: &str = "dependency_cycle";
pub(crate) const UNKNOWN_ID: &str = "unknown_id";
/// The code for invalid UTF-8.
pub(crate) const NOT_UTF8: &str = "not_utf8";

/// Returns the help for a diagnostic, in one sentence. `end_marker` is the current one.
pub(crate) fn advice(code: &str, syntax: Option<Syntax>, end_marker: &str) -> Option<String> {
    let is_emoji = syntax == Some(Syntax::Emoji);
    let sentence = match code {
        "not_a_header" => {
            "to call a tool, write its name directly after the marker and end the header on the same line; if this is only a mention of the marker, ignore the warning"
        }
        "header_too_long" if is_emoji => "move long values to the body",
        "header_too_long" => "move long values to an argument",
        "truncated_header" | "truncated_pointer" => "the call is lost; write it again",
        "missing_newline" => "end the line before the next marker",
        "unusual_name" => {
            "if you can rename the tool, use only letters from A to Z, digits, `_`, `-` and `.`"
        }
        "extra_colon" => "write the dependencies as one list: `name:id:first,second`",
        "marker_in_value" if is_emoji => {
            "calls cannot be nested; to start a new call, close the previous one first"
        }
        "marker_in_value" => {
            "if this is a marker, move it to the start of a line, or use `--dialect anywhere`"
        }
        "end_marker_in_mid_line" => "write the end marker on a line of its own",
        "end_marker_glued" => "end the line directly after the end marker",
        "stray_marker" => {
            "if it belongs to a call, check the start marker of that call: it was not recognized, or the call has already ended"
        }
        "text_before_argument" => "move the text before the call, or into an argument",
        "text_without_argument" => {
            "write each argument as a line with the argument marker and a name, followed by its value on the next lines"
        }
        "fence_before_argument" => "remove the fences; a value never needs them",
        "pointer_too_long" => "write the value on the lines after the argument marker",
        "missing_end_marker" => {
            return Some(format!(
                "close the call with `{end_marker}`; without it, the call never runs"
            ));
        }
        NOT_CLOSED | AFTER_UNCLOSED if is_emoji => return None,
        NOT_CLOSED | AFTER_UNCLOSED => {
            return Some(format!(
                "close every call with `{end_marker}`; without it, a call runs only if its tool only reads"
            ));
        }
        END_MARKER_IN_VALUE => {
            return Some(format!(
                "close the call with exactly `{end_marker}`, and do not start a line of a value with similar text"
            ));
        }
        SELF_DEPENDENCY => "remove the call's own id from its dependencies",
        DEPENDENCY_CYCLE => "remove one of the dependencies",
        UNKNOWN_ID => "use an id from this reply or an earlier one",
        "call_in_reasoning" => "if this is not reasoning, use `--dialect no-reasoning`",
        NOT_UTF8 => "save the text as UTF-8",
        "stray_reasoning_close" | MAYBE_REASONING => {
            "if the text starts inside reasoning, use `--dialect in-reasoning`; if it has no reasoning, use `--dialect no-reasoning`"
        }
        "truncated_reasoning" => "calls inside reasoning are ignored",
        "leading_slash" => "remove the leading `/`",
        "invisible_character" => "remove the invisible character from the name",
        "duplicate_id" => "give each call a unique id",
        "duplicate_pointer" => {
            "write each argument once; write the items of a list as `name/0`, `name/1` and so on"
        }
        "pointer_conflict" => {
            "an argument is either a value or a container of other arguments; rename one of them"
        }
        "array_index_gap" => "number the items from 0 without gaps",
        "invalid_array_index" => "number the items 0, 1, 2 and so on, without leading zeros",
        "empty_pointer_segment" => "write a name before the first `/` and between any two",
        "value_on_pointer_line" => "write the value on the next line",
        "pointer_too_deep" => "reduce the nesting of the arguments",
        "too_many_arguments" | "too_many_dependencies" => "split the call into several",
        "value_too_long" => "write the value to a file, and pass the name of the file",
        "missing_argument" if !is_emoji => {
            "write a line with the argument marker and its pointer, followed by its value on the next lines"
        }
        _ => return None,
    };
    Some(sentence.to_owned())
}
