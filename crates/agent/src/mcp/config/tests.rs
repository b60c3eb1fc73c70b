use std::path::Path;
use std::time::Duration;

use plaincall::Effect;

use super::{McpConfig, McpReach};

fn variable(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/me".to_owned()),
        "KEY" | "SEARCH_KEY" => Some("secret".to_owned()),
        _ => None,
    }
}

fn read(text: &str) -> McpConfig {
    let config = McpConfig::read(text, "/etc/mcp.json", variable);
    config.unwrap_or_else(|error| panic!("{text}\n{error}"))
}

#[test]
fn what_is_said_of_tools() {
    let config = read(
        r#"{"mcpServers": {
            "a": {"command": "./x", "effects": {"get_*": "read", "get_all": "write", "put": "hinted"},
                  "includeTools": ["get_*", "put"], "disabledTools": ["get_b"], "timeout": "2m", "autoApprove": ["put"]},
            "b": {"command": "${NONE}", "disabled": true, "effects": "hinted"},
            "c": {"command": "x", "enabled": false}}}"#,
    );
    let [a, b, c] = config.servers.as_slice() else {
        panic!("{config:?}")
    };
    let McpReach::Stdio { command, .. } = &a.reach else {
        panic!("{a:?}")
    };
    assert_eq!(Path::new(command), Path::new("/etc/./x"));
    assert_eq!(a.timeout, Some(Duration::from_mins(2)));
    assert!(b.disabled && c.disabled);
    let takes = ["get_a", "get_b", "put", "drop"].map(|tool| a.takes(tool));
    assert_eq!(takes, [true, false, true, false]);
    assert!(c.takes("drop"));
    for (server, tool, hinted, expected) in [
        (a, "get_all", None, Effect::Read),
        (a, "put", Some(Effect::Idempotent), Effect::Idempotent),
        (a, "put", None, Effect::Write),
        (a, "drop", Some(Effect::Read), Effect::Write),
        (b, "any/thing", Some(Effect::Read), Effect::Read),
        (c, "get", Some(Effect::Read), Effect::Write),
    ] {
        assert_eq!(server.effect_of(tool, hinted), expected, "{tool}");
    }
    assert_eq!(config.passed_over.len(), 1);
    // What may be a secret is not shown.
    assert!(
        !format!(
            "{:?}",
            read(r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${KEY}"}}}}"#)
        )
        .contains("secret")
    );
}
