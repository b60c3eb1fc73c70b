//! A command tool `t`, and calls of it.

use std::fmt::Write as _;

use plaincall::tool::{Parameter, ParameterKind, ToolSpec};
use plaincall::{AllowAll, Command, Run, RunBuilder, Stop, Tool, Toolbox, TurnResults};

/// A tool `t` with the string parameters `a`, `b` and `c`, which are optional unless they are listed.
pub(crate) fn spec(arguments: &[(&str, &str)]) -> ToolSpec {
    ["a", "b", "c"]
        .into_iter()
        .fold(ToolSpec::new("t"), |spec, name| {
            let mut parameter = Parameter::new(name, ParameterKind::String);
            parameter.required = arguments.iter().any(|(argument, _)| *argument == name);
            spec.parameter(parameter)
        })
}

pub(crate) fn tool(command: Command) -> Tool {
    Tool::command(spec(&[]), command).unwrap()
}

pub(crate) fn builder(tool: Tool) -> RunBuilder {
    Run::builder(Toolbox::new([tool]).unwrap())
        .gate(AllowAll)
        .directory_in(std::env::temp_dir())
        .environment([
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("SECRET", "s"),
            ("LC_ALL", "C"),
        ])
}

pub(crate) fn call(id: &str, dependencies: &str, arguments: &[(&str, &str)]) -> String {
    let mut text = format!("!!!GADGET_START:t:{id}:{dependencies}\n");
    for (name, value) in arguments {
        write!(text, "!!!ARG:{name}\n{value}\n").unwrap();
    }
    text.push_str("!!!GADGET_END\n");
    text
}

pub(crate) async fn results(tool: Tool, text: &str) -> TurnResults {
    let mut run = builder(tool).build().unwrap();
    let mut turn = run.turn();
    turn.feed(text);
    turn.finish(Stop::Natural).await
}

/// Runs one call, and returns `ok: output` or `error: message | output`, and the note.
pub(crate) async fn outcome(tool: Tool, arguments: &[(&str, &str)]) -> String {
    let results = results(tool, &call("x", "", arguments)).await;
    let result = &results[0];
    let output = result.output.as_deref();
    let note = result.note.as_ref();
    let note = note.map_or(String::new(), |note| format!("[{note}]"));
    match result.error.as_deref() {
        None => format!("{}: {}{note}", result.status, output.unwrap()),
        Some(error) => {
            let output = output.map_or(String::new(), |output| format!(" | {output}"));
            format!("{}: {error}{output}", result.status)
        }
    }
}

pub(crate) async fn check(command: Command, arguments: &[(&str, &str)], expected: &str) {
    let shown = format!("{command:?}");
    let tool = Tool::command(spec(arguments), command).unwrap();
    assert_eq!(outcome(tool, arguments).await, expected, "{shown}");
}
