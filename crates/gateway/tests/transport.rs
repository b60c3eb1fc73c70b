//! Which requests a transport translates, rejects and forwards.

use plaincall_gateway::translation::Host;
use plaincall_gateway::transport::{Ask, Transport};
use plaincall_gateway::{ModelSettings, Secret};

const TOOLS: &[u8] = br#"{"input":"x","messages":[{"role":"user","content":"x"}],"max_tokens":9,
    "tools":[{"type":"function","name":"a","function":{"name":"a"},"input_schema":{"type":"object"}}]}"#;
const FUNCTIONS: &[u8] =
    br#"{"messages":[{"role":"user","content":"x"}],"functions":[{"name":"a"}]}"#;
/// The content types of bodies that may be JSON.
const TYPES: [Option<&str>; 4] = [
    None,
    Some("application/json"),
    Some("text/plain;charset=UTF-8"),
    Some("application/octet-stream"),
];

fn ask(path: &str, body: &[u8]) -> Ask {
    let transport = Transport::new(Secret::new("secret"), ModelSettings::default(), None);
    transport.ask(path, body, Host::new("", Secret::new("seed"), 0))
}

#[test]
fn requests_with_tools_of_any_content_type_are_translated() {
    for path in [
        "/responses",
        "/messages",
        "/any/base/messages",
        "/chat/completions",
    ] {
        for kind in TYPES {
            assert!(Transport::translates("POST", path, kind), "{path} {kind:?}");
        }
        assert!(matches!(ask(path, TOOLS), Ask::Asked(_)), "{path}");
    }
    assert!(!Transport::translates(
        "POST",
        "/rooms/5/messages",
        Some("Multipart/form-data; boundary=a")
    ));
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
    ];
    for path in paths {
        for kind in TYPES {
            assert!(Transport::translates("POST", path, kind), "{path} {kind:?}");
        }
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
        for body in [&b"{}"[..], b"[1]", b"", b"\xff", br#"{"tools":[]}"#] {
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
        assert!(!Transport::translates("POST", path, None), "{path}");
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
