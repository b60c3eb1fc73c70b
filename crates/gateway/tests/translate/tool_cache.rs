//! Tools that were offered before are not parsed again.

use plaincall_gateway::translation::{
    Adapter, Ask, Host, ReplyPlan, ToolCache, Translation, translate,
};
use plaincall_gateway::{ModelSettings, Secret};
use serde_json::json;

/// Returns the plan of a request that offers one tool.
fn plan(offers: &ToolCache, name: &str, description: &str) -> ReplyPlan {
    let tool = json!({"type": "function", "function": {"name": name, "description": description}});
    let body = json!({"messages": [], "tools": [tool]}).to_string();
    let request = plaincall_wire::read(body.as_bytes()).unwrap();
    let secret = Secret::new("secret");
    match translate(request, &ModelSettings::default(), &secret, offers) {
        Ok(Translation::Changed { plan, .. }) => *plan,
        other => panic!("it offers a tool: {other:?}"),
    }
}

/// Returns whether both plans share their tools.
fn is_same(one: &ReplyPlan, other: &ReplyPlan) -> bool {
    std::ptr::eq(one.offered_tools(), other.offered_tools())
}

#[test]
fn the_last_are_kept() {
    let offers = ToolCache::new();
    let read = |name: &str, description: &str| plan(&offers, name, description);
    let plans: Vec<ReplyPlan> = (0..256).map(|n| read(&format!("a{n}"), "")).collect();
    let is_kept = |n: usize| is_same(&read(&format!("a{n}"), ""), &plans[n]);
    // One more evicts the least recently used.
    assert!(is_kept(0));
    assert!(is_same(&read("b", ""), &read("b", "")));
    assert!(is_kept(0) && is_kept(2) && !is_kept(1));

    // Their texts have at most 512 KiB together.
    let long = "x".repeat((512 << 10) / 3);
    let names = ["c", "d", "e", "f"];
    let plans = names.map(|name| read(name, &long));
    let is_kept = |n: usize| is_same(&read(names[n], &long), &plans[n]);
    assert!(is_kept(3) && is_kept(2) && !is_kept(1));
    // A longer one is parsed nevertheless.
    let longer = "x".repeat(512 << 10);
    assert!(!is_same(&read("g", &longer), &read("g", &longer)));
}

/// A request is read without its tools if they are known, which makes no difference, wherever the same text is in the body.
#[test]
fn known_tools_make_no_difference() {
    const TOOLS: &str = r#"[{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]"#;
    const OTHER: &str = r#"[{"type":"function","function":{"name":"now"}}]"#;
    const MESSAGES: &str = r#""messages":[{"role":"user","content":"x"}]"#;
    let asked = |adapter: &Adapter, body: &str| {
        let host = Host::new(Secret::new("seed"), 0);
        match adapter.ask("/v1/chat/completions", body.as_bytes(), host) {
            Ask::Asked(asked) => String::from_utf8(asked.body().to_vec()).unwrap(),
            Ask::Refused(error) => format!("{} {}", error.status, error.message()),
            _ => "unchanged".to_owned(),
        }
    };
    let new = || Adapter::new(Secret::new("secret"), ModelSettings::default());
    let warm = new();
    let first = asked(&warm, &format!(r#"{{"tools":{TOOLS},{MESSAGES}}}"#));
    assert!(first.contains("## read"), "{first}");
    for body in [
        format!(r#"{{"tools":{TOOLS},{MESSAGES}}}"#),
        format!("{{{MESSAGES}, \"tools\": \n{TOOLS} }}"),
        format!(r#"{{"metadata":{{"tools":{TOOLS}}},{MESSAGES}}}"#),
        format!(r#"{{"metadata":{{"tools":{TOOLS}}},"tools":{OTHER},{MESSAGES}}}"#),
        format!(r#"{{"metadata":{{"tools":{TOOLS}}},"tools":0,{MESSAGES}}}"#),
        format!(r#"{{"tools":{TOOLS},"tools":{OTHER},{MESSAGES}}}"#),
        format!(r#"{{"tools":{OTHER},"tools":{TOOLS},{MESSAGES}}}"#),
        format!(r#"{{"tools":{TOOLS},"tools":null,{MESSAGES}}}"#),
        format!(r#"{{"a\"tools":{TOOLS},"tools":{OTHER},{MESSAGES}}}"#),
        format!(r#"{{"tools":{TOOLS}.5,{MESSAGES}}}"#),
        format!(r#"{{"tools":{TOOLS}"#),
        format!(r#"{{"tools":{TOOLS},"messages":[{{"role":1}}]}}"#),
    ] {
        assert_eq!(asked(&warm, &body), asked(&new(), &body), "{body}");
    }
}
