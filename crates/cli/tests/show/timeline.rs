//! Timelines, and the calls that determined the duration of a run.

use serde_json::{Value, json};

use crate::show::data::data;
use crate::show::scene::{log, show};

/// The log of a run, from lines such as `b: a | 0 10 20 30`: the id, the dependencies, and when the call appeared,
/// was complete, started and ended, in milliseconds; `-` for events that did not happen.
fn record(text: &str, reply_end: u64) -> Vec<Value> {
    let begin = json!({
        "event": "run", "version": 1, "plaincall": "0.1.0", "began_unix_ms": 0, "policy": {}, "tools": {},
    });
    let mut events = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let (head, times) = line.split_once('|').unwrap();
        let (id, dependencies) = head.split_once(':').unwrap_or((head, ""));
        let dependencies: Vec<&str> = dependencies.split_whitespace().collect();
        let mut add = |event: &str, time: Option<&str>, more: Value| {
            let Some(time) = time.and_then(|time| time.parse::<u64>().ok()) else {
                return;
            };
            let mut event = json!({
                "event": event, "call": number, "id": id.trim(), "name": "tool", "t_ms": time,
            });
            let more = more.as_object().unwrap().clone();
            event.as_object_mut().unwrap().extend(more);
            events.push(event);
        };
        let times: Vec<&str> = times.split_whitespace().collect();
        let time = |place: usize| times.get(place).copied();
        add("call", time(0), json!({ "dependencies": dependencies }));
        add("waiting", time(1), json!({ "arguments": {} }));
        add("start", time(2), json!({ "attempt": 1 }));
        let status = if time(2) == Some("-") {
            "skipped"
        } else {
            "ok"
        };
        add("result", time(3), json!({ "status": status }));
    }
    events.push(json!({ "event": "reply_end", "stop": "natural", "t_ms": reply_end }));
    let turn = json!({ "event": "turn", "turn": 0, "t_ms": 0 });
    [vec![begin, turn], events].concat()
}

#[track_caller]
fn check(events: &[Value], expected: &[&str]) {
    let shown = show(log(events), &[]);
    assert_eq!(shown.status, Some(0), "{shown:#?}");
    let lines = shown.stdout.lines();
    let lines = lines.skip_while(|line| *line != "Timeline").skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with('.')).collect();
    assert_eq!(lines, expected, "{shown:#?}");
}

#[test]
fn pictures() {
    let text = "fetch | 0 100 100 1100\nmeasure: fetch | 200 300 1100 2000\nlook | 300 400 400 1000\nskip: fetch | 500 600 - 1100";
    check(
        &record(text, 800),
        &[
            "fetch    ....########################################                                          1.0 s",
            "measure          ....::::::::::::::::::::|:::::::::::####################################      0.9 s",
            "look                 ....========================                                              0.6 s",
            "skip                         ....::::::::|:::::::::::-                                       skipped",
            "         +-------+-------+-------+-------|-------+-------+-------+-------+-------+------+",
            "         0       200 ms  400 ms  600 ms  800 ms  1 s     1.2 s   1.4 s   1.6 s   1.8 s",
        ],
    );
}

/// A later turn begins at its own start, and calls without an end extend to the end of the log.
#[test]
fn a_turn_without_an_end() {
    let mut events = record(
        "ran | 10000 10300 10400\nwaited | 10100 10300\nwritten | 10200",
        0,
    );
    events[1]["t_ms"] = 10_000.into();
    let last = events.len() - 1;
    events[last] =
        json!({ "event": "retry", "call": 1, "id": "waited", "name": "tool", "t_ms": 10_800 });
    check(
        &events,
        &[
            "ran      ..............................::::::::::======================================== interrupted",
            "waited             ....................:::::::::::::::::::::::::::::::::::::::::::::::::: interrupted",
            "written                      ............................................................ interrupted",
            "         +---------+---------+---------+---------+---------+---------+---------+--------+",
            "         10 s      10.1 s    10.2 s    10.3 s    10.4 s    10.5 s    10.6 s    10.7 s",
        ],
    );
}

/// The times of a log may be any numbers.
#[test]
fn times_without_bounds() {
    let text = format!("a | {}", u64::MAX);
    let shown = show(log(&record(&text, u64::MAX)), &[]);
    assert_eq!(shown.status, Some(0), "{shown:#?}");
    assert!(shown.stdout.contains("Timeline"), "{shown:#?}");
}

#[test]
fn critical_calls() {
    for (text, expected) in [
        ("", ""),
        // Nothing ran.
        ("a | 0 10 - 20", ""),
        // The last dependency counts, and the longest of concurrent calls.
        (
            "a | 0 0 0 100\nb | 0 0 0 300\nc: a b | 0 0 300 400\nd | 0 0 0 390",
            "b c",
        ),
        // A call that could start when its text was complete has no cause.
        ("a | 0 0 0 100\nb: a | 0 200 200 300", "b"),
        // The cause of a call that waited for a slot is the call that freed the slot.
        ("a | 0 0 0 200\nb | 0 0 0 100\nc | 0 0 200 300", "a c"),
        (
            "a | 0 0 0 100\nb: a | 0 0 200 300\nc | 0 0 100 200",
            "a b c",
        ),
        // It waited for an approval, after its dependency.
        ("a | 0 0 0 100\nb: a | 0 0 900 950", "a b"),
        // Times that contradict each other end the search.
        ("a: b | 0 0 50 100\nb: a | 0 0 50 100", "a b"),
    ] {
        let data = data(&record(text, 0));
        let calls = data["calls"].as_array().unwrap().iter();
        let critical = calls.filter(|call| call["is_critical"] == true);
        let ids: Vec<&str> = critical.map(|call| call["id"].as_str().unwrap()).collect();
        assert_eq!(ids.join(" "), expected, "{text}");
    }
}

#[test]
fn moments_and_times() {
    for (seconds, expected) in [
        (0, "1970-01-01 00:00:00 UTC"),
        (951_782_399, "2000-02-28 23:59:59 UTC"),
        (951_782_400, "2000-02-29 00:00:00 UTC"),
        (1_709_251_199, "2024-02-29 23:59:59 UTC"),
        (1_735_689_599, "2024-12-31 23:59:59 UTC"),
        (1_795_179_845, "2026-11-20 13:04:05 UTC"),
        (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        (u64::MAX / 1000 - 1, "UTC"),
    ] {
        let mut events = record("", 0);
        events[0]["began_unix_ms"] = (seconds * 1000 + 999).into();
        let shown = show(log(&events), &[]).stdout;
        let (moment, _) = shown.split_once(" - ").unwrap();
        assert!(moment.ends_with(expected), "{moment}");
    }
    for (milliseconds, expected) in [
        (0, "0 ms"),
        (99, "99 ms"),
        (100, "0.1 s"),
        (1249, "1.2 s"),
        (59_900, "59.9 s"),
        (59_999, "1 min 00 s"),
        (125_400, "2 min 05 s"),
    ] {
        let mut events = record("", 0);
        events.push(json!({ "event": "resumed", "t_ms": milliseconds }));
        let shown = show(log(&events), &[]).stdout;
        let line = format!("resumed at {expected}\n");
        assert!(shown.contains(&line), "{shown}");
    }
}
