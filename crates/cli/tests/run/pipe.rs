//! The standard output and the exit status of a run without a terminal.

use snapbox::assert_data_eq;
use snapbox::str;

use crate::run::scene::{Ended, Scene, call};

/// Runs the reply. The output must contain all of `expected`, in which `[..]` matches any text.
#[track_caller]
fn check(reply: &str, options: &[&str], status: i32, expected: &[&str]) -> Ended {
    let scene = Scene::new(reply);
    let ended = scene.run(options);
    ended.assert(status, expected);
    assert!(scene.is_clean(), "the run left its directory behind");
    ended
}

impl Ended {
    #[track_caller]
    fn assert(&self, status: i32, expected: &[&str]) {
        assert_eq!(self.status, Some(status), "{self:#?}");
        let output = format!("{}{}", self.stdout, self.stderr);
        for part in expected {
            assert!(output.contains(part), "{part:?} is not in\n{output}");
        }
    }
}

#[test]
fn a_run_in_lines() {
    let reply = [
        "Some text.\n",
        &call("nap:first", &[("seconds", "0.3")]),
        &call("say:second:first", &[("text", "two\nlines")]),
        &call("fail:third:second", &[("reason", "no reason")]),
        &call("say:fourth:third", &[("text", "never")]),
        &call("say:fifth", &[("txt", "x")]),
    ]
    .concat();
    let ended = check(&reply, &[], 1, &[]);
    // Only results go to standard output.
    assert_data_eq!(
        &ended.stderr,
        str![[r"
! fifth  say  rejected
> first  nap  started
+ first  nap  ok [..] s
> second  say  started
+ second  say  ok [..]s
> third  fail  started
x third  fail  failed after [..]s
- fourth  say  skipped

"]]
    );
    assert_data_eq!(
        &ended.stdout,
        str![[r"
Results
+ first   nap   ok [..] s
+ second  say   ok [..]s
  two
  lines
x third   fail  failed after [..]s
  the command ended with exit status 7; its standard error:
  no reason
  something before
- fourth  say   skipped   not run: it depends on `third`, which failed
! fifth   say   rejected  invalid arguments: [..]

Timeline
first   [..]
second  [..]
third   [..]
fourth  [..] skipped
fifth   [..] rejected
        [..]
        0[..]
. writing   : waiting   = running   # critical path   | reply complete, [..]s

5 calls: 2 ok, 1 failed, 1 skipped, 1 rejected - [..]

"]]
    );
    assert!(ended.stdout.is_ascii());
}

#[test]
fn no_calls() {
    check(
        "Just text.\n",
        &[],
        0,
        &["No calls found. `plaincall check` lists near misses."],
    );
    // Near misses outside calls are reported.
    let near = "!!!gadget_start:say\n🔧[say]\n<tool_call>{\"name\": \"say\"}</tool_call>\n";
    let notes = [
        "line 1: unknown marker `!!!gadget_start:`; did you mean `!!!GADGET_START:`?",
        "line 2: unknown marker `🔧[`; did you mean `🛠️[`?",
        "line 3: `<tool_call>` starts a call in an unsupported format",
    ];
    check(near, &[], 0, &notes);
    let quoted = call("say:a", &[("text", "!!!gadget_start:x\n<tool_call>{}")]);
    let ended = check(&quoted, &[], 0, &[]);
    assert!(!ended.stderr.contains("note:"), "{}", ended.stderr);
    check(
        "",
        &[],
        0,
        &["No calls found. `plaincall check` lists near misses."],
    );
}

#[test]
fn long_outputs_are_cut_unless_asked_for() {
    let reply = call("count:c", &[("to", "50")]);
    check(
        &reply,
        &[],
        0,
        &["  line 40\n", "~ 10 more lines; use --full to show all"],
    );
    check(&reply, &["--full"], 0, &["  line 50\n"]);
    // A line may also be long.
    let reply = call("say:s", &[("text", &"x".repeat(10_000))]);
    let cut = check(
        &reply,
        &[],
        0,
        &["xx~\n  ~ 1 more line; use --full to show all\n"],
    );
    assert!(cut.stdout.lines().all(|line| line.len() <= 2002));
    check(&reply, &["--full"], 0, &[&"x".repeat(10_000)]);
}

#[test]
fn dependents_read_results() {
    let reply = [call("say:a", &[("text", "alpha")]), call("listen:b:a", &[])].concat();
    let received = r#""dependencies":[{"id":"a","name":"say","status":"ok","output":"alpha/n"}]"#;
    check(&reply, &[], 0, &[&received.replace("/n", "\\n")]);
}

#[test]
fn tools_that_may_change_something_need_a_terminal_or_yes() {
    for tool in [
        call("deploy:d", &[("host", "h")]),
        call("undeclared:d", &[]),
    ] {
        let ended = check(&tool, &[], 1, &["! d  ", "may change something"]);
        // The advice is for the user. The model reads the reason only.
        let advice = "no terminal is available; to approve all such calls, use `--yes`";
        assert!(ended.stderr.contains(advice), "{ended:#?}");
        assert!(ended.stdout.contains("no one can be asked"), "{ended:#?}");
        assert!(!ended.stdout.contains("--yes"), "{ended:#?}");
        check(&tool, &["--yes"], 0, &["+ d  "]);
    }
    // The answer is never read from standard input.
    let scene = Scene::new("");
    let reply = call("deploy:d", &[("host", "h")]) + "y\ny\n";
    scene
        .pipe(reply.as_bytes(), &[])
        .assert(1, &["rejected", "--yes"]);
}

#[test]
fn whether_the_text_is_whole() {
    let cut = "!!!GADGET_START:say:a\n!!!ARG:text\nx";
    check(cut, &[], 0, &["1 call: 1 ok"]);
    let scene = Scene::new("");
    scene.pipe(cut.as_bytes(), &[]).assert(
        1,
        &["rejected", "`!!!GADGET_END`", "note: ", "`--complete`"],
    );
    scene.pipe(cut.as_bytes(), &["-"]).assert(1, &["rejected"]);
    scene
        .pipe(cut.as_bytes(), &["--complete"])
        .assert(0, &["1 call: 1 ok"]);
    // A file on standard input counts as a file.
    let scene = Scene::new(cut);
    let file = std::fs::File::open(scene.path("reply.txt")).unwrap();
    let command = &mut scene.command(&["-", "--tools", "tools.toml"]);
    let ended: Ended = command.stdin(file).output().unwrap().into();
    ended.assert(0, &["1 call: 1 ok"]);
}

#[test]
fn the_emoji_syntax() {
    let save = "🛠️[save a.txt]\nhello\n🛠️[/end]\n";
    check(save, &[], 0, &["+ call_1  save  ok ", " 6\n"]);
    let unclosed = "🛠️[save a.txt]\nhello\n";
    check(unclosed, &[], 1, &["rejected"]);
    check(unclosed, &["--unclosed", "run"], 0, &["1 call: 1 ok"]);
    let two = "🛠️[fail x]🛠️[/end]\n🛠️[save a.txt]\nhello🛠️[/end]\n";
    check(two, &[], 1, &["2 calls: 1 ok, 1 failed"]);
    check(two, &["--stop-on-error"], 1, &["1 failed, 1 skipped"]);
    let naps = "🛠️[save a]🛠️[/end]\n🛠️[nap 0.5]🛠️[/end]\n🛠️[save b]🛠️[/end]\n";
    let order = |options: &[&str]| {
        let lines = check(naps, options, 0, &[]).stderr;
        let place = |what: &str| lines.find(what).unwrap();
        let last = lines.rfind("> save  started").unwrap();
        place("+ nap  ok") < last
    };
    assert!(order(&[]), "calls run in the order of writing");
    assert!(!order(&["--parallel"]), "the order is lifted");
    let scene = Scene::new(two);
    let ended = scene.run(&["--parallel", "--stop-on-error"]);
    ended.assert(2, &["cannot be used with"]);
}

#[test]
fn concurrency() {
    let naps: String = (0..3)
        .map(|n| call(&format!("nap:n{n}"), &[("seconds", "0.5")]))
        .collect();
    let lines = check(&naps, &["--concurrency", "1"], 0, &[]).stderr;
    let place = |what: &str| lines.find(what).unwrap();
    assert!(place("n0  nap  ok") < place("n1  nap  started"));
    assert!(place("n1  nap  ok") < place("n2  nap  started"));
    let lines = check(&naps, &[], 0, &[]).stderr;
    let place = |what: &str| lines.find(what).unwrap();
    assert!(place("n2  nap  started") < place("n0  nap  ok"));
    let ended = Scene::new("").run(&["--concurrency", "many"]);
    ended.assert(2, &["expected an integer; 0 means no limit"]);
}

#[test]
fn calls_start_while_the_reply_is_read() {
    let reply = call("say:early", &[("text", "x")]) + &"More text.\n".repeat(40);
    let lines = check(&reply, &["--pace", "800", "--json"], 0, &[]).stdout;
    let place = |what: &str| lines.find(what).unwrap();
    assert!(place("\"event\":\"result\"") < place("\"event\":\"reply_end\""));
}

#[test]
fn pace() {
    let reply = "x".repeat(500);
    let begun = std::time::Instant::now();
    check(&reply, &["--pace", "1000"], 0, &[]);
    let taken = begun.elapsed().as_millis();
    assert!((400..3000).contains(&taken), "{taken} ms");
}

#[test]
fn the_directory() {
    let scene = Scene::new(call("save:s", &[("file", "x.txt"), ("text", "kept")]));
    scene.run(&["--run-directory", "a/b"]).assert(0, &[]);
    assert_eq!(
        std::fs::read_to_string(scene.path("a/b/x.txt")).unwrap(),
        "kept"
    );
    // A temporary directory is removed, and its files are listed.
    let removed = "note: the run's scratch directory was removed, with `x.txt`; to keep files, use `--run-directory DIR`";
    scene.run(&[]).assert(0, &[removed]);
    scene.run(&["--json"]).assert(0, &[removed]);
    let ended = scene.run(&["--run-directory", "a/b"]);
    assert!(!ended.stderr.contains("removed"), "{ended:?}");
    let ended = Scene::new(call("say:s", &[("text", "x")])).run(&[]);
    assert!(!ended.stderr.contains("removed"), "{ended:?}");
    // A file is not a directory.
    scene
        .run(&["--run-directory", "reply.txt"])
        .assert(1, &["reply.txt is a file; name a directory"]);
}

#[test]
fn environment_of_a_tool() {
    let scene = Scene::new(call("environment:e", &[]));
    let mut command = scene.command(&["reply.txt", "--tools", "tools.toml", "--full"]);
    let ended: Ended = command.env("SECRET_KEY", "hidden").output().unwrap().into();
    ended.assert(0, &["PLAINCALL_ID=e", "PATH="]);
    assert!(!ended.stdout.contains("SECRET_KEY"), "{}", ended.stdout);
}

#[test]
fn input_of_every_kind() {
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    Scene::new(bytes).run(&[]).assert(0, &["No calls found"]);
    // Invalid UTF-8 in a value becomes U+FFFD; the call is valid.
    let mut half = call("say:a", &[("text", "@")]).into_bytes();
    let at = half.iter().position(|&byte| byte == b'@').unwrap();
    half.splice(at..=at, [b'x', 0xf0, 0x9f]);
    Scene::new(half).run(&[]).assert(0, &["x\u{fffd}"]);
    // A tool that never reads, with an input that fills every pipe.
    let long = "y".repeat(3_000_000);
    Scene::new(call("listen:d", &[("x", &long)]))
        .run(&[])
        .assert(1, &["rejected"]);
    let unread =
        call("say:a", &[("text", &"z".repeat(70_000))]) + &call("unread:d:a", &[("text", "x")]);
    Scene::new(unread).run(&[]).assert(0, &["2 calls: 2 ok"]);
    // Control characters cannot harm a reader of the output.
    let ended = Scene::new(call("binary:b", &[])).run(&[]);
    ended.assert(0, &["␀\u{fffd}␛[31mred␇"]);
    assert!(!ended.stdout.contains('\u{1b}'));
}

#[test]
fn colours() {
    let reply = call("say:a", &[("text", "x")]);
    let plain = check(&reply, &[], 0, &[]).stdout;
    assert!(!plain.contains('\u{1b}'));
    let coloured = check(&reply, &["--color", "always"], 0, &[]).stdout;
    assert!(coloured.contains("\u{1b}["));
}

#[test]
fn a_closed_pipe_stops_nothing() {
    let scene = Scene::new(
        call("nap:n", &[("seconds", "0.3")])
            + &call("save:s:n", &[("file", "x"), ("text", "done")]),
    );
    let options = [
        "reply.txt",
        "--tools",
        "tools.toml",
        "--run-directory",
        "kept",
    ];
    let mut child = scene.command(&options).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(
        std::fs::read_to_string(scene.path("kept/x")).unwrap(),
        "done"
    );
}

#[test]
fn mistakes() {
    let reply = call("say:a", &[("text", "x")]);
    let with_tools = |tools: &[u8], expected: &[&str]| {
        Scene::with_tools(&reply, tools)
            .run(&[])
            .assert(1, expected);
    };
    with_tools(b"", &["tools.toml:1:1", "defines no tool"]);
    with_tools(
        b"[tools.say]\nefect = \"read\"\ncommand = [\"x\"]\n",
        &[
            "tools.toml:2:1",
            "efect = \"read\"",
            "^^^^^",
            "unknown key `efect`",
        ],
    );
    with_tools(b"[tools.say\n", &["tools.toml:1:"]);
    with_tools(b"# ok\n# \xff\n", &["not UTF-8", "line 2"]);
    with_tools(
        b"[tools.say]\nshell = \"x {nothing}\"\n",
        &["tools.toml:2:", "`{nothing}`"],
    );
    with_tools(
        b"[tools.say]\neffect = \"read\"\nparameters = { text = \"string\" }\ncommand = [\"no-such-program\"]\n",
        &["`no-such-program` was not found", "1 failed"],
    );

    let scene = Scene::new(&reply);
    let run = |arguments: &[&str]| -> Ended { scene.command(arguments).output().unwrap().into() };
    let tools = ["--tools", "tools.toml"];
    run(&["reply.txt"]).assert(2, &["--tools"]);
    run(&["--tools", "-"]).assert(2, &["cannot both come from standard input"]);
    run(&["reply.txt", "--tools", "."]).assert(1, &["is a directory"]);
    run(&["reply.txt", "--tools", "none.toml"]).assert(1, &["no such file"]);
    run(&[&["none.txt"], &tools[..]].concat()).assert(1, &["none.txt", "no such file"]);
    run(&[&["."], &tools[..]].concat()).assert(1, &["is a directory"]);
    for pace in ["0", "fast"] {
        run(&[&["reply.txt", "--pace", pace], &tools[..]].concat())
            .assert(2, &["--pace", "an integer of at least 1"]);
    }
    run(&[&["reply.txt", "--dialect", "key=a-b"], &tools[..]].concat()).assert(2, &["key"]);
    run(&[&["reply.txt", "--dialect", "start=x"], &tools[..]].concat()).assert(2, &[]);

    let calls = [
        call("say:a:b", &[("text", "x")]),
        call("say:b:a", &[("text", "x")]),
        call("say:c:c", &[("text", "x")]),
        call("say:d:missing", &[("text", "x")]),
        call("sya:e", &[("text", "x")]),
        call("say:f", &[("text", "fine")]),
        call("say:f", &[("text", "x")]),
    ];
    let expected = [
        "7 calls: 1 ok, 6 rejected",
        "these calls wait for each other: `a`, `b`",
        "`missing`",
        "unknown tool `sya`; did you mean `say`?",
        "fine",
    ];
    check(&calls.concat(), &[], 1, &expected);
}
