//! Runs that were interrupted and are resumed.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plaincall::{
    RunEvent,
    log::{LineEncoder, read_log},
};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::run::crash::Crash;
use crate::run::pseudo_terminal::{Options, Terminal};
use crate::run::scene::{Ended, PLAINCALL, Scene, call, wait_until};

/// A tool that appends a line, and keeps running if `stays` is set; and one that appends a line at every start and
/// may be started again.
const TOOLS: &str = r#"
[tools.append]
description = "Appends a line to a file."
effect = "write"
parameters = { text = "string", stays = "boolean?" }
shell = '''
echo "{text}" >> "{directory:tools}/lines"
echo $$ > "{directory:tools}/process"
if [ "{stays}" = true ] && [ ! -e "{directory:tools}/fast" ]; then sleep 1000; fi
echo "appended {text}"
'''

[tools.look]
effect = "read"
shell = '''
echo look >> "{directory:tools}/lines"
echo $$ > "{directory:tools}/process"
if [ ! -e "{directory:tools}/fast" ]; then sleep 1000; fi
echo seen
'''
"#;

fn reply() -> String {
    [
        "Text before.\n",
        &call("append:first", &[("text", "one")]),
        &call("append:second:first", &[("text", "two"), ("stays", "true")]),
        &call("append:third:second", &[("text", "three")]),
        "Text behind.\n",
    ]
    .concat()
}

/// A run that is killed while a call runs. A tool that keeps running the first time does not the next time.
fn interrupted(reply: &str, options: &[&str], is_at_work: impl Fn(&str) -> bool) -> Scene {
    let scene = Scene::with_tools(reply, TOOLS);
    let all = [
        &["reply.txt", "--tools", "tools.toml"],
        &["--log", "log", "--yes"][..],
        options,
    ]
    .concat();
    let mut child = scene.command(&all).spawn().unwrap();
    wait_until("the run reaches the point where it is killed", || {
        // A tool that only reads may run before its line is in the log.
        let log = fs::read_to_string(scene.path("log")).unwrap_or_default();
        log.contains("\"start\"") && is_at_work(&lines(&scene))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    end_tool(&scene);
    scene
}

/// A run whose second call was interrupted.
fn interrupted_in_second() -> Scene {
    let scene = interrupted(&reply(), &[], |lines| lines.contains("two"));
    assert_eq!(lines(&scene), "one\ntwo\n");
    scene
}

/// Returns the lines that the tools have written.
fn lines(scene: &Scene) -> String {
    fs::read_to_string(scene.path("lines")).unwrap_or_default()
}

/// Ends the tool that the killed run left behind.
fn end_tool(scene: &Scene) {
    fs::write(scene.path("fast"), "").unwrap();
    let number = || {
        let number = fs::read_to_string(scene.path("process")).unwrap_or_default();
        number.trim().parse().ok().and_then(Pid::from_raw)
    };
    wait_until("the tool has written its number", || number().is_some());
    // It may have ended because it need not stay.
    let _ = kill_process_group(number().unwrap(), Signal::KILL);
}

fn resume(scene: &Scene, options: &[&str]) -> Ended {
    let all = [&["--resume", "log"], options].concat();
    scene.command(&all).output().unwrap().into()
}

#[track_caller]
fn check(ended: &Ended, status: i32, expected: &[&str]) {
    assert_eq!(ended.status, Some(status), "{ended:#?}");
    let output = format!("{}{}", ended.stdout, ended.stderr);
    for part in expected {
        assert!(output.contains(part), "{part:?} is not in\n{output}");
    }
}

/// The minimum number of kills, for longer tests.
#[allow(
    clippy::disallowed_methods,
    reason = "the environment sets the number of kills"
)]
fn wanted_kills() -> u32 {
    let wanted = std::env::var("KILLS").ok();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// The times of kills, in milliseconds: some fixed ones, then random ones.
fn moments() -> impl Iterator<Item = [u64; 3]> {
    let fixed = [0, 15, 40, 70, 110, 160, 220, 300];
    let mut state: u64 = 20;
    let mut chance = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let random = std::iter::repeat_with(move || [chance(300), chance(100), chance(100)]);
    fixed.into_iter().map(|first| [first, 60, 90]).chain(random)
}

#[test]
fn killed_runs_resume_and_start_nothing_twice() {
    let wanted = wanted_kills();
    let (mut kills, mut resumed, mut words) = (0, 0, 0);
    for (round, moments) in moments().enumerate() {
        // On a busy machine many runs are killed before they start: then there are more of them, with more time.
        if round >= 8 && kills >= wanted && (resumed >= 4 || round >= 80) {
            break;
        }
        let moments = moments.map(|moment| moment * (1 + round as u64 / 16 % 4));
        let directory = tempfile::tempdir().unwrap();
        let environment = Scene::new("").environment();
        let environment = environment.map(|(name, value)| {
            let is_place = name == "TMPDIR";
            let place = || directory.path().as_os_str().to_owned();
            (name.into(), if is_place { place() } else { value })
        });
        let crash = Crash::new(Path::new(PLAINCALL), directory.path(), environment, 6).unwrap();
        match crash.survive(&moments.map(Duration::from_millis)) {
            Ok(trace) => {
                kills += trace.kills;
                resumed += trace.resumed;
                words += trace.words;
            }
            Err(what) => panic!("killed after {moments:?} ms: {what}"),
        }
    }
    println!(
        "killed {kills} times, resumed {resumed} times, with {words} answers: no call started twice, and no output is lost"
    );
    assert!(resumed >= 4, "resumed {resumed} times");
}

#[test]
fn without_a_word_a_call_is_left_open_and_can_be_spoken_for_later() {
    let scene = interrupted_in_second();
    for _ in 0..2 {
        let ended = resume(&scene, &[]);
        check(
            &ended,
            1,
            &[
                "the run was resumed",
                "+ first   append  ok",
                "? second  append  unknown",
                "- third   append  skipped",
                "the outcome of `second` (append) is unknown",
                "`--again ID`, `--done ID` or `--not-done ID`",
            ],
        );
        assert_eq!(lines(&scene), "one\ntwo\n");
    }
    // An approval is not such an answer.
    check(&resume(&scene, &["--yes"]), 1, &["append  unknown"]);
    let ended = resume(&scene, &["--done", "second"]);
    check(&ended, 0, &["3 calls: 3 ok"]);
    assert_eq!(lines(&scene), "one\ntwo\nthree\n");
    assert!(scene.is_clean(), "the run is over, and so is its directory");
}

#[test]
fn words() {
    for (word, status, expected, left) in [
        ("--again", 0, "3 calls: 3 ok", "one\ntwo\ntwo\nthree\n"),
        ("--done", 0, "3 calls: 3 ok", "one\ntwo\nthree\n"),
        (
            "--not-done",
            1,
            "3 calls: 1 ok, 1 failed, 1 skipped",
            "one\ntwo\n",
        ),
    ] {
        let scene = interrupted_in_second();
        check(&resume(&scene, &[word, "second"]), status, &[expected]);
        assert_eq!(lines(&scene), left, "{word}");
    }
}

#[test]
fn wrong_words() {
    let scene = interrupted_in_second();
    for (options, part) in [
        (
            &["--again", "third"][..],
            "these calls do: `second` (append)",
        ),
        (
            &["--again", "second", "--done", "second"],
            "contradict each other",
        ),
        (&["--concurrency", "2"], "cannot be used with"),
        (&["--dialect", "block"], "cannot be used with"),
        (&["--parallel"], "cannot be used with"),
        (&["--log", "other"], "cannot be used with"),
    ] {
        check(&resume(&scene, options), 2, &[part]);
    }
    check(&scene.run(&["--done", "x"]), 2, &["--resume"]);
    check(&resume(&scene, &["--done", "second"]), 0, &[]);
    let ended = resume(&scene, &["--done", "second"]);
    check(&ended, 2, &["needs recovery"]);
}

/// The log of a cancelled run that was killed immediately afterwards.
#[test]
fn a_cancelled_and_then_killed_run() {
    let scene = interrupted_in_second();
    let mut events = read_log(&fs::read(scene.path("log")).unwrap())
        .unwrap()
        .events;
    let cancel = serde_json::json!({
        "event": "cancel", "reason": "the run was cancelled", "timed_out": false,
        "t_ms": events.last().unwrap().at().as_millis(),
    });
    events.push(serde_json::from_value(cancel).unwrap());
    let mut encoder = LineEncoder::default();
    let log: String = events
        .iter()
        .map(|event| encoder.next_line(event))
        .collect();
    fs::write(scene.path("log"), &log).unwrap();
    let ended = resume(&scene, &["--again", "second"]);
    check(&ended, 2, &["was cancelled", "`--not-done second`"]);
    assert_eq!(fs::read_to_string(scene.path("log")).unwrap(), log);
    let expected = ["+ second  append  ok", "# third   append  cancelled"];
    check(&resume(&scene, &["--done", "second"]), 1, &expected);
    assert_eq!(lines(&scene), "one\ntwo\n");
}

/// A temporary directory does not outlive every crash.
#[test]
fn a_directory_that_is_gone() {
    let scene = interrupted_in_second();
    let log = fs::read(scene.path("log")).unwrap();
    let Some(RunEvent::Run(begin)) = read_log(&log).unwrap().events.into_iter().next() else {
        panic!("the log does not say how its run began");
    };
    fs::remove_dir_all(begin.directory.unwrap().path).unwrap();
    let ended = resume(&scene, &["--done", "second"]);
    check(&ended, 1, &["does not exist", "`--run-directory DIR`"]);
    assert_eq!(fs::read(scene.path("log")).unwrap(), log);
    let options = ["--done", "second", "--run-directory", "other"];
    check(&resume(&scene, &options), 0, &["3 calls: 3 ok"]);
    assert!(scene.path("other").is_dir());
}

#[test]
fn read_calls_run_again() {
    let reply = call("look:a", &[]);
    let scene = interrupted(&reply, &[], |lines| lines.contains("look"));
    let ended = resume(&scene, &[]);
    check(&ended, 0, &["started again", "seen", "1 call: 1 ok"]);
    assert_eq!(lines(&scene), "look\nlook\n");
}

#[test]
fn a_run_that_is_over_is_shown_and_not_run() {
    let scene = Scene::with_tools(call("append:a", &[("text", "one")]), TOOLS);
    check(&scene.run(&["--log", "log", "--yes"]), 0, &[]);
    for (options, part) in [
        (&[][..], "+ a  append  ok"),
        (&["--json"], r#""event":"turn_end""#),
    ] {
        let ended = resume(&scene, options);
        check(&ended, 0, &[part, "the run of this log has ended"]);
    }
    assert_eq!(lines(&scene), "one\n");
    let scene = Scene::with_tools(call("append:a", &[("text", "one")]), TOOLS);
    check(&scene.run(&["--log", "log"]), 1, &[]);
    check(&resume(&scene, &[]), 1, &["rejected", "has ended"]);
}

/// A run with an unread end of the reply: the whole reply, the scene, the log, and the number of bytes that were
/// read.
fn interrupted_while_reading() -> (String, Scene, Vec<u8>, usize) {
    let end = call("append:last", &[("text", "last")]);
    let whole = [&reply(), &*"More text.\n".repeat(2000), &end].concat();
    // The pace causes this.
    let scene = interrupted(&whole, &["--pace", "5000"], |lines| lines.contains("two"));
    let log = fs::read(scene.path("log")).unwrap();
    let mut read = 0;
    for event in plaincall::log::read_log(&log).unwrap().events {
        match event {
            plaincall::RunEvent::Text(delta) => read += delta.source.as_bytes().len(),
            plaincall::RunEvent::ReplyEnd(_) => panic!("the reply was over"),
            _ => {}
        }
    }
    (whole, scene, log, read)
}

#[test]
fn the_rest_of_the_reply_is_read() {
    let (whole, scene, log, _) = interrupted_while_reading();
    for (changed, part) in [
        (
            whole.replacen("two", "TWO", 1),
            "it differs from the text already read at byte",
        ),
        (whole[..50].to_owned(), "it ends after 50 bytes"),
    ] {
        fs::write(scene.path("reply.txt"), &changed).unwrap();
        let ended = resume(&scene, &["--done", "second"]);
        check(
            &ended,
            1,
            &["is not the reply that the run began with", part],
        );
    }
    fs::remove_file(scene.path("reply.txt")).unwrap();
    let ended = resume(&scene, &["--done", "second"]);
    check(&ended, 1, &["no such file"]);
    assert_eq!(lines(&scene), "one\ntwo\n", "nothing was run");
    assert_eq!(
        fs::read(scene.path("log")).unwrap(),
        log,
        "nothing was written"
    );

    // The reply has moved.
    fs::write(scene.path("moved.txt"), &whole).unwrap();
    let ended = resume(&scene, &["moved.txt", "--done", "second"]);
    check(&ended, 0, &["4 calls: 4 ok"]);
    let mut found: Vec<String> = lines(&scene).lines().map(str::to_owned).collect();
    found.sort();
    assert_eq!(found, ["last", "one", "three", "two"]);
}

#[test]
fn the_rest_of_the_reply_can_be_piped_in() {
    let (whole, scene, _, read) = interrupted_while_reading();
    let options = ["--resume", "log", "-", "--done", "second", "--complete"];
    let pipe = |text: &str| {
        let mut command = scene.command(&options);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A command that rejects its input does not read all of it.
        let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
        Ended::from(child.wait_with_output().unwrap())
    };
    // Running everything again would run its calls twice.
    check(&pipe(&whole), 2, &["pass only the rest"]);
    check(&pipe(&whole[read..]), 0, &["4 calls: 4 ok"]);
}

#[test]
fn the_rest_of_a_pipe_is_lost() {
    let scene = Scene::with_tools("", TOOLS);
    let options = ["--tools", "tools.toml", "--log", "log", "--yes"];
    let mut child = scene
        .command(&options)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let cut = call("append:cut", &[("text", "half")]);
    let text = reply() + cut.split_once("lf").unwrap().0;
    stdin.write_all(text.as_bytes()).unwrap();
    wait_until("the second call is at work", || {
        let log = fs::read_to_string(scene.path("log")).unwrap_or_default();
        lines(&scene).contains("two") && log.contains(r#""id":"cut""#)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    end_tool(&scene);
    let ended = resume(&scene, &["--done", "second"]);
    let expected = ["its unread part is lost", "4 calls: 3 ok, 1 rejected"];
    check(&ended, 1, &expected);
}

#[test]
fn the_tools_must_be_the_same() {
    let scene = interrupted_in_second();
    let changed = format!("{TOOLS}\n# A comment.\n");
    fs::write(scene.path("tools.toml"), changed).unwrap();
    let ended = resume(&scene, &["--done", "second"]);
    check(
        &ended,
        1,
        &["tools.toml has changed since the run began", "--tools"],
    );
    let other = TOOLS.replace("effect = \"write\"", "effect = \"read\"");
    fs::write(scene.path("other.toml"), other).unwrap();
    let ended = resume(&scene, &["--done", "second", "--tools", "other.toml"]);
    check(&ended, 1, &["the tool `append` has changed"]);
    let ended = resume(&scene, &["--done", "second", "--tools", "tools.toml"]);
    check(&ended, 0, &["3 calls: 3 ok"]);
}

#[test]
fn the_options_of_the_run_hold() {
    let reply = "--START:look:a\n--END\n--START:append:b:a\n--arg:text\nb";
    let options = [
        "--dialect=start=--START: end=--END arg=--arg:",
        "--unclosed=run",
    ];
    let scene = interrupted(reply, &options, |lines| lines.contains("look"));
    // The log contains the markers, the policy, and that tools may change something.
    check(&resume(&scene, &[]), 0, &["2 calls: 2 ok"]);
    assert_eq!(lines(&scene), "look\nlook\nb\n");
}

#[test]
fn unknown_outcomes_are_asked_on_the_terminal() {
    for (key, typed, status, expected, left) in [
        ("r", None, 0, "3 calls: 3 ok", "one\ntwo\ntwo\nthree\n"),
        (
            "d",
            Some(("Output for the model (optional):", "as it should")),
            0,
            "3 calls: 3 ok",
            "one\ntwo\nthree\n",
        ),
        (
            "n",
            Some(("Note for the model (optional):", "the disk was full")),
            1,
            "1 ok, 1 failed, 1 skipped",
            "one\ntwo\n",
        ),
        ("l", None, 1, "1 ok, 1 skipped, 1 unknown", "one\ntwo\n"),
    ] {
        let scene = interrupted_in_second();
        let options = Options {
            arguments: &["--resume", "log"],
            rows: 40,
            ..Options::default()
        };
        let terminal = Terminal::start(&scene, options);
        terminal.wait_for("What happened to this call?");
        for part in [
            "Text behind.",
            "the run was resumed",
            "second was interrupted while running append, which may have changed something",
            "It started",
            "UTC",
            "text = two",
            "$ echo",
            "✓ first  append  text=one  ok",
        ] {
            terminal.wait_for(part);
        }
        terminal.type_keys(key);
        if let Some((question, answer)) = typed {
            terminal.wait_for(question);
            terminal.type_keys(answer);
            terminal.type_keys("\r");
        }
        let (found, all) = terminal.finish();
        assert_eq!(found, Some(status), "{key}: {all}");
        assert!(all.contains(expected), "{key}: {all}");
        assert_eq!(lines(&scene), left, "{key}");
        if let Some((_, answer)) = typed {
            let log = fs::read_to_string(scene.path("log")).unwrap();
            assert!(log.contains(answer), "{key}: {log}");
        }
    }
}

#[test]
fn quitting_leaves_the_call_open() {
    for (key, status) in [("q", 1), ("\u{3}", 130)] {
        let scene = interrupted_in_second();
        let options = Options {
            arguments: &["--resume", "log"],
            rows: 40,
            ..Options::default()
        };
        let terminal = Terminal::start(&scene, options);
        terminal.wait_for("What happened to this call?");
        terminal.type_keys(key);
        let (found, all) = terminal.finish();
        assert_eq!(found, Some(status), "{key:?}: {all}");
        assert!(all.contains("1 cancelled, 1 unknown"), "{key:?}: {all}");
        // A cancelled call stays cancelled, and the question is still open.
        let ended = resume(&scene, &[]);
        check(&ended, 1, &["1 cancelled, 1 unknown", "append  unknown"]);
        let ended = resume(&scene, &["--done", "second"]);
        check(&ended, 1, &["2 ok, 1 cancelled"]);
        assert_eq!(lines(&scene), "one\ntwo\n");
    }
}
