//! Which requests a transport translates, rejects and forwards.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use plaincall_gateway::Secret;
use plaincall_gateway::translation::Host;
use plaincall_gateway::transport::{Ask, Transport};
use serde_json::json;

const TOOLS: &[u8] = br#"{"input":"x","messages":[{"role":"user","content":"x"}],"max_tokens":9,
    "tools":[{"type":"function","name":"a","function":{"name":"a"},"input_schema":{"type":"object"}}]}"#;
const FUNCTIONS: &[u8] =
    br#"{"messages":[{"role":"user","content":"x"}],"functions":[{"name":"a"}]}"#;

fn ask(path: &str, body: &[u8]) -> Ask {
    let transport = Transport::new(b"a secret of 16 bytes", json!({})).unwrap();
    transport.ask(path, body, Host::new("", Secret::new("seed"), 0))
}

#[test]
fn requests_with_tools_are_translated() {
    for path in [
        "/responses",
        "/messages",
        "/any/base/messages",
        "/chat/completions",
    ] {
        assert!(Transport::translates("POST", path), "{path}");
        assert!(matches!(ask(path, TOOLS), Ask::Asked(_)), "{path}");
    }
}

#[test]
fn a_form_with_parts_passes_unchanged() {
    let form = b"--a\r\ncontent-disposition: form-data; name=\"text\"\r\n\r\nhi\r\n--a--\r\n";
    for path in ["/rooms/5/messages", "/v1/Messages"] {
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

#[test]
fn headers_of_another_body_are_not_kept() {
    for name in [
        "ETag",
        "Content-MD5",
        "location",
        "content-length",
        "Content-Encoding",
        "trailer",
    ] {
        assert!(!Transport::keeps_header(name), "{name}");
    }
    for name in [
        "x-request-id",
        "retry-after",
        "X-RateLimit-Remaining",
        "set-cookie",
        "date",
        "server",
    ] {
        assert!(Transport::keeps_header(name), "{name}");
    }
}
