//! Replies with an invalid call or none: the responses for clients and the repair messages.

use plaincall_gateway::translation::{Reply, StreamedResponse};
use plaincall_gateway::{ArgumentMode, Markers, ModelSettings, Secret};
use plaincall_wire::openai::ChatCompletionChunk;
use serde_json::{Value, json};

use crate::replies::model::{Stream, calls_in_formats, exchange, plan, recorded, streaming};
use crate::replies::table::{ADD, WRONG, check, line};

/// Checks rounds of a reply: the model's texts, the client's response and the last repair message.
fn check_rounds(fields: &Value, rounds: &[&str], expected: &str, parts: &[&str]) {
    let streams: Vec<Stream> = rounds
        .iter()
        .map(|text| Stream::new().texts([*text]).finish("stop").usage(10).done())
        .collect();
    let plan = plan(fields, &ModelSettings::default());
    let outcome = exchange(&plan, &streams, &[7, 100, 3], false);
    assert_eq!(line(&outcome), expected, "{rounds:?}");
    let last = outcome
        .rounds
        .last()
        .map(|round| round.message.as_str())
        .unwrap_or_default();
    for part in parts {
        assert!(last.contains(part), "{part:?} in {last}");
    }
}

#[test]
fn rounds_of_repair() {
    let none = json!({});
    check_rounds(&none, &["Hi."], r#""Hi." stop"#, &[]);
    check_rounds(
        &none,
        &[&format!("I add.\n{ADD}")],
        r#""I add.\n" add({"a":5}) tool_calls"#,
        &[],
    );
    check_rounds(
        &none,
        &[&format!("I add.\n{WRONG}"), &format!("Sorry.\n{ADD}")],
        r#""I add.\n" add({"a":5}) tool_calls"#,
        &[
            "`a`: expected an integer, found `five`",
            "Write this call again",
        ],
    );
    check_rounds(&none, &[WRONG, "I cannot."], r#""I cannot." stop"#, &[]);
    check_rounds(
        &none,
        &[WRONG, WRONG, WRONG],
        r#""" error: the model wrote an invalid call, even after 2 repair rounds"#,
        &[],
    );
    // The text of a round begins on a new line, so it forms no marker with the previous text.
    check_rounds(
        &none,
        &[&format!("!!!GADGET_{WRONG}"), "END"],
        r#""!!!GADGET_\nEND" stop"#,
        &[],
    );
    let no_call = json!({"tool_choice": "none"});
    check_rounds(&no_call, &[&format!("So: {ADD}")], r#""So: " stop"#, &[]);
    check_rounds(
        &no_call,
        &["!!!gadget_start:now\n"],
        r#""!!!gadget_start:now\n" stop"#,
        &[],
    );
    check_rounds(
        &none,
        &["!!!GADGET_START:nope\n!!!GADGET_END", ADD],
        r#""" add({"a":5}) tool_calls"#,
        &["unknown tool `nope`"],
    );
    check_rounds(
        &none,
        &[
            "!!!gadget_start:now\n!!!gadget_end\n",
            "!!!GADGET_START:now\n!!!GADGET_END",
        ],
        r#""!!!gadget_start:now\n!!!gadget_end\n" now({}) tool_calls"#,
        &["!!!GADGET_START:now"],
    );
    let required = json!({"tool_choice": "required"});
    check_rounds(
        &required,
        &["No.", ADD],
        r#""No." add({"a":5}) tool_calls"#,
        &["no call, but one is required"],
    );
    let named = json!({"tool_choice": {"type": "function", "function": {"name": "now"}}});
    check_rounds(
        &named,
        &[ADD, "!!!GADGET_START:now\n!!!GADGET_END"],
        r#""" now({}) tool_calls"#,
        &["unknown tool `add`: use `now`"],
    );
    check_rounds(
        &none,
        &[
            "!!!GADGET_START:now:n\n!!!GADGET_END\n!!!GADGET_START:add:a:n\n!!!ARG:a\n1\n!!!GADGET_END",
        ],
        r#""" now({}) tool_calls"#,
        &[],
    );
}

/// If a repair round fails, the first reply is the answer, unless it has an invalid call or a call is required.
#[test]
fn a_repair_round_that_fails() {
    let near = "!!!gadget_start:now\n!!!gadget_end\n";
    let error = r#"{"error": {"message": "overloaded"}}"#;
    let auto = json!({});
    let required = json!({"tool_choice": "required"});
    let answer = r#""!!!gadget_start:now\n!!!gadget_end\n" stop"#;
    let failed = |text: &str| format!("{text:?} error: overloaded");
    let (text, none) = (failed(near), failed(""));
    for (fields, rounds, expected, failed_repairs) in [
        (&auto, &[near][..], answer, 1),
        (&auto, &[near, WRONG], answer, 1),
        (&auto, &[WRONG], &*none, 0),
        (&auto, &[WRONG, near], &none, 0),
        (&required, &[near], &text, 0),
        (&auto, &[], &none, 0),
    ] {
        let stream = |text: &&str| Stream::new().texts([*text]).finish("stop").done();
        let mut streams: Vec<Stream> = rounds.iter().map(stream).collect();
        streams.push(Stream::new().data(error));
        let plan = plan(fields, &ModelSettings::default());
        let outcome = exchange(&plan, &streams, &[20], false);
        assert_eq!(line(&outcome), expected, "{rounds:?}");
        assert_eq!(outcome.counts.failed_repairs, failed_repairs, "{rounds:?}");
    }
    // The round ends in a call, at the length limit. The reason of the first reply is not that of an answer.
    let streams = [
        (near, "tool_calls"),
        ("!!!GADGET_START:add\n!!!ARG:a\n5", "length"),
    ];
    let streams = streams.map(|(text, reason)| Stream::new().texts([text]).finish(reason).done());
    let plan = plan(&auto, &ModelSettings::default());
    let outcome = exchange(&plan, &streams, &[20], false);
    assert_eq!(line(&outcome), answer);
}

/// A round without a call is the answer, without the text that the client already has.
#[test]
fn nothing_is_sent_twice() {
    for (first, second, expected) in [
        ("I add.\n", "I add.\nBut I cannot.", "I add.\nBut I cannot."),
        ("I add. ", "I add. But I cannot.", "I add.  But I cannot."),
        ("I add.\n", "I add.\n", "I add.\n"),
        ("I add.\n", "\nI add.\n\n", "I add.\n"),
        ("I add.\n", "I cannot.", "I add.\nI cannot."),
        ("I add:", "I cannot.", "I add:\nI cannot."),
        ("\n", "I cannot.", "I cannot."),
    ] {
        let line = format!("{expected:?} stop");
        check_rounds(
            &json!({}),
            &[&format!("{first}{WRONG}"), second],
            &line,
            &[],
        );
    }
}

/// Once a call has been sent, the reply ends before an invalid one, and nothing more is requested or sent.
#[test]
fn a_reply_ends_before_an_invalid_call() {
    const NOW: &str = "!!!GADGET_START:now\n!!!GADGET_END\n";
    let plan = plan(&json!({}), &ModelSettings::default());
    for (texts, expected, wrong) in [
        (
            &[&format!("{NOW}Then.\n{WRONG}{ADD}") as &str][..],
            r#""\nThen.\n" now({}) tool_calls"#,
            1,
        ),
        // A call of a repair round is sent in the same way.
        (
            &[WRONG, &format!("{NOW}Then.\n{WRONG}{ADD}")],
            r#""" now({}) tool_calls"#,
            2,
        ),
        (
            &[&format!("{NOW}!!!GADGET_START:nope\n!!!GADGET_END\n")],
            r#""" now({}) tool_calls"#,
            1,
        ),
    ] {
        let stream = |text: &&str| Stream::new().texts([*text, "more"]).finish("stop").done();
        let streams: Vec<Stream> = texts.iter().map(stream).collect();
        let outcome = exchange(&plan, &streams, &[20], false);
        assert_eq!(line(&outcome), expected);
        assert_eq!(outcome.rounds.len(), texts.len() - 1);
        assert!(outcome.is_over_early, "the request is cancelled");
        assert_eq!(outcome.counts.invalid_calls, wrong);
    }
}

/// Each call is sent when the next one has ended, or the reply, and nothing of it before.
#[test]
fn when_calls_are_sent() {
    let answer = StreamedResponse::new("c", 0, false);
    let mut reply = Reply::new(
        plan(&json!({}), &ModelSettings::default()),
        Secret::new("seed"),
        Box::new(answer),
    );
    for (text, expected) in [
        ("I add.", "I add."),
        ("\n!!!GADGET_START:add\n", ""),
        ("!!!ARG:a\n5\n", ""),
        ("!!!GADGET_END\n", ""),
        ("!!!GADGET_START:now\n", ""),
        ("!!!GADGET_END\n", r#"add{\"a\":5}"#),
        ("!!!GADGET_START:write\n!!!ARG:path\na.txt\n", ""),
        ("!!!ARG:path\n", ""),
        ("!!!GADGET_END\n", "now{}"),
    ] {
        let chunk = json!({"choices": [{"delta": {"content": text}}]}).to_string();
        let chunk = ChatCompletionChunk::read(&chunk).unwrap().unwrap();
        reply.push(chunk);
        let bytes = String::from_utf8(reply.encoder_mut().take()).unwrap();
        let mut sent = String::new();
        for event in bytes.split_terminator("\n\n") {
            let chunk: Value = serde_json::from_str(event.trim_start_matches("data: ")).unwrap();
            let delta = &chunk["choices"][0]["delta"];
            let function = &delta["tool_calls"][0]["function"];
            for piece in [&delta["content"], &function["name"], &function["arguments"]] {
                let piece = piece.as_str().unwrap_or_default();
                sent.push_str(&piece.trim().escape_debug().to_string());
            }
        }
        assert_eq!(sent, expected, "{text:?}");
    }
}

/// A call that must not run, or would be held for a gate, is invalid in streams and in complete answers
/// (`spec/common.md` 10).
#[test]
fn calls_that_may_not_run() {
    const NOW: &str = "!!!GADGET_START:now\n!!!GADGET_END\n";
    let started = "!!!GADGET_START:write\n!!!ARG:path\na.txt\n";
    let misspelled = format!("{started}!!!GADGT_END\nDone.\n!!!GADGET_END\n");
    let escaped = format!("{started}!!!GADGET_EN\\D\n!!!GADGET_END\n");
    for (text, parts) in [
        (misspelled, "looks like the end marker"),
        (
            format!("{started}!!!GADGT_END\nDone.\n"),
            "text that looks like a marker",
        ),
        (
            format!("{started}a !!!GADGET_START:now\n"),
            "text that looks like a marker",
        ),
        (
            format!("{started}{NOW}"),
            "the next call begins before the `!!!GADGET_END`",
        ),
        (escaped, ""),
    ] {
        for arguments in [ArgumentMode::Checked, ArgumentMode::Stream] {
            let settings = crate::settings(|settings| {
                settings.arguments = arguments;
                settings.repair_rounds = 1;
            });
            let plan = plan(&json!({}), &settings);
            let outcome = recorded(&plan, &[&text], "stop");
            let is_sent = outcome
                .recorded
                .readable()
                .iter()
                .any(|(name, _)| *name == "write");
            assert_eq!(is_sent, parts.is_empty(), "{text:?}");
            if arguments == ArgumentMode::Checked && !parts.is_empty() {
                assert_eq!(outcome.recorded.calls, []);
                let message = &outcome.rounds[0].message;
                assert!(message.contains(parts), "{message}");
            }
        }
    }
}

/// The reasons `length` and `content_filter` are kept, and nothing is requested again.
#[test]
fn truncated_replies_are_not_repaired() {
    let open = "!!!GADGET_START:add\n!!!ARG:a\n1";
    let plan = plan(
        &json!({"tool_choice": "required"}),
        &ModelSettings::default(),
    );
    for reason in ["length", "content_filter"] {
        for (text, expected) in [
            (open, String::from("\"\" ")),
            (
                "!!!gadget_start:now\n",
                String::from("\"!!!gadget_start:now\\n\" "),
            ),
            (
                &format!("{ADD}{open}"),
                String::from("\"\" add({\"a\":5}) "),
            ),
        ] {
            let outcome = recorded(&plan, &[text], reason);
            assert_eq!(line(&outcome), expected + reason, "{text:?}");
            assert!(outcome.rounds.is_empty());
        }
    }
}

/// Calls in other formats are near misses, and valid calls beside them are sent.
#[test]
fn calls_in_other_formats() {
    for text in [
        "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n",
        "<function=now>\n</function>\n",
        "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}]\n",
        "```json\n{\"name\": \"now\", \"arguments\": {}}\n```\n",
        "\u{FF01}\u{FF01}\u{FF01}GADGET_START:now\n\u{FF01}\u{FF01}\u{FF01}GADGET_END\n",
    ] {
        let expected = format!("{text:?} add({{\"a\":5}}) tool_calls");
        check_rounds(&json!({}), &[text, ADD], &expected, &["!!!GADGET_START:"]);
        let page = json!({"messages": [{"role": "user", "content": text}]});
        let expected = format!("{text:?} stop");
        check_rounds(&page, &[text], &expected, &[]);
        let expected = format!("{text:?} add({{\"a\":5}}) tool_calls");
        let before = format!("{text}{ADD}");
        let reason = "looks like the start of a call";
        check_rounds(&json!({}), &[&before, ADD], &expected, &[reason]);
    }
}

/// So are calls in every format that native mode knows.
#[test]
fn calls_in_every_format() {
    for (format, text) in calls_in_formats() {
        let text = text + "\n";
        let expected = format!("{text:?} add({{\"a\":5}}) tool_calls");
        check_rounds(&json!({}), &[&text, ADD], &expected, &["!!!GADGET_START:"]);
        let page = json!({"messages": [{"role": "user", "content": text}]});
        let expected = format!("{text:?} stop");
        check_rounds(&page, &[&text], &expected, &[]);
        let (before, reason) = (format!("{text}{ADD}"), "looks like the start of a call");
        let expected = format!("{text:?} add({{\"a\":5}}) tool_calls");
        check_rounds(&json!({}), &[&before, ADD], &expected, &[reason]);
        assert!(!format.is_empty());
    }
}

/// A near miss is counted, also in the mode that does not ask the model again. Only the other mode keeps the texts of the
/// conversation to recognize quotations.
#[test]
fn near_misses_are_counted() {
    const TEXT: &str = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n";
    let page = json!({"messages": [{"role": "user", "content": TEXT}]});
    for (fields, text, reason, counts) in [
        (json!({}), TEXT, "stop", [3, 1]),
        (json!({}), TEXT, "length", [1, 1]),
        (json!({}), "!!!gadget_start:now\n", "stop", [3, 1]),
        (json!({}), "I have no call.\n", "stop", [0, 0]),
        (page, TEXT, "stop", [0, 1]),
        (json!({"tool_choice": "none"}), TEXT, "stop", [0, 0]),
        (json!({}), &format!("{ADD}{TEXT}"), "stop", [0, 0]),
    ] {
        let found = [ModelSettings::default(), streaming()].map(|settings| {
            let plan = plan(&fields, &settings);
            recorded(&plan, &[text], reason).counts.near_misses
        });
        assert_eq!(found, counts, "{text:?} with {fields}");
    }
}

/// The text that is kept for a repair is bounded.
#[test]
fn a_very_long_reply_is_not_repaired() {
    let plan = plan(&json!({}), &ModelSettings::default());
    for (length, rounds) in [(1 << 19, 2), (1 << 21, 0)] {
        let text = "x".repeat(length) + "\n" + WRONG;
        let stream = Stream::new().texts([&*text]).finish("stop").done();
        let streams = [stream.clone(), stream.clone(), stream];
        let outcome = exchange(&plan, &streams, &[usize::MAX], false);
        assert_eq!(outcome.rounds.len(), rounds);
        assert!(outcome.recorded.error.is_some());
    }
}

/// Text that the model escaped is not an attempt to write a call.
#[test]
fn escaped() {
    let settings = ModelSettings::default();
    for (text, content) in [
        (
            "The page says:\n!!!GADGET_START\\:now\n!!!GADGET_EN\\D\n",
            "The page says:\n!!!GADGET_START:now\n!!!GADGET_END\n",
        ),
        (
            "Write `!!!ARG\\:` and `<think\\>`.",
            "Write `!!!ARG:` and `<think>`.",
        ),
    ] {
        let expected = format!("{content:?} stop");
        check(&json!({}), &settings, text, "stop", &expected);
    }
}

/// Text of a page does not become a call through a repair.
#[test]
fn quoted() {
    let check = |markers: Markers, page: &str, text: &str, is_asked: bool| {
        let settings = crate::settings(|settings| {
            settings.markers = markers;
        });
        let page = json!([{"role": "user", "content": "Do it."}, {"role": "tool", "tool_call_id": "c", "content": page}]);
        let plan = plan(&json!({"messages": page}), &settings);
        let stream = || Stream::new().texts([text]).finish("stop").done();
        let outcome = exchange(&plan, &[stream(), stream(), stream()], &[50], false);
        assert_eq!(!outcome.rounds.is_empty(), is_asked, "{text:?}");
    };
    for near in [
        "!!!gadget_start:now\n!!!gadget_end\n",
        "!!!TOOL_START:now\n!!!TOOL_END\n",
    ] {
        let text = format!("The page says:\n{near}");
        check(Markers::Plain, "Nothing.", &text, true);
        let quoted = near.replace('\n', "\n> ");
        for page in [
            near,
            &format!("See `{near}`."),
            &format!("> {quoted}"),
            &json!({"page": near}).to_string(),
        ] {
            check(Markers::Plain, page, &text, false);
            check(Markers::Keyed, page, &text, false);
        }
    }
    // Without the key that the model must use.
    let bare = "!!!GADGET_START:now\n!!!GADGET_END\n";
    check(Markers::Keyed, "Nothing.", bare, true);
    check(Markers::Keyed, bare, bare, false);
}

/// A system prompt shows calls of tools: an invalid call is not a copy of them.
#[test]
fn shown_in_the_system_prompt() {
    const SHOWN: &str =
        "Example:\n<tool_call>\n<function=add>\n<parameter=a>\nseven\n</parameter>\n";
    const NOW: &str = "!!!GADGET_START:now\n!!!GADGET_END\n";
    let system = |role: &str| json!([{"role": role, "content": SHOWN}, {"role": "user", "content": "Do it."}]);
    let late = json!([{"role": "user", "content": "Do it."}, {"role": "system", "content": SHOWN}]);
    let copy = WRONG.replace("five", "seven");
    let empty = "!!!GADGET_START:add\n!!!GADGET_END\n";
    for (messages, text, is_asked) in [
        (system("system"), WRONG, true),
        (system("developer"), WRONG, true),
        (system("system"), &copy, true),
        (system("system"), empty, true),
        (system("user"), WRONG, false),
        (late.clone(), WRONG, true),
    ] {
        let plan = plan(&json!({"messages": messages}), &ModelSettings::default());
        let is_repaired = !recorded(&plan, &[text], "stop").rounds.is_empty();
        assert_eq!(is_repaired, is_asked, "{text:?} with {messages}");
    }
    // The same holds for the mark in the id of the call before it.
    for (messages, is_marked) in [(system("user"), false), (late, true)] {
        let ids = [NOW, &format!("{NOW}{WRONG}")].map(|text| {
            let plan = plan(&json!({"messages": messages}), &ModelSettings::default());
            let call = recorded(&plan, &[text], "stop").recorded.calls.remove(0);
            call.id
        });
        assert_eq!(ids[0] != ids[1], is_marked, "{messages}");
    }
}

/// For every author and position.
#[test]
fn quoted_from_anywhere() {
    let near = "Write\n\t!!!gadget_start:now\n!!!gadget_end\n";
    let tool = |name: &str, words: &str| {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "description": words}}});
        json!([{"type": "function", "function": {"name": name, "description": words, "parameters": schema}}])
    };
    let user = |content: &Value| json!([{"role": "user", "content": content}]);
    let assistant = |fields: Value| {
        let mut message = json!({"role": "assistant", "content": ""});
        for (name, value) in fields.as_object().unwrap() {
            message[name] = value.clone();
        }
        json!([{"role": "user", "content": "Do it."}, message])
    };
    let call = |name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        assistant(json!({"tool_calls": [{"id": "c", "type": "function", "function": function}]}))
    };
    let form = |words: &str| {
        let schema = json!({"type": "object", "description": words});
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}})
    };
    let spelled = json!({"a": near}).to_string().replace('!', "\\u0021");
    for (place, (quoted, fields)) in [
        (false, json!({})),
        (false, call("now", "{\"a\":\"b\"}")),
        (false, json!({"messages": user(&json!("Hurry!!! Now, please \\o/ \"really\" > 5"))})),
        (true, json!({"messages": user(&json!(near))})),
        (true, json!({"messages": user(&json!([{"type": "text", "text": near}]))})),
        (true, json!({"messages": user(&json!([{"type": "refusal", "refusal": near}]))})),
        (false, json!({"messages": [{"role": "system", "content": near}, {"role": "user", "content": "a"}]})),
        (true, json!({"messages": [{"role": "user", "name": near, "content": "a"}]})),
        // The model wrote this, and the calls that the client sends back.
        (false, json!({"messages": assistant(json!({"content": near}))})),
        (false, json!({"messages": assistant(json!({"reasoning": near}))})),
        (false, json!({"messages": assistant(json!({"reasoning_content": near}))})),
        (false, json!({"messages": assistant(json!({"refusal": near}))})),
        (false, json!({"messages": call(near, "{}")})),
        (false, json!({"messages": call("now", &json!({"a": near}).to_string())})),
        (false, json!({"messages": call("now", &spelled)})),
        (true, json!({"tools": tool("now", near)})),
        (true, form(near)),
    ]
    .into_iter()
    .enumerate()
    {
        let fields = if fields.is_array() { json!({"messages": fields}) } else { fields };
        for markers in [Markers::Plain, Markers::Keyed] {
            let settings = crate::settings(|settings| { settings.markers = markers; });
            let written = near.replace('\t', "");
            let stream = || Stream::new().texts([&*written]).finish("stop").done();
            let plan = plan(&fields, &settings);
            let outcome = exchange(&plan, &[stream(), stream(), stream()], &[50], false);
            assert_eq!(outcome.rounds.is_empty(), quoted, "{place}: {fields}");
        }
    }
}

/// The key does not matter: a page can make the model write it.
#[test]
fn quoted_and_keyed() {
    let settings = crate::settings(|settings| {
        settings.markers = Markers::Keyed;
    });
    let page = "!!!GADGET_START:now\n!!!GADGET_END\n";
    let messages = json!([{"role": "user", "content": page}]);
    let fields = json!({"messages": messages, "tool_choice": "required"});
    let plan = plan(&fields, &settings);
    let markers = plan.dialect().markers().unwrap();
    let call = format!("{}now\n{}", markers[0].text, markers[1].text);
    let stream = |text: &str| Stream::new().texts([text]).finish("stop").done();
    let near = call.to_lowercase();
    let key = markers[1].text.trim_start_matches("!!!GADGET_END");
    for first in [page, &near] {
        let outcome = exchange(&plan, &[stream(first), stream(&call)], &[50], false);
        assert_eq!(outcome.recorded.readable(), [("now", "{}")]);
        let message = &outcome.rounds[0].message;
        assert!(message.contains("one is required now"), "{message}");
        assert!(!message.contains(key), "{message}");
    }
}

#[test]
fn strict_functions_are_checked() {
    let mut tools = crate::replies::model::tools();
    tools[0]["function"]["strict"] = json!(true);
    assert!(!plan(&json!({"tools": tools}), &streaming()).streams_arguments());
}
