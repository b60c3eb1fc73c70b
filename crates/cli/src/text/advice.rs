//! What to do about what was found.

use plaincall_syntax::Syntax;

/// The code of the remark that something looks like a marker and is none.
pub(crate) const NEAR_MISS: &str = "near_miss";
/// The code of the finding that a call has no end marker.
pub(crate) const NOT_CLOSED: &str = "not_closed";
/// The code of the finding that an earlier call has no end marker.
pub(crate) const AFTER_UNCLOSED: &str = "after_unclosed";
/// The code of the finding that a value holds what was probably meant to end the call.
pub(crate) const HELD: &str = "end_marker_in_value";
/// The code of the finding that a stray close marker is behind the call.
pub(crate) const MAYBE_REASONING: &str = "maybe_reasoning";
/// The codes of the findings about ids and dependencies.
pub(crate) const SELF_DEPENDENCY: &str = "self_dependency";
pub(crate) const DEPENDENCY_CYCLE: &str = "dependency_cycle";
pub(crate) const UNKNOWN_ID: &str = "unknown_id";
/// The code of the remark that the bytes of the text are not all UTF-8.
pub(crate) const NOT_UTF8: &str = "not_utf8";

/// What to do about a finding, in one sentence. `end_marker` is the one in force.
pub(crate) fn advice(code: &str, syntax: Option<Syntax>, end_marker: &str) -> Option<String> {
    let is_emoji = syntax == Some(Syntax::Emoji);
    let sentence = match code {
        "not_a_header" => {
            "to call a tool, write its name directly behind the marker and end the header on the same line; to mention the marker, leave it as it is"
        }
        "header_too_long" if is_emoji => "put what is long into the body",
        "header_too_long" => "put what is long into an argument",
        "truncated_header" | "truncated_pointer" => "the call is lost: it has to be written again",
        "missing_newline" => "end the line in front of the next marker",
        "unusual_name" => {
            "if the tool can have another name, use the letters A to Z, digits, `_`, `-` and `.` alone"
        }
        "extra_colon" => "write the dependencies as one list: `name:id:first,second`",
        "marker_in_value" if is_emoji => {
            "calls cannot stand inside each other; if a new call was meant, close the one before first"
        }
        "marker_in_value" => {
            "if it was meant as a marker, write it at the beginning of a line; `--markers anywhere` reads it as one here"
        }
        "end_marker_in_mid_line" => "write the end marker on a line of its own",
        "end_marker_glued" => "end the line directly behind the end marker",
        "stray_marker" => {
            "if it belongs to a call, look at the start marker of that call: it did not count, or the call has ended before"
        }
        "text_before_argument" => "put the text before the call, or into an argument",
        "text_without_argument" => {
            "write every argument as a line with the argument marker and a name, and its value on the lines below"
        }
        "fence_before_argument" => {
            "leave the fences out: a value needs none, whatever stands in it"
        }
        "pointer_too_long" => "write the value on the lines below the argument marker",
        "missing_end_marker" => {
            return Some(format!(
                "close the call with `{end_marker}`: without it, it is never run"
            ));
        }
        NOT_CLOSED | AFTER_UNCLOSED if is_emoji => return None,
        NOT_CLOSED | AFTER_UNCLOSED => {
            return Some(format!(
                "close every call with `{end_marker}`; without it, a call runs only if its tool only reads"
            ));
        }
        HELD => {
            return Some(format!(
                "close the call with exactly `{end_marker}`, and begin no line of a value like it"
            ));
        }
        SELF_DEPENDENCY => "leave its own id out of the dependencies",
        DEPENDENCY_CYCLE => "leave one of the dependencies out",
        UNKNOWN_ID => "name an id of this reply, or of an earlier one",
        "call_in_reasoning" => "if it is no reasoning, `--no-reasoning` reads the markers as text",
        NOT_UTF8 => "save the text as UTF-8",
        "stray_reasoning_close" | MAYBE_REASONING => {
            "if the text begins inside reasoning, read it with `--in-reasoning`; if it is no reasoning, with `--no-reasoning`"
        }
        "truncated_reasoning" => "calls inside reasoning do not count",
        "leading_slash" => "leave the first `/` out",
        "invisible_character" => "write the name again without the character that nobody sees",
        "duplicate_id" => "give every call an id of its own",
        "duplicate_pointer" => {
            "write every argument once; the items of a list are `name/0`, `name/1`, and so on"
        }
        "pointer_conflict" => "a place holds one value or other arguments, not both: rename one",
        "array_index_gap" => "number the items from 0, in order, without gaps",
        "invalid_array_index" => "number the items with 0, 1, 2, without leading zeros",
        "empty_pointer_segment" => "write a name between any two `/`, and in front of the first",
        "value_on_pointer_line" => "write the value on the line below",
        "pointer_too_deep" => "nest arguments less deeply",
        "too_many_arguments" | "too_many_dependencies" => "divide the call into several",
        "value_too_long" => "put the value into a file, and name the file",
        "missing_argument" if !is_emoji => {
            "write it as a line with the argument marker and its pointer, and its value on the lines below"
        }
        _ => return None,
    };
    Some(sentence.to_owned())
}
