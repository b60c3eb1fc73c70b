//! Which requests a transport translates, rejects and forwards.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

use plaincall_gateway::Secret;
use plaincall_gateway::transport::{Ask, Asked, Flow, Host, Next, Transport};
use serde_json::json;

const TOOLS: &[u8] = br#"{"input":"x","messages":[{"role":"user","content":"x"}],"max_tokens":9,
    "tools":[{"type":"function","name":"a","function":{"name":"a"},"input_schema":{"type":"object"}}]}"#;
const FUNCTIONS: &[u8] =
    br#"{"messages":[{"role":"user","content":"x"}],"functions":[{"name":"a"}]}"#;

fn ask(path: &str, body: &[u8]) -> Ask {
    let transport = Transport::new(b"a secret of 16 bytes", json!({})).unwrap();
    transport.ask(path, body, Host::new(Secret::new("seed"), 0))
}

#[test]
fn requests_with_tools_are_translated() {
    for path in [
        "/responses",
        "/messages",
        "/any/base/messages",
        "/chat/completions",
        "/api/chat",
    ] {
        assert!(Transport::translates("POST", path), "{path}");
        assert!(matches!(ask(path, TOOLS), Ask::Asked(_)), "{path}");
    }
}

#[test]
fn a_form_with_parts_passes_unchanged() {
    let form = b"--a\r\ncontent-disposition: form-data; name=\"text\"\r\n\r\nhi\r\n--a--\r\n";
    for path in ["/rooms/5/messages", "/v1/Messages", "/api/chat"] {
        assert!(matches!(ask(path, form), Ask::Unchanged), "{path}");
    }
}

#[test]
fn a_repeated_key_is_rejected() {
    let with_tools = String::from_utf8_lossy(TOOLS);
    for path in ["/v1/chat/completions", "/v1/messages", "/base/responses"] {
        for more in [r#""tools":[]"#, r#""too\u006cs":null"#] {
            let body = with_tools.replacen('{', &format!("{{{more},"), 1);
            let body = [
                body,
                with_tools.trim_end_matches('}').to_owned() + "," + more + "}",
            ];
            for body in body {
                let Ask::Response(response) = ask(path, body.as_bytes()) else {
                    panic!("{path}: {body}");
                };
                assert_eq!(response.status, 400);
                let message = String::from_utf8_lossy(&response.body).into_owned();
                assert!(message.contains("more than one key `tools`"), "{message}");
            }
        }
    }
}

#[test]
fn unreadable_bodies_may_have_tools() {
    let text = String::from_utf8_lossy(TOOLS);
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let deep = format!(
        "{{\"x\":{}{},{}",
        "[".repeat(200),
        "]".repeat(200),
        &text[1..]
    );
    let half = text.replacen("\"a\"", "\"a\\ud83d\"", 1);
    let invalid = [b"{\"y\":\"\xff\",", &TOOLS[1..]].concat();
    let trailing = format!("{text}{{}}");
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0";
    let bodies: [&[u8]; 6] = [
        &wide,
        deep.as_bytes(),
        half.as_bytes(),
        &invalid,
        trailing.as_bytes(),
        gzip,
    ];
    let paths = [
        "/base/responses",
        "/v1/Responses",
        "/v1/chat/completions;a=b",
    ];
    for path in paths {
        for body in bodies {
            let asked = ask(path, body);
            // Some are readable, and translated.
            let is_forwarded = matches!(asked, Ask::Unchanged | Ask::Renamed(_));
            assert!(!is_forwarded, "{path}: {}", String::from_utf8_lossy(body));
        }
    }
}

#[test]
fn paths_that_a_server_may_take_for_others_are_rejected_with_tools() {
    let paths = [
        "/v1/Chat/Completions",
        "/V1/CHAT/COMPLETIONS/",
        "/v1/chat%2Fcompletions",
        "/v1/%63hat/completions",
        "/v1//chat//completions",
        "/v1/./chat/./completions",
        "/openai/Responses",
        "/v1/%72esponses/compact",
        "/v1/MESSAGES",
        "/API/chat",
        "/v1/chat/completions;a=b",
        "/v1/chat;a/completions.",
        "/v1/chat/completions%20",
        "/v1/chat/completions%00",
        "/v1/chat%5Ccompletions",
    ];
    for path in paths {
        assert!(Transport::translates("POST", path), "{path}");
        let with_mark = [b"\xef\xbb\xbf", TOOLS].concat();
        for body in [TOOLS, FUNCTIONS, &with_mark] {
            let asked = ask(path, body);
            let Ask::Response(response) = asked else {
                panic!("{path}: {asked:?}");
            };
            assert!((400..500).contains(&response.status), "{path}");
            let message = String::from_utf8_lossy(&response.body).into_owned();
            assert!(message.contains(path), "{message}");
        }
        for body in [
            &b"{}"[..],
            b"[1]",
            b"",
            b"--a\xff",
            b"hi",
            b"text=%7B",
            br#"{"tools":[]}"#,
        ] {
            assert!(matches!(ask(path, body), Ask::Unchanged), "{path} {body:?}");
        }
    }
}

#[test]
fn other_paths_pass_unchanged() {
    for path in [
        "/",
        "",
        "/v1/models",
        "/Chat",
        "/v1/chat%252Fcompletions",
        "/v1/x-messages",
        "/%ff",
    ] {
        assert!(!Transport::translates("POST", path), "{path}");
        assert!(matches!(ask(path, TOOLS), Ask::Unchanged), "{path}");
    }
}

fn asked(target: &str) -> Box<Asked> {
    match ask(target, TOOLS) {
        Ask::Asked(asked) => asked,
        other => panic!("{target}: {other:?}"),
    }
}

fn headers(of: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    of.iter().map(owned).collect()
}

fn answer(text: &str) -> Vec<u8> {
    let choice = json!({"message": {"content": text}, "finish_reason": "stop"});
    json!({"choices": [choice]}).to_string().into_bytes()
}

/// Ends the first answer, after which the model is asked again.
fn begin_repair(asked: &mut Asked, text: &str) {
    asked.begin_answer(200, headers(&[("content-type", "application/json")]));
    asked.feed(&answer(text));
    assert!(matches!(asked.end(None).1, Next::Again));
}

#[test]
fn targets_keep_base_and_encoding() {
    for (target, expected) in [
        ("/v1/chat/completions?a=b", "/v1/chat/completions?a=b"),
        (
            "/a%2Fb/v1/chat/completions/?a",
            "/a%2Fb/v1/chat/completions?a",
        ),
        // The query belongs to the API of the client.
        ("/a%20b/v1/messages?beta=true", "/a%20b/v1/chat/completions"),
        ("/responses", "/chat/completions"),
        // Chat completions are below `/v1`, and Ollama's API is beside it.
        ("/a/api/chat", "/a/v1/chat/completions"),
    ] {
        assert_eq!(asked(target).target(), expected);
    }
}

#[test]
fn headers_of_another_body_are_not_kept() {
    let kept = [
        ("x-request-id", "r"),
        ("retry-after", "7"),
        ("X-RateLimit-Remaining", "5"),
        ("set-cookie", "a"),
        ("set-cookie", "b"),
        ("date", "x"),
        ("server", "x"),
    ];
    let others = [
        ("ETag", "x"),
        ("Content-MD5", "x"),
        ("location", "x"),
        ("content-length", "9"),
        ("Content-Encoding", "x"),
        ("trailer", "x"),
        ("Content-Type", "application/json"),
    ];
    let mut asked = asked("/messages");
    asked.begin_answer(200, headers(&[&kept[..], &others].concat()));
    let json = [("content-type", "application/json")];
    let expected = headers(&[&kept[..], &json].concat());
    assert_eq!(asked.headers(), expected);
    asked.begin_answer(429, headers(&[&kept[..], &others].concat()));
    let (bytes, Next::Response(response)) = asked.end(None) else {
        panic!("it is an error");
    };
    assert_eq!((bytes.len(), response.status), (0, 429));
    assert_eq!(response.headers, expected);
}

/// Checks where a client of this target is sent if the model server redirects to this location.
fn check_redirect(target: &str, location: &str, expected: Option<&str>) {
    let mut asked = asked(target);
    asked.begin_answer(
        307,
        headers(&[("Location", location), ("content-type", "text/x")]),
    );
    asked.feed(b"moved");
    let (_, Next::Response(response)) = asked.end(None) else {
        panic!("{location}");
    };
    let found = response.headers.iter().find(|(name, _)| name == "location");
    let found = found.map(|(_, location)| location.as_str());
    assert_eq!(found, expected, "{location}");
    let status = if expected.is_some() { 307 } else { 502 };
    assert_eq!(response.status, status, "{location}");
    assert_eq!(response.body == b"moved", expected.is_some(), "{location}");
}

#[test]
fn a_redirect_leads_to_the_api_of_the_client() {
    let ollama = "/api/chat";
    for (target, location, expected) in [
        (ollama, "/new/v1/chat/completions", Some("/new/api/chat")),
        (ollama, "/new/chat/completions", None),
    ] {
        check_redirect(target, location, expected);
    }
    for (location, expected) in [
        ("/new/v1/chat/completions?a=b", Some("/new/v1/messages?a=b")),
        (
            "https://b.test/chat/completions/#c",
            Some("https://b.test/messages#c"),
        ),
        ("chat/completions", None),
        ("/new/other", None),
        // The first segment is a host.
        ("//chat/completions", None),
        ("https://chat/completions", None),
        ("", None),
    ] {
        check_redirect("/v1/messages", location, expected);
    }
    // The client cannot repeat the request of a repair round.
    let mut asked = asked("/v1/chat/completions");
    begin_repair(
        &mut asked,
        "!!!GADGET_START:a:b:a\n!!!ARG:x/\n1\n!!!GADGET_END",
    );
    asked.begin_answer(307, headers(&[("location", "/chat/completions")]));
    let (_, Next::Response(response)) = asked.end(None) else {
        panic!("there is no reply");
    };
    assert_eq!(response.status, 502);
}

#[test]
fn a_broken_connection_is_an_error_of_the_client_before_any_reply() {
    let broken = || "broken".to_owned();
    let mut first = asked("/v1/chat/completions");
    assert!(first.connection_error(broken()).is_none());
    first.begin_answer(200, headers(&[("content-type", "application/json")]));
    first.feed(b"{");
    assert!(first.connection_error(broken()).is_none());
    // The first reply is the answer, or the error is one of the model server.
    let near = "!!!gadget_start:a\n!!!gadget_end\n";
    let invalid = "!!!GADGET_START:unknown\n!!!GADGET_END";
    for (text, is_answer) in [(near, true), (invalid, false)] {
        let mut asked = asked("/v1/chat/completions");
        begin_repair(&mut asked, text);
        let (bytes, next) = asked.connection_error(broken()).unwrap();
        let reply = String::from_utf8_lossy(&bytes).into_owned();
        assert_eq!(reply.contains("gadget_start:a"), is_answer, "{reply}");
        match next {
            Next::Done => assert!(is_answer),
            Next::Response(response) => {
                assert_eq!((response.status, is_answer), (502, false));
                assert!(String::from_utf8_lossy(&response.body).contains("broken"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn little_is_read_after_the_end_of_a_reply() {
    let body = String::from_utf8_lossy(TOOLS).replacen('{', r#"{"stream":true,"#, 1);
    let Ask::Asked(mut asked) = ask("/v1/chat/completions", body.as_bytes()) else {
        panic!("it offers a tool");
    };
    asked.begin_answer(200, headers(&[("content-type", "text/event-stream")]));
    let delta = r#"{"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}"#;
    let (_, flow) = asked.feed(format!("data: {delta}\n\n").as_bytes());
    assert_eq!(flow, Flow::UsageOnly);
    let comment = [&[b':'; 1022][..], b"\n\n"].concat();
    let flows: Vec<Flow> = (0..64).map(|_| asked.feed(&comment).1).collect();
    assert!(flows[..63].iter().all(|flow| *flow == Flow::UsageOnly));
    assert_eq!(flows[63], Flow::Stop);
    let (bytes, next) = asked.connection_error("broken".to_owned()).unwrap();
    assert!(matches!(next, Next::Done));
    assert!(bytes.ends_with(b"data: [DONE]\n\n"));
}

#[test]
fn little_is_read_of_an_error() {
    let mut asked = asked("/v1/chat/completions");
    asked.begin_answer(500, Vec::new());
    assert_eq!(asked.feed(&vec![b'x'; 65_535]).1, Flow::Continue);
    assert_eq!(asked.feed(b"xx").1, Flow::Stop);
}

#[test]
fn changed_tools_are_named_without_content() {
    let tool = json!({"type": "function", "function": {"name": "odd", "parameters": {"properties": {"x": {"type": "nothing"}}}}});
    let body = json!({"messages": [{"role": "user", "content": "x"}], "tools": [tool]});
    let Ask::Asked(asked) = ask("/v1/chat/completions", body.to_string().as_bytes()) else {
        panic!("it offers a tool");
    };
    let [changed] = &asked.changed_tools()[..] else {
        panic!("one tool was changed");
    };
    assert_eq!((&*changed.at, changed.is_dropped), ("/tools/0", false));
    assert_eq!(
        changed.message,
        "the tool at /tools/0 of the request was loosened"
    );
}
