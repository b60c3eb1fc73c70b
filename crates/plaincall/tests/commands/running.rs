//! The arguments, environment, input and result of a command.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use plaincall::tool::{Arguments, Parameter, ParameterKind, ToolSpec};
use plaincall::{Command, Stop, Tool};

use crate::commands::scene::{builder, call, check, outcome, results, spec, tool};

const SHOW: &str = "for element; do printf '[%s]' \"$element\"; done";

#[tokio::test]
async fn each_element_is_one_argument() {
    let nasty = "it's \"quoted\"\n$(touch /tmp/owned) `id` ; * \\ ${HOME} -n";
    let show = |elements: &[&str]| {
        let fixed = ["sh", "-c", SHOW, "sh"];
        Command::new(fixed.iter().chain(elements).copied())
    };
    check(show(&["{a}"]), &[("a", nasty)], &format!("ok: [{nasty}]")).await;
    check(
        show(&["x={a}.", "{b}{a}"]),
        &[("a", nasty), ("b", "")],
        &format!("ok: [x={nasty}.][{nasty}]"),
    )
    .await;
    // The element of an omitted argument is omitted.
    check(show(&["{a}", "-b", "{b}", "end"]), &[], "ok: [-b][end]").await;
    check(show(&["{a}", "{b}"]), &[("a", ""), ("b", " ")], "ok: [][ ]").await;
    check(
        show(&["{{a}}", "{\"a\": {b}}", "{}"]),
        &[("b", "1")],
        "ok: [{a}][{\"a\": 1}][{}]",
    )
    .await;
    check(show(&["--"]), &[("a", "--help")], "ok: [--]").await;
}

#[tokio::test]
async fn a_script_gets_arguments_as_parameters() {
    let nasty = "it's \"quoted\"\n$(touch /tmp/owned) `id`; exit 1; * ${HOME}";
    let show = |arguments: &str| Command::shell(format!("show() {{ {SHOW}; }}; show {arguments}"));
    check(
        show("\"{a}\" \"x{b}y\" \"{a}\""),
        &[("a", nasty), ("b", "")],
        &format!("ok: [{nasty}][xy][{nasty}]"),
    )
    .await;
    check(
        show("\"{a}\" {b}"),
        &[("b", "two words")],
        "ok: [][two][words]",
    )
    .await;
    check(
        show("\"{a}\" \"${a}\" '{{a}}' $#"),
        &[("a", "x")],
        "ok: [x][][{a}][1]",
    )
    .await;
}

#[tokio::test]
async fn arguments_and_dependencies_are_on_the_standard_input() {
    let tool = Tool::command(
        ToolSpec::new("t")
            .parameter(Parameter::new("a", ParameterKind::String).optional())
            .parameter(Parameter::new("n", ParameterKind::Integer).optional())
            .parameter(Parameter::new("list", ParameterKind::Array).optional()),
        Command::new(["cat"]),
    )
    .unwrap();
    let text = call("one", "", &[("a", "007"), ("n", "007")])
        + &call("two", "one", &[("list/0", "x"), ("list/1", "y")])
        + &call("three", "two,one", &[]);
    let results = results(tool, &text).await;
    assert!(results.all_ok(), "{results:?}");
    let output = |place: usize| results[place].output.as_deref().unwrap();
    assert_eq!(
        output(0),
        "{\"id\":\"one\",\"name\":\"t\",\"arguments\":{\"a\":\"007\",\"n\":7},\"dependencies\":[]}\n"
    );
    let two: serde_json::Value = serde_json::from_str(output(1)).unwrap();
    assert_eq!(
        two,
        serde_json::json!({
            "id": "two",
            "name": "t",
            "arguments": {"list": ["x", "y"]},
            "dependencies": [{"id": "one", "name": "t", "status": "ok", "output": output(0)}],
        })
    );
    let three: serde_json::Value = serde_json::from_str(output(2)).unwrap();
    assert_eq!(three["dependencies"][0]["id"], "two");
    assert_eq!(three["dependencies"][0]["output"], output(1));
    assert_eq!(three["dependencies"][1]["id"], "one");
}

#[tokio::test]
async fn environment_variables() {
    // The shell sets `PWD` and others itself.
    let env = "env | grep -v -e ^PWD= -e ^OLDPWD= -e ^SHLVL= -e ^_= -e ^PATH= | sed 's|=/.*plaincall-.*|=…|' | sort";
    check(
        Command::shell(env),
        &[],
        "ok: LC_ALL=C\nPLAINCALL_ID=x\nPLAINCALL_NAME=t\nPLAINCALL_RUN_DIRECTORY=…\n",
    )
    .await;
    check(
        Command::shell(format!("{env} | grep SECRET")).environment(["SECRET", "ABSENT"]),
        &[],
        "ok: SECRET=s\n",
    )
    .await;
    let in_run =
        "test \"$(pwd -P)\" = \"$(cd \"$PLAINCALL_RUN_DIRECTORY\" && pwd -P)\" && echo yes";
    check(
        Command::shell(in_run).directory("{directory:run}"),
        &[],
        "ok: yes\n",
    )
    .await;
    check(
        Command::shell(format!("cd / && cd {{directory:run}} && {in_run}")),
        &[],
        "ok: yes\n",
    )
    .await;
    check(Command::shell("pwd").directory("/"), &[], "ok: /\n").await;
    let tools = std::env::temp_dir();
    check(
        Command::shell("test -d \"{directory:tools}\" && echo yes")
            .directory("{directory:tools}/.")
            .tools_directory(tools),
        &[],
        "ok: yes\n",
    )
    .await;
}

#[tokio::test]
async fn working_directories() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for name in ["current/sub", "tools/sub"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    let print = [
        "sh",
        "-c",
        "pwd; echo $1 $2",
        "sh",
        "{directory:current}",
        "{directory:tools}/x",
    ];
    for (directory, expected) in [
        (None, "/current"),
        (Some("{directory:current}"), "/current"),
        (Some("{directory:current}/sub"), "/current/sub"),
        (Some("{directory:tools}"), "/tools"),
        (Some("sub"), "/tools/sub"),
        (Some("../current"), "/current"),
        (Some("{directory:run}"), "/run"),
    ] {
        let mut command = Command::new(print).tools_directory(folder.join("tools"));
        if let Some(directory) = directory {
            command = command.directory(directory);
        }
        let mut run = builder(tool(command))
            .current_directory(folder.join("current"))
            .directory(folder.join("run"))
            .build()
            .unwrap();
        let mut turn = run.turn();
        turn.feed(call("x", "", &[]));
        let results = turn.finish(Stop::Natural).await;
        let shown = folder.display();
        assert_eq!(
            results[0].output.as_deref(),
            Some(&*format!(
                "{shown}{expected}\n{shown}/current {shown}/tools/x\n"
            )),
            "{directory:?}"
        );
    }
    // A missing directory is an error before anything runs.
    for directory in [folder.join("missing"), "current".into()] {
        let built = builder(tool(Command::new(["true"])))
            .current_directory(&directory)
            .build();
        let error = built.unwrap_err().to_string();
        let begin = format!(
            "the working directory of the tools cannot be used: {}: ",
            directory.display()
        );
        assert!(error.starts_with(&begin), "{error}");
    }
}

#[tokio::test]
async fn failures() {
    check(
        Command::shell("echo out; echo err >&2; exit 3"),
        &[],
        "error: the command ended with exit status 3; its standard error:\nerr | out\n",
    )
    .await;
    check(
        Command::shell("exit 1"),
        &[],
        "error: the command ended with exit status 1",
    )
    .await;
    check(
        Command::shell("kill -KILL $$"),
        &[],
        "error: the command was killed by signal 9 (SIGKILL)",
    )
    .await;
    check(
        Command::shell("kill -TERM $$"),
        &[],
        "error: the command was killed by signal 15 (SIGTERM)",
    )
    .await;
    check(
        Command::new(["no-such-program-anywhere"]),
        &[],
        "error: the program `no-such-program-anywhere` was not found; check that it is installed and in PATH",
    )
    .await;
    let folder = tempfile::tempdir().unwrap();
    for (name, text, expected) in [
        (
            "cr",
            "#!/bin/sh\r\necho hi\r\n",
            "the interpreter `/bin/sh` of `PATH` has a carriage return behind it; save the script with LF line ends",
        ),
        (
            "none",
            "#!/no/such/sh -e\n",
            "the interpreter `/no/such/sh` of `PATH` was not found",
        ),
        (
            "bare",
            "echo hi\n",
            "`PATH` is neither a program for this system nor a script with a first line such as `#!/bin/sh`",
        ),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = path.to_str().unwrap();
        let expected = format!("error: {}", expected.replace("PATH", path));
        check(Command::new([path]), &[], &expected).await;
    }
    check(
        Command::new(["/etc/passwd"]),
        &[],
        "error: the program `/etc/passwd` is not executable",
    )
    .await;
    check(
        Command::new(["true"]).directory("/no/such/place"),
        &[],
        "error: the working directory /no/such/place does not exist",
    )
    .await;
    check(
        Command::new(["echo", "{a}"]),
        &[("a", "a\0b")],
        "error: the argument `a` contains a NUL character, which a command line cannot contain",
    )
    .await;
    check(
        Command::new(["echo", "{a}"]),
        &[("a", &"x".repeat(4 << 20))],
        "error: the arguments are too long for a command line; read them from standard input instead",
    )
    .await;
    let long = outcome(
        tool(Command::shell(
            "i=0; while [ $i -lt 3000 ]; do echo \"line $i\" >&2; i=$((i+1)); done; exit 1",
        )),
        &[],
    )
    .await;
    assert!(long.starts_with("error: the command ended with exit status 1; its standard error:\n[output truncated: last 4090 of 28890 bytes]\nline 2591\n"), "{long}");
    assert!(long.ends_with("line 2999"), "{long}");
}

#[tokio::test]
async fn output_is_bounded_and_nothing_blocks() {
    let print = "yes 0123456789abcde | head -c 50000000";
    check(
        Command::shell(print).output_limit(20),
        &[],
        "ok: 0123456789abcde\n0123\n[output truncated: first 20 of 50000000 bytes]\n",
    )
    .await;
    // Both pipes full at the same time, and input that is never read.
    let started = Instant::now();
    let both = format!("{print} >&2 & {print}; wait; exit 2");
    let shown = outcome(
        tool(Command::shell(both).output_limit(5)),
        &[("a", &"x".repeat(1 << 20))],
    )
    .await;
    assert!(
        shown.contains("[output truncated: last 4080 of 50000000 bytes]\n0123"),
        "{shown}"
    );
    assert!(
        shown.ends_with("| 01234\n[output truncated: first 5 of 50000000 bytes]\n"),
        "{shown}"
    );
    assert!(started.elapsed() < Duration::from_secs(30));
    check(
        Command::new(["true"]),
        &[("a", &"x".repeat(1 << 20))],
        "ok: ",
    )
    .await;
    check(
        Command::shell("exec <&-; exec sleep 0"),
        &[("a", &"x".repeat(1 << 20))],
        "ok: ",
    )
    .await;
    check(
        Command::shell("wc -c"),
        &[("a", &"x".repeat(1 << 20))],
        "ok: 1048637\n",
    )
    .await;
    check(
        Command::shell("printf 'a\\377\\342\\202'"),
        &[],
        "ok: a\u{fffd}\u{fffd}",
    )
    .await;
}

#[tokio::test]
async fn an_id_with_a_nul_character() {
    let results = results(tool(Command::new(["true"])), &call("x\0y", "", &[])).await;
    assert_eq!(
        results[0].error.as_deref(),
        Some(
            "the call's id or an environment variable contains a NUL character, which a command cannot receive"
        )
    );
}

/// Scripts of the model: stderr is part of the output, stdin is empty, and both ends of a long output are kept.
#[tokio::test]
async fn scripts_of_a_model() {
    let script = || Command::script_of("a");
    for (text, expected) in [
        ("printf hello", "ok: hello"),
        (
            "echo one; echo two >&2; echo three",
            "ok: one\ntwo\nthree\n",
        ),
        ("cat; echo end", "ok: end\n"),
        ("# only a comment", "ok: "),
        ("echo '{a}' \"${1-none}\"", "ok: {a} none\n"),
        (
            "echo x; exit 3",
            "error: the command ended with exit status 3 | x\n",
        ),
    ] {
        check(script(), &[("a", text)], expected).await;
    }
    check(
        script().output_limit(20).keep_both_ends(),
        &[("a", "seq 1 100")],
        "ok: 1\n2\n3\n4\n5\n[output truncated: 275 of 292 bytes omitted here]\n99\n100\n",
    )
    .await;
}

/// The displayed command line is what a shell would parse as the same arguments.
#[test]
fn command_lines_for_display() {
    let check = |command: Command, arguments: &[(&str, &str)], expected: Option<&str>| {
        let tool = Tool::command(spec(arguments), command).unwrap();
        let arguments = Arguments::from_pairs(arguments.iter().copied()).unwrap();
        assert_eq!(tool.command_text(&arguments).as_deref(), expected);
    };
    check(
        Command::new(["rm", "-f", "{a}", "x={b}", "{c}"]),
        &[("a", "a b; rm -rf ~"), ("b", "it's")],
        Some("rm -f 'a b; rm -rf ~' 'x=it'\\''s'"),
    );
    check(
        Command::new(["ls", "{a}", "{b}", "{c}"]),
        &[("a", ""), ("b", "{x,y}"), ("c", "line\nline")],
        Some("ls '' '{x,y}' 'line\nline'"),
    );
    check(
        Command::new(["cp", "{a}", "{directory:run}/x"]),
        &[("a", "./a-b_c.d")],
        Some("cp ./a-b_c.d '{directory:run}/x'"),
    );
    check(
        Command::shell("cat \"{a}\" > \"{b}\"\n"),
        &[("a", "$(id)")],
        Some("cat \"${1}\" > \"${2}\"\n# ${1} is '$(id)'\n# ${2} is ''"),
    );
    check(
        Command::script_of("a"),
        &[("a", "rm -rf {b} '$(id)'\necho done\n")],
        Some("rm -rf {b} '$(id)'\necho done"),
    );
    // It cannot be started, so there is nothing to show.
    check(Command::new(["ls", "{a}"]), &[("a", "a\0b")], None);
}

#[test]
fn invalid_commands() {
    let check = |command: Command, expected: &[&str]| {
        let spec = spec(&[("c", "")]).parameter(Parameter::new("list", ParameterKind::Array));
        let error = Tool::command(spec, command).unwrap_err();
        let found: Vec<_> = error
            .problems
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        assert_eq!(found, expected);
    };
    check(
        Command::new([""; 0]),
        &["the command is empty; its first element is the program"],
    );
    check(
        Command::new(["{a}"]),
        &["the program must be fixed; with a placeholder the model could run any program"],
    );
    check(Command::shell(" \n"), &["the script is empty"]);
    check(
        Command::script_of("a"),
        &["`a` is the script, so it cannot be optional; make it required"],
    );
    check(
        Command::script_of("script"),
        &["unknown parameter `script` for the script"],
    );
    check(
        Command::shell("echo \"{a}\" '{a}'"),
        &[
            "`{a}` is between single quotes, where the shell expands nothing; use double quotes, or close the quotes around it, as in `'…'\"{a}\"'…'`; for the literal text write `{{a}}`",
        ],
    );
    check(
        Command::new(["echo", "{x}", "{list}", "{directory:tools}"]),
        &[
            "unknown parameter `{x}`; the parameters are `a`, `b`, `c`, `list`; for the literal text write `{{x}}`",
            "`{list}` is a list, not a string; read it from standard input instead",
            "`{directory:tools}` has no value here",
        ],
    );
    check(
        Command::new(["ls", "{a}", "-b={b}{a}", "-c={c}", "{{a}}b"]),
        &[
            "`b` is optional, so `-b={b}{a}` could be incomplete; make `{b}` an element of its own, which is omitted with it, or make `b` required, or write a `shell` script",
            "`a` is optional, so `-b={b}{a}` could be incomplete; make `{a}` an element of its own, which is omitted with it, or make `a` required, or write a `shell` script",
        ],
    );
    check(
        Command::new(["ls"])
            .directory("sub/folder")
            .environment(["A=B", "PLAINCALL_ID"]),
        &[
            "the working directory `sub/folder` is a relative path; begin it with `/`, `{directory:current}` or `{directory:run}`",
            "`A=` is not a valid name of an environment variable; write only the name",
            "the variables that begin with `PLAINCALL_` are set automatically and cannot be listed",
        ],
    );
    check(
        Command::new(["ls"]).directory("/{a}"),
        &["the working directory must be fixed, without arguments"],
    );
    check(
        Command::new(["ls"]).tools_directory("here"),
        &["the tools directory here is not an absolute path"],
    );
}
