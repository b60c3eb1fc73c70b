//! The patterns of `patternProperties`: the keys that they match, and those for which this is not known.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use plaincall_tool::{Arguments, ToolSpec, bind_arguments};
use serde_json::json;

use self::Verdict::{No, Unknown, Yes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Yes,
    No,
    Unknown,
}

fn check(pattern: &str, key: &str, expected: Verdict) {
    let schema = json!({"type": "object", "patternProperties": {pattern: {"type": "integer"}}});
    let tool = ToolSpec::new("t").parameters_from_schema(&schema);
    let tool = tool.expect("a schema").without_validation();
    let arguments = Arguments::from_pairs([(key, "x")]).expect("a key that a pointer spells");
    let found = match bind_arguments(&tool, &arguments) {
        Ok(_) => Unknown,
        Err(problems) if problems[0].code == "wrong_type" => Yes,
        Err(problems) => {
            assert_eq!(problems[0].code, "undeclared_argument", "{pattern} {key}");
            let takes = format!("t takes parameters whose names match `{pattern}`");
            assert!(problems[0].message.ends_with(&takes), "{problems:?}");
            No
        }
    };
    assert_eq!(found, expected, "{pattern} {key}");
}

#[test]
fn plain_patterns_are_decided() {
    for (pattern, key, expected) in [
        ("^[0-9]+$", "2024", Yes),
        ("^[0-9]+$", "20a", No),
        ("^x-", "x-y", Yes),
        ("^x-", "ax-", No),
        ("x-", "ax-", Yes),
        ("", "a", Yes),
        ("^.*$", "anything", Yes),
        ("^S_", "S_0", Yes),
        ("_id$", "user_id", Yes),
        ("_id$", "user_id2", No),
        (r"^\d{4}-\d{2}$", "2024-01", Yes),
        (r"^\d{4}-\d{2}$", "2024-1", No),
        (r"^\w{2,}\.$", "ab.", Yes),
        (r"^\w{2,3}$", "abcd", No),
        ("^[^a-c-]?z$", "dz", Yes),
        ("^[^a-c-]?z$", "-z", No),
        ("^a*a*a*b$", "aaaa", No),
        ("^(a|b)$", "a", Yes),
        ("^(a|b)$", "ab", No),
        ("^a|b$", "ax", Yes),
        ("^a|b$", "xb", Yes),
        ("^a|b$", "xbx", No),
        ("^(?:get|set)_[a-z]+$", "set_x", Yes),
        ("^(?:get|set)_[a-z]+$", "sot_x", No),
        ("^(ab){2,3}$", "abab", Yes),
        ("^(ab){2,3}$", "ab", No),
        ("^(ab){2,3}$", "abababab", No),
        ("^(a|ab)(c|bcd)$", "abcd", Yes),
        ("^((a|b)+-)*c$", "ab-a-c", Yes),
        ("^((a|b)+-)*c$", "ab-ac", No),
        ("^(a*)*$", "aaa", Yes),
        ("^(a*)*$", "b", No),
        ("^()$", "a", No),
        ("^a+?$", "aa", Yes),
        ("x|", "a", Yes),
        ("(", "a", Unknown),
        (")", "a", Unknown),
        ("(a", "a", Unknown),
        ("^(?=a)", "a", Unknown),
        ("^(?i)a", "a", Unknown),
        (r"(a)\1", "aa", Unknown),
        (r"^\p{L}$", "a", Unknown),
        ("^[", "a", Unknown),
        ("a{2", "aa", Unknown),
        ("^a**$", "a", Unknown),
        ("^a++$", "a", Unknown),
        ("^a+??$", "a", Unknown),
        ("[]", "a", Unknown),
        ("[^]", "a", Unknown),
        ("[a--b]", "a", Unknown),
        ("[a[b]]", "a", Unknown),
        ("^[.*+?(]$", "(", Yes),
        ("^.$", "\r", No),
        (r"^\.\[$", ".[", Yes),
        (r"\bx", "x", Unknown),
    ] {
        check(pattern, key, expected);
    }
    let slow = "a*".repeat(40) + "b$";
    check(&slow, &"a".repeat(200), No);
    check(&"a?".repeat(10_000), "a", Unknown);
    check("^(a{100}){100}$", "a", Unknown);
    check("^(a+)+$", &("a".repeat(100) + "b"), No);
    check("^(a|a)*$", &("a".repeat(100) + "b"), No);
    check("^(ab)*$", &"ab".repeat(2000), Unknown);
    check(&"(".repeat(100_000), "a", Unknown);
}
