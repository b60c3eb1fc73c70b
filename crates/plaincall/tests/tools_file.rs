//! Tools files: what they say, and what is said about their mistakes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write as _;

use plaincall::{AllowAll, Effect, Run, Stop, Tool, Toolbox, read_tools};

const PATH: &str = "/home/me/tools.toml";

/// A table of mistakes: a file, a line of dashes, its mistakes as they are shown, a line of equals signs.
const MISTAKES: &str = include_str!("tools_file/mistakes.txt");

#[test]
fn mistakes() {
    let mut cases = 0;
    for case in MISTAKES.split("\n====\n") {
        let Some((file, expected)) = case.split_once("\n----\n") else {
            panic!("no mistakes in {case}");
        };
        let found = read_tools(file, PATH).unwrap_err();
        for mistake in &found.mistakes {
            assert!(
                file.get(mistake.span.clone()).is_some(),
                "{mistake} in {file}"
            );
        }
        assert_eq!(found.to_string(), expected.trim_end(), "\n{file}");
        cases += 1;
    }
    assert!(cases > 30, "{cases}");
}

/// A tool in one line.
fn shown(tool: &Tool) -> String {
    let spec = tool.spec();
    let mut text = format!("{} {:?}", spec.name, spec.effect);
    for parameter in &spec.parameters {
        let optional = if parameter.required { "" } else { "?" };
        write!(text, " {}:{:?}{optional}", parameter.name, parameter.kind).unwrap();
    }
    write!(text, " {:?} {:?}", spec.positional, spec.body).unwrap();
    text
}

#[test]
fn settings() {
    let check = |lines: &str, expected: &str| {
        let file = format!("[tools.a]\ncommand = ['true']\n{lines}");
        let tools = read_tools(&file, PATH).unwrap_or_else(|error| panic!("{error}"));
        let shown = format!("{:?}", tools[0]);
        let (_, settings) = shown.split_once("timeout: ").unwrap();
        assert_eq!(settings, expected, "{lines}");
    };
    check(
        "",
        "60s, grace: 2s, max_concurrent: None, exclusive: false, .. }",
    );
    check(
        "max_concurrent = 2\nexclusive = true",
        "60s, grace: 2s, max_concurrent: Some(2), exclusive: true, .. }",
    );
    for (time, expected) in [
        ("3", "3s"),
        ("0x10", "16s"),
        ("0.25", "250ms"),
        ("'500ms'", "500ms"),
        ("'1.5 s'", "1.5s"),
        ("'2m'", "120s"),
        ("'1h'", "3600s"),
    ] {
        let settings =
            format!("{expected}, grace: 2s, max_concurrent: None, exclusive: false, .. }}");
        check(&format!("timeout = {time}"), &settings);
    }
}

fn check(file: &str, expected: &[&str]) -> Vec<Tool> {
    let tools = read_tools(file, PATH).unwrap_or_else(|error| panic!("{error}"));
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
        "\u{feff}[tools.a]\r\ncommand = [\"true\"]\r\n",
        &["a Write None None"],
    );
}

#[test]
fn a_schema_and_the_short_form_mean_the_same() {
    let short = "[tools.a]\ncommand=['x']\nparameters = { p = 'string', n = 'integer?' }";
    let long = "[tools.a]\ncommand=['x']\n[tools.a.parameters]\ntype='object'\nrequired=['p']\nproperties={p={type='string'},n={type='integer'}}";
    let spec = |file: &str| read_tools(file, PATH).unwrap()[0].spec().clone();
    assert_eq!(spec(short), spec(long));
    assert_eq!(spec(short).effect, Effect::Write);
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
    let toolbox = Toolbox::new(read_tools(file, PATH).unwrap()).unwrap();
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
async fn a_tool_that_needs_a_directory_says_so() {
    let file = "[tools.a]\ncommand = ['true']\n[tools.b]\ncommand = ['true']\ndirectory = '/'";
    let tools = read_tools(file, PATH).unwrap();
    let build = |tool: &Tool| Run::new(Toolbox::new([tool.clone()]).unwrap());
    assert_eq!(
        build(&tools[0]).unwrap_err().to_string(),
        "the tool `a` works in the run's directory, and the run has none; say where to make it"
    );
    assert!(build(&tools[1]).is_ok());
}
