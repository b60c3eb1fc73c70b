//! The data of the page, compared with the log.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::show::scene::{events, log, names, plaincall, show};

/// Returns the data in the page of a log.
pub(crate) fn data_of(page: &str) -> Value {
    let (_, rest) = page
        .split_once(r#"<script type="application/json" id="data">"#)
        .unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// Returns the data in the page of a log with these events.
pub(crate) fn data(events: &[Value]) -> Value {
    let shown = show(log(events), &["--html", "-"]);
    assert_eq!(shown.status, Some(0), "{}", shown.stderr);
    data_of(&shown.stdout)
}

/// Returns the events of a call with this kind.
fn about<'a>(events: &'a [Value], kind: &str, call: usize) -> Vec<&'a Value> {
    let is_it = |event: &&Value| event["event"] == kind && event["call"] == call;
    events.iter().filter(is_it).collect()
}

/// Converts arguments of the log to those of the page.
fn pairs(arguments: &Value) -> Value {
    let pairs = arguments.as_object().unwrap().iter();
    pairs
        .map(|(pointer, text)| json!([pointer, text]))
        .collect()
}

#[test]
fn every_text_of_the_record() {
    for name in names() {
        let events = events(&name);
        let data = data(&events);
        let calls = data["calls"].as_array().unwrap();
        let count = events.iter().filter(|it| it["event"] == "call").count();
        assert_eq!(calls.len(), count, "{name}");
        assert_eq!(data["begin"]["plaincall"], events[0]["plaincall"], "{name}");
        assert_eq!(data["begin"]["tools"], events[0]["tools"], "{name}");
        for (number, call) in calls.iter().enumerate() {
            check_call(&name, &events, number, call);
        }
        check_replies(&name, &events, &data);
        check_usage(&name, &events, &data);
    }
}

fn check_call(name: &str, events: &[Value], number: usize, call: &Value) {
    let place = format!("{name}, call {number}");
    let appeared = about(events, "call", number)[0];
    assert_eq!(call["number"], number, "{place}");
    for key in ["id", "name"] {
        assert_eq!(call[key], appeared[key], "{place}");
    }
    assert_eq!(call["appeared_ms"], appeared["t_ms"], "{place}");
    let ids: Vec<&Value> = call["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    let written = appeared.get("dependencies").cloned().unwrap_or(json!([]));
    assert_eq!(json!(ids), written, "{place}");
    let ready = about(events, "ready", number);
    let is_held = ready
        .first()
        .is_some_and(|ready| ready.get("held").is_some());
    assert_eq!(call["held"].is_string(), is_held, "{place}");
    match about(events, "waiting", number).first() {
        Some(waiting) => {
            assert_eq!(call["arguments"], pairs(&waiting["arguments"]), "{place}");
            assert_eq!(call["complete_ms"], waiting["t_ms"], "{place}");
        }
        None => assert_eq!(call["arguments"], Value::Null, "{place}"),
    }
    if let Some(arguments) = about(events, "admitted", number)
        .first()
        .and_then(|it| it.get("arguments"))
    {
        assert_eq!(call["edited"], pairs(arguments), "{place}");
    }
    let starts = about(events, "start", number);
    let attempts = call["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), starts.len(), "{place}");
    for (attempt, start) in attempts.iter().zip(starts) {
        assert_eq!(attempt["number"], start["attempt"], "{place}");
        assert_eq!(attempt["started_ms"], start["t_ms"], "{place}");
    }
    for (attempt, back_off) in attempts.iter().zip(about(events, "back_off", number)) {
        assert_eq!(attempt["error"], back_off["error"], "{place}");
        assert_eq!(attempt["wait_ms"], back_off["wait_ms"], "{place}");
    }
    let result = about(events, "result", number)
        .first()
        .map_or(Value::Null, |it| (*it).clone());
    for key in ["status", "output", "error", "note", "because"] {
        assert_eq!(call[key], result[key], "{place}: {key}");
    }
    assert_eq!(call["ended_ms"], result["t_ms"], "{place}");
    assert_eq!(call["open"].is_null(), !result.is_null(), "{place}");
}

/// Checks the text of each reply outside its calls, and its calls in order, each once. Calls of subagents are not
/// included.
fn check_replies(name: &str, events: &[Value], data: &Value) {
    let turns = data["turns"].as_array().unwrap();
    let opened = events.iter().filter(|it| it["event"] == "turn").count();
    assert_eq!(turns.len(), opened, "{name}");
    let calls = data["calls"].as_array().unwrap().iter();
    let mut written = calls.filter(|call| call["parent"].is_null());
    for turn in turns {
        for segment in turn["segments"].as_array().unwrap() {
            if segment["type"] == "call" {
                assert_eq!(segment["call"], written.next().unwrap()["number"], "{name}");
            } else {
                let text = segment["text"].as_str().unwrap();
                assert!(!text.is_empty(), "{name}");
                let is_exact = turn["is_exact"] == true;
                assert!(!is_exact || !text.contains("GADGET"), "{name}: {text}");
            }
        }
    }
    assert_eq!(written.next(), None, "{name}");
}

/// Checks the tokens of each reply, and their sum.
fn check_usage(name: &str, events: &[Value], data: &Value) {
    let recorded = |kind: &str| -> Vec<Value> {
        let usages = events.iter().filter(|it| it["event"] == kind);
        usages.filter_map(|it| it.get("usage").cloned()).collect()
    };
    let found = |replies: Vec<&Value>| -> Vec<Value> {
        let usages = replies.iter().map(|it| it["usage"].clone());
        usages.filter(|usage| !usage.is_null()).collect()
    };
    let turns = data["turns"].as_array().unwrap();
    let of_turns = recorded("reply_end");
    assert_eq!(found(turns.iter().collect()), of_turns, "{name}");
    let calls = data["calls"].as_array().unwrap().iter();
    let replies = calls.filter_map(|call| call["replies"].as_array());
    let mut of_subagents = recorded("subagent_text");
    let sum = |key: &str| -> u64 {
        let all = of_turns.iter().chain(&of_subagents);
        all.filter_map(|usage| usage[key].as_u64()).sum()
    };
    for key in ["input", "cached", "output"] {
        let total = data["usage"][key].as_u64().unwrap_or_default();
        assert_eq!(total, sum(key), "{name}");
    }
    let mut shown = found(replies.flatten().collect());
    let by_input = |usage: &Value| usage["input"].as_u64();
    shown.sort_by_key(by_input);
    of_subagents.sort_by_key(by_input);
    assert_eq!(shown, of_subagents, "{name}");
}

/// A table of the facts that are derived from a log: for each call its dependencies as numbers, and whether it is
/// critical.
#[track_caller]
fn check(name: &str, expected: &str) {
    let data = data(&events(name));
    let mut found = String::new();
    for call in data["calls"].as_array().unwrap() {
        let dependencies = call["dependencies"].as_array().unwrap();
        let meant: Vec<String> = dependencies
            .iter()
            .map(|it| it["call"].to_string())
            .collect();
        let critical = if call["is_critical"] == true {
            " critical"
        } else {
            ""
        };
        let state = call["open"]["state"].as_str().unwrap_or_default();
        writeln!(
            found,
            "{} <- {}{critical} {state}",
            call["number"],
            meant.join(",")
        )
        .unwrap();
    }
    let words = |text: &str| -> Vec<Vec<String>> {
        let lines = text.lines();
        lines
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect()
    };
    assert_eq!(words(&found), words(expected), "{name}");
}

#[test]
fn dependencies_and_the_critical_path() {
    check(
        "three-calls",
        "0 <- critical\n1 <- 0 critical\n2 <- 1 critical",
    );
    // Call 8 of the second turn names an id of the first.
    check(
        "everything",
        "0 <-\n1 <- 0\n2 <-\n3 <- 2\n4 <- 3\n5 <-\n6 <-\n7 <- critical\n8 <- 0 critical",
    );
    check(
        "interrupted",
        "0 <-  running\n1 <-  back_off\n2 <-  running\n3 <- 0 waiting\n4 <-  ready\n5 <- 0,4 writing",
    );
    check("hostile", "0 <- critical\n1 <- 0,null");
}

#[test]
fn which_call_an_id_means() {
    let run = &events("no-calls")[0];
    let mut all = vec![run.clone()];
    let mut number = 0;
    // Turns of calls `id: dependencies`.
    for (turn, calls) in ["a:; b: a; a: b; c: a", "d: a, e; e: e; a: a; f: g, a; g:"]
        .iter()
        .enumerate()
    {
        all.push(json!({"event": "turn", "turn": turn, "t_ms": 0}));
        for call in calls.split(';') {
            let (id, names) = call.split_once(':').unwrap();
            let names: Vec<&str> = names
                .split(',')
                .map(str::trim)
                .filter(|it| !it.is_empty())
                .collect();
            all.push(json!({"event": "call", "call": number, "id": id.trim(), "name": "t", "dependencies": names, "t_ms": 0}));
            number += 1;
        }
    }
    let data = data(&all);
    let meant: Vec<String> = data["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            let meant = call["dependencies"].as_array().unwrap().iter();
            let meant: Vec<String> = meant.map(|it| it["call"].to_string()).collect();
            meant.join(",")
        })
        .collect();
    // In the first turn `a` is the first call with that id; in the second, the latest one before, then its own; `g`
    // comes later.
    assert_eq!(meant, ["", "0", "1", "0", "2,5", "5", "6", "8,6", ""]);
}

/// The page contains everything that a real run writes, and finds its calls at their positions in the text.
#[test]
fn a_real_run() {
    let directory = tempfile::tempdir().unwrap();
    let tools = r#"
[tools.say]
effect = "read"
parameters = { text = "string" }
shell = "printf %s {text}"
[tools.fail]
effect = "read"
shell = "echo no reason >&2; exit 7"
"#;
    let call = |header: &str, text: &str| {
        format!("!!!GADGET_START:{header}\n!!!ARG:text\n{text}\n!!!GADGET_END\n")
    };
    let reply = [
        "Before.\n".to_owned(),
        call("say:a", "alpha"),
        "Between.\n!!!GADGET_START:fail:b:a\n!!!GADGET_END\n".to_owned(),
        call("say:c:b", "never"),
        call("nosuch", "x"),
        "After.\n".to_owned(),
    ];
    std::fs::write(directory.path().join("tools.toml"), tools).unwrap();
    std::fs::write(directory.path().join("reply.txt"), reply.concat()).unwrap();
    let run = plaincall(
        directory.path(),
        &["run", "reply.txt", "--tools", "tools.toml", "--json"],
        b"",
    );
    let lines = run.stdout.lines();
    let events: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let data = data(&events);
    for (number, call) in data["calls"].as_array().unwrap().iter().enumerate() {
        check_call("a real run", &events, number, call);
    }
    let statuses: Vec<String> = data["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            format!(
                "{} {}",
                call["id"].as_str().unwrap(),
                call["status"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        statuses,
        ["a ok", "b error", "c skipped", "gadget_1 rejected"]
    );
    assert_eq!(data["turns"][0]["is_exact"], true);
    let segments = data["turns"][0]["segments"].as_array().unwrap();
    let shape: Vec<String> = segments
        .iter()
        .map(|segment| match segment["text"].as_str() {
            Some(text) => text.trim().to_owned(),
            None => segment["call"].to_string(),
        })
        .filter(|part| !part.is_empty())
        .collect();
    assert_eq!(shape, ["Before.", "0", "Between.", "1", "2", "3", "After."]);
    assert!(
        data["calls"][3]["source"]
            .as_str()
            .unwrap()
            .starts_with("!!!GADGET_START:nosuch")
    );
}

/// 3,000 calls: the page is small compared with the log, and contains everything.
#[test]
fn many_calls() {
    let mut all = vec![
        events("no-calls")[0].clone(),
        json!({"event": "turn", "turn": 0, "t_ms": 0}),
    ];
    let mut statuses = BTreeMap::new();
    for call in 0..3000_u64 {
        let (id, name) = (format!("c{call}"), "tool");
        let dependencies: Vec<String> = [1, 7, 50]
            .iter()
            .filter(|back| **back <= call)
            .map(|back| format!("c{}", call - back))
            .collect();
        let header = format!(
            "!!!GADGET_START:{name}:{id}:{}\n!!!ARG:n\n{call}\n!!!GADGET_END\n",
            dependencies.join(",")
        );
        let at = call * 2;
        all.push(json!({"event": "text", "text": header, "t_ms": at}));
        all.push(json!({"event": "call", "call": call, "id": id, "name": name, "dependencies": dependencies, "t_ms": at}));
        all.push(json!({"event": "waiting", "call": call, "id": id, "name": name, "arguments": {"n": call.to_string()}, "t_ms": at}));
        let status = if call % 3 == 2 { "error" } else { "ok" };
        *statuses.entry(status).or_insert(0) += 1;
        all.push(json!({"event": "start", "call": call, "id": id, "name": name, "attempt": 1, "t_ms": at}));
        all.push(json!({"event": "result", "call": call, "id": id, "name": name, "status": status, "output": format!("out {call}"), "t_ms": at + 1}));
    }
    let log = log(&all);
    let shown = show(&log, &["--html", "-"]);
    assert!(
        shown.stdout.len() < 2 * log.len() + 100_000,
        "{} bytes",
        shown.stdout.len()
    );
    let data = data_of(&shown.stdout);
    let calls = data["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 3000);
    assert_eq!(
        calls[2999]["dependencies"],
        json!([{"id": "c2998", "call": 2998}, {"id": "c2992", "call": 2992}, {"id": "c2949", "call": 2949}])
    );
    for (status, count) in statuses {
        let found = calls.iter().filter(|call| call["status"] == status).count();
        assert_eq!(found, count, "{status}");
    }
    let segments = data["turns"][0]["segments"].as_array().unwrap();
    let in_place = segments.iter().filter(|segment| segment["type"] == "call");
    assert_eq!(in_place.count(), 3000);
}
