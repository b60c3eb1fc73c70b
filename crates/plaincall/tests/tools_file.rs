//! Tools files: their content and their errors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use plaincall::{
    AllowAll, Effect, Policy, Rules, Run, Stop, Tool, Toolbox,
    policy::{Dependents, Echoes, Order, Retry, ToolPolicy, Writes},
    read_tools,
    rules::Rule,
};

const PATH: &str = "/home/me/tools.toml";

/// A table of errors: a file, a line of dashes, its errors, a line of equals signs.
const MISTAKES: &str = include_str!("tools_file/mistakes.txt");

#[test]
fn mistakes() {
    let mut cases = 0;
    let mut wrong = Vec::new();
    for case in MISTAKES.split("\n====\n") {
        let Some((file, expected)) = case.split_once("\n----\n") else {
            panic!("no mistakes in {case}");
        };
        let found = read_tools(file, PATH).unwrap_err();
        let mut lines = Vec::new();
        for problem in &found.problems {
            let is_in_file = file.get(problem.span.clone()).is_some();
            assert!(is_in_file, "{problem} in {file}");
            lines.push(problem.to_string());
        }
        wrong.extend(
            (lines.join("\n") != expected.trim_end())
                .then(|| format!("{file}\n----\n{}", lines.join("\n"))),
        );
        cases += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n====\n"));
    assert!(cases > 30, "{cases}");
}

/// Formats a tool in one line.
fn shown(tool: &Tool) -> String {
    let spec = tool.spec();
    let mut text = format!("{} {:?}", spec.name, spec.effect);
    for parameter in spec.parameters() {
        let optional = if parameter.required { "" } else { "?" };
        write!(text, " {}:{:?}{optional}", parameter.name, parameter.kind).unwrap();
    }
    write!(text, " {:?} {:?}", spec.positional, spec.body).unwrap();
    text
}

#[test]
fn settings() {
    let check = |lines: &str, change: fn(&mut ToolPolicy)| {
        let file = format!("[tools.a]\ncommand = ['true']\neffect = 'read'\n{lines}");
        let file = read_tools(&file, PATH).unwrap_or_else(|error| panic!("{error}"));
        let mut expected = ToolPolicy::default();
        expected.grace = Duration::from_secs(2);
        change(&mut expected);
        assert_eq!(file.tools[0].policy(), &expected, "{lines}");
    };
    check("", |_| {});
    check("max_concurrent = 2\nexclusive = true", |policy| {
        policy.max_concurrent = NonZeroU32::new(2);
        policy.exclusive = true;
    });
    check("exclusive = false\nfinishes = false", |_| {});
    check("finishes = true\ngrace = 0", |policy| {
        policy.finishes = true;
        policy.grace = Duration::ZERO;
    });
    check("dependents = 'skip'", |_| {});
    check("dependents = 'run'", |policy| {
        policy.dependents = Dependents::Run;
    });
    check("fallback = ''", |policy| {
        policy.dependents = Dependents::Fallback(String::new());
    });
    check("retry = 3", |policy| {
        policy.retry = Some(Retry::attempts(3));
    });
    check("retry = { attempts = 4, first_wait = '1m' }", |policy| {
        let minute = Duration::from_mins(1);
        policy.retry = Some(Retry::attempts(4).waits(minute, minute));
    });
    check(
        "[tools.a.retry]\nattempts = 2\nfirst_wait = 0.1\nlongest_wait = 0.1",
        |policy| {
            let wait = Duration::from_millis(100);
            policy.retry = Some(Retry::attempts(2).waits(wait, wait));
        },
    );
}

#[test]
fn times() {
    for (written, milliseconds) in [
        ("3", 3_000),
        ("0x10", 16_000),
        ("0.25", 250),
        ("'500ms'", 500),
        ("'1.5 s'", 1_500),
        ("'2m'", 120_000),
        ("'1h'", 3_600_000),
    ] {
        let file = format!("[tools.a]\ncommand = ['true']\ntimeout = {written}");
        let file = read_tools(&file, PATH).unwrap_or_else(|error| panic!("{error}"));
        let expected = Duration::from_millis(milliseconds);
        assert_eq!(file.tools[0].policy().timeout, expected, "{written}");
    }
}

#[test]
fn runs() {
    let check = |lines: &str, change: fn(&mut Policy)| {
        let file = format!("[tools.a]\ncommand = ['true']\n[run]\n{lines}");
        let file = read_tools(&file, PATH).unwrap_or_else(|error| panic!("{error}"));
        let mut expected = Policy::default();
        change(&mut expected);
        assert_eq!(file.policy, expected, "{lines}");
    };
    check("", |_| {});
    check("concurrent = 0", |policy| policy.concurrent = 0);
    check("concurrent = 8\ncalls_per_turn = 1", |policy| {
        policy.concurrent = 8;
        policy.calls_per_turn = Some(1);
    });
    check(
        "block_order = 'stop_on_error'\nemoji_order = 'graph'",
        |policy| {
            policy.block_order = Order::StopOnError;
            policy.emoji_order = Order::Graph;
        },
    );
    check("block_order = 'sequential'", |policy| {
        policy.block_order = Order::Sequential;
    });
    check("turn_timeout = '5m'\ngate_timeout = 30", |policy| {
        policy.turn_timeout = Some(Duration::from_mins(5));
        policy.gate_timeout = Duration::from_secs(30);
    });
    check("writes = 'at_end_of_turn'", |policy| {
        policy.writes = Writes::AtEndOfTurn;
    });
    check("echoes = 'ignored'\nuntrusted_limit = '1 MiB'", |policy| {
        policy.echoes = Echoes::Ignored;
        policy.untrusted_limit = 1 << 20;
    });
    for size in ["8192", "'8 KiB'", "'8KiB'", "0x2000"] {
        check(&format!("result_limit = {size}"), |policy| {
            policy.result_limit = 8192;
        });
    }
}

#[test]
fn rules_of_a_file() {
    let file = r#"
    [[rules]]
    tools = "read-*"
    verdict = "deny"
    reason = "keys stay where they are"
    arguments = { path = "**.key", "more/0" = "?" }

    [[rules]]
    tools = ["read-file", "**", "read_result"]
    effect = "write"
    verdict = "ask"

    [[rules]]
    tools = "*"
    verdict = "allow"

    [tools.read-file]
    command = ["cat", "{path}"]
    effect = "read"
    parameters = { path = "string", more = "array?" }

    [tools.b]
    command = ["true"]
    "#;
    let file = read_tools(file, PATH).unwrap_or_else(|error| panic!("{error}"));
    let expected = Rules::new([
        Rule::deny(["read-*"], "keys stay where they are")
            .argument("path", "**.key")
            .argument("more/0", "?"),
        Rule::ask(["read-file", "**", "read_result"]).effect(Effect::Write),
        Rule::allow(["*"]),
    ]);
    assert_eq!(file.rules, expected);
}

/// Limits the output of a command.
#[tokio::test]
async fn output_limits() {
    let file = "[tools.a]\nshell = 'echo 1234567890'\neffect = 'read'\noutput_limit = 4";
    let toolbox = Toolbox::new(read_tools(file, PATH).unwrap().tools).unwrap();
    let mut run = Run::builder(toolbox)
        .directory_in(std::env::temp_dir())
        .environment([("PATH", "/usr/local/bin:/usr/bin:/bin")])
        .build()
        .unwrap();
    let mut turn = run.turn();
    turn.feed("🛠️[a]🛠️[/end]");
    let results = turn.finish(Stop::Natural).await;
    assert_eq!(
        results[0].output.as_deref(),
        Some("1234\n[output truncated: first 4 of 11 bytes]\n")
    );
}

#[test]
fn a_toolbox_rejects_retries_of_writes() {
    let tool = |effect, retry| {
        let tool = Tool::new("send", |(): (), _| async { Ok(String::new()) });
        Toolbox::new([tool.effect(effect).retry(retry)])
    };
    assert!(tool(Effect::Read, Retry::attempts(2)).is_ok());
    assert!(tool(Effect::Idempotent, Retry::attempts(2)).is_ok());
    assert_eq!(
        tool(Effect::Write, Retry::attempts(2))
            .unwrap_err()
            .to_string(),
        "the tool `send`: tools with the effect `write` cannot be retried, because a failed call may have changed something; if repeating a call is harmless, set the effect `idempotent`"
    );
    assert_eq!(
        tool(Effect::Read, Retry::attempts(0))
            .unwrap_err()
            .to_string(),
        "the tool `send`: `attempts` is 0, so the tool would never run"
    );
}

fn check(file: &str, expected: &[&str]) -> Vec<Tool> {
    let tools = read_tools(file, PATH)
        .unwrap_or_else(|error| panic!("{error}"))
        .tools;
    let found: Vec<String> = tools.iter().map(shown).collect();
    assert_eq!(found, expected);
    tools
}

#[test]
fn definitions() {
    check(
        "[tools.a]\ncommand = ['true']\n[tools.b]\nshell = 'true'\neffect = 'read'",
        &["a Write None None", "b Read None None"],
    );
    check(
        "[tools.a]\ncommand = ['x', '{z}']\nparameters = { z = 'string', b = 'integer?', a = 'any', l = 'array?', o = 'object', n = 'number', t = 'boolean' }",
        &["a Write z:String b:Integer? a:Any l:Array? o:Object n:Number t:Boolean None None"],
    );
    check(
        r#"
        [tools."write-file"]
        description = "Writes a file."
        effect = "idempotent"
        command = ["tee", "{path}"]
        directory = "{directory:tools}/out"
        environment = ["LOGNAME"]
        max_concurrent = 0x2
        exclusive = false
        timeout = 2.5
        positional = ["path"]
        body = "content"
        parameters.type = "object"
        parameters.required = ["path", "content"]
        [tools.write-file.parameters.properties]
        path = { type = "string", description = "Where." }
        content.type = "string"
        "#,
        &["write-file Idempotent path:String content:String Some([\"path\"]) Some(\"content\")"],
    );
    check(
        r#"
        [tools.a]
        command = ["x", "{unit}"]
        [tools.a.parameters]
        unit = { enum = ["mm", "inch"], description = "Of all lengths." }
        size = { type = "integer", minimum = 1, optional = true }
        tags = { type = "array", items = { type = "string" }, maxItems = 3 }
        either = { anyOf = [{ type = "integer" }, { type = "boolean" }], optional = false }
        "#,
        &["a Write unit:String size:Integer? tags:Array either:Any None None"],
    );
    check(
        "[tools.a]\ncommand = ['x']\n[tools.a.parameters]\ntype = 'object'\n'$defs' = { n = { type = 'integer', minimum = 1 } }\nproperties = { n = { '$ref' = '#/$defs/n' }, m = { type = ['string', 'null'] } }",
        &["a Write n:Integer? m:String? None None"],
    );
    check(
        "\u{feff}[tools.a]\r\ncommand = [\"true\"]\r\n",
        &["a Write None None"],
    );
}

#[test]
fn a_schema_and_the_short_form_mean_the_same() {
    let short = "[tools.a]\ncommand=['x']\nparameters = { p = 'string', n = 'integer?' }";
    let long = "[tools.a]\ncommand=['x']\n[tools.a.parameters]\ntype='object'\nrequired=['p']\nproperties={p={type='string'},n={type='integer'}}";
    let spec = |file: &str| shown(&read_tools(file, PATH).unwrap().tools[0]);
    assert_eq!(spec(short), spec(long));
    assert_eq!(spec(short), "a Write p:String n:Integer? None None");
}

#[tokio::test]
async fn tools_of_a_file_run() {
    let file = r#"
    [tools.greet]
    parameters = { who = "string", times = "integer?" }
    shell = 'i=0; while [ $i -lt "${times:-{times}}" ]; do echo "hello {who}"; i=$((i+1)); done'
    effect = "read"
    timeout = "5s"

    [tools.slow]
    command = ["sleep", "100"]
    effect = "read"
    timeout = "100ms"
    "#;
    // An editor may have saved it with other line ends.
    let file = &file
        .replace("; do echo", "\ndo echo")
        .replace('\n', "\r\n")
        .replace("'i=0", "'''i=0")
        .replace("done'", "done'''");
    let toolbox = Toolbox::new(read_tools(file, PATH).unwrap().tools).unwrap();
    let mut run = Run::builder(toolbox)
        .gate(AllowAll)
        .directory_in(std::env::temp_dir())
        .environment([("PATH", "/usr/local/bin:/usr/bin:/bin")])
        .build()
        .unwrap();
    let mut turn = run.turn();
    turn.feed("🛠️[greet you 2]🛠️[/end]🛠️[slow]🛠️[/end]");
    let results = turn.finish(Stop::Natural).await;
    assert_eq!(results[0].error.as_deref(), None);
    assert_eq!(results[0].output.as_deref(), Some("hello you\nhello you\n"));
    assert_eq!(
        results[1].error.as_deref(),
        Some("timed out after 100 ms; the command was stopped")
    );
}

#[tokio::test]
async fn calls_are_validated_against_the_whole_schema() {
    let file = r#"
    [tools.measure]
    command = ["printf", "%s %s", "{unit}", "{size}"]
    effect = "read"
    [tools.measure.parameters]
    unit = { enum = ["mm", "inch"] }
    size = { type = "integer", minimum = 1 }
    years = { type = "object", additionalProperties = { type = "string" }, optional = true }
    "#;
    let toolbox = Toolbox::new(read_tools(file, PATH).unwrap().tools).unwrap();
    let mut run = Run::builder(toolbox)
        .gate(AllowAll)
        .directory_in(std::env::temp_dir())
        .environment([("PATH", "/usr/local/bin:/usr/bin:/bin")])
        .build()
        .unwrap();
    let mut turn = run.turn();
    for (unit, size, year) in [("mm", "03", "2024"), ("cm", "0", "1"), ("mm", "1", "a//b")] {
        turn.feed(format!(
            "!!!GADGET_START:measure\n!!!ARG:unit\n{unit}\n!!!ARG:size\n{size}\n!!!ARG:years/{year}\nx\n!!!GADGET_END\n"
        ));
    }
    let results = turn.finish(Stop::Natural).await;
    assert_eq!(results[0].output.as_deref(), Some("mm 03"));
    assert_eq!(
        results[1].error.as_deref(),
        Some(
            "invalid arguments: `unit`: expected one of `mm` and `inch`, found `cm`; `size`: expected an integer of at least 1, found `0`"
        )
    );
    assert_eq!(
        results[2].error.as_deref(),
        Some("invalid arguments: Empty pointer segment: years/a//b")
    );
}

#[tokio::test]
async fn a_tool_that_needs_a_scratch_directory_is_an_error_without_one() {
    let file = "[tools.a]\ncommand = ['true']\ndirectory = '{directory:run}'\n[tools.b]\ncommand = ['true']";
    let tools = read_tools(file, PATH).unwrap().tools;
    let build = |tool: &Tool| Run::new(Toolbox::new([tool.clone()]).unwrap());
    assert_eq!(
        build(&tools[0]).unwrap_err().to_string(),
        "the tool `a` uses `{directory:run}`, but the run has no scratch directory; set one with `directory_in` or `directory`"
    );
    assert!(build(&tools[1]).is_ok());
}

/// A file of 1 MiB with an error in each line. Counting lines from the start for each error would take minutes.
#[test]
fn many_mistakes_are_found_in_linear_time() {
    let mut text = String::new();
    for number in 0..80_000 {
        let _ = writeln!(text, "wrong{number} = 1");
    }
    assert!(text.len() > 1 << 20);
    let begun = std::time::Instant::now();
    let error = plaincall::read_tools(&text, "/tools.toml").unwrap_err();
    let last = error.problems.last().unwrap();
    assert_eq!((last.line, last.column), (80_000, 1));
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
}
