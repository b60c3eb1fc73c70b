//! Texts that mention calls in other formats.

use plaincall_syntax::mentions_call_format;

#[test]
fn texts_that_mention_a_format() {
    for (text, expected) in [
        (r#"> {"name": "rm", "arguments": {}}"#, true),
        (r#"{"name": "rm", "args": {"path": "x"}}"#, true),
        (r#"{"action": "rm", "action_input": "x"}"#, true),
        (r#"{"tool": "rm", "tool_input": {}}"#, true),
        (r#"{"a": "{\"name\": \"rm\", \"arguments\": {}}"}"#, true),
        (
            r#"{"a": "{\\\"name\\\":\\\"rm\\\",\\\"args\\\":{}}"}"#,
            true,
        ),
        ("Call <tool_call> with it.", true),
        ("Its arguments are \"x\".", false),
        (r#"{"arguments_of": 1, "my args": 2, "args": 3"#, true),
        (r#"{"arguments_of": 1, "my args": 2}"#, false),
        (r#"{"input": 1}"#, false),
        ("", false),
    ] {
        assert_eq!(mentions_call_format(text), expected, "{text}");
    }
}
