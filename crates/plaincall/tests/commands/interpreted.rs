//! Parameters that a command passes to an interpreter.

use plaincall::tool::{Parameter, ParameterKind, ToolSpec};
use plaincall::{Command, Tool};

fn spec() -> ToolSpec {
    ToolSpec::new("t")
        .parameter(Parameter::new("x", ParameterKind::String))
        .parameter(Parameter::new("y", ParameterKind::String))
        .parameter(Parameter::new("n", ParameterKind::Integer))
        .parameter(Parameter::from_schema(
            "e",
            serde_json::json!({"type": "string", "enum": ["a"]}),
        ))
}

/// Returns the parameters as `parameter: interpreter`, with `!` for a command line.
fn shown(command: Command) -> String {
    let tool = Tool::command(spec(), command).unwrap();
    let texts: Vec<String> = tool
        .interpreted()
        .iter()
        .map(|one| {
            let sign = if one.is_command_line { "!" } else { "" };
            format!("{}: {}{sign}", one.parameter, one.interpreter)
        })
        .collect();
    texts.join(", ")
}

#[test]
fn in_commands() {
    for (command, expected) in [
        ("sh -c {x}", "x: sh -c!"),
        ("/bin/bash -lc {x}", "x: sh -c!"),
        ("env A=b sh -c {x}", "x: sh -c!"),
        ("timeout 5 bash -c {x}", "x: sh -c!"),
        ("sh -c cat_{x} sh {y}", "x: sh -c"),
        ("sh -c cat sh {x}", ""),
        ("sh script.sh {x}", ""),
        ("awk {x} file", "x: awk"),
        ("awk -F : -v a={x} {y} file", "y: awk"),
        ("awk -f prog.awk {x}", ""),
        ("awk print {x}", ""),
        ("cmd /c echo {x}", "x: cmd /c"),
        (r"C:\Windows\System32\CMD.EXE /d /C type {x}", "x: cmd /c"),
        ("cmd {x}", "x: cmd /c"),
        ("cmd /s/c {x}", "x: cmd /c"),
        ("npx.cmd {x}", "x: cmd /c"),
        ("powershell {x}", "x: powershell -Command"),
        ("powershell -enc {x}", "x: powershell -Command"),
        ("py -c {x}", "x: python -c"),
        (
            "powershell.exe -NoProfile -Command echo {x}",
            "x: powershell -Command",
        ),
        ("pwsh -File a.ps1 {x}", ""),
        ("sed -n {x}p", "x: sed"),
        ("sed -n {n}p {x}", ""),
        ("sed -e {x} file", "x: sed"),
        ("python3 -c {x}", "x: python -c"),
        ("python3 script.py {x}", ""),
        ("python3 -c pass {x}", ""),
        ("perl -ne {x}", "x: perl -e"),
        ("node --eval {x}", "x: node -e"),
        ("node --eval={x}", "x: node -e"),
        ("ruby -e {x}", "x: ruby -e"),
        ("ssh -p 22 host {x}", "x: ssh!"),
        ("ssh host cat {x}", "x: ssh"),
        ("ssh {x}", ""),
        ("xargs {x}", "x: xargs"),
        ("find . -exec sh -c {x} ;", "x: sh -c!"),
        ("echo {x} {y}", ""),
        ("sh -c {n} {e}", ""),
        ("sh -c {e}", ""),
    ] {
        let elements = command.split(' ');
        assert_eq!(shown(Command::new(elements)), expected, "{command}");
    }
}

#[test]
fn in_scripts() {
    for (script, expected) in [
        ("eval \"{x}\"", "x: eval!"),
        ("eval \"echo {x}\"", "x: eval"),
        ("sh -c \"{x}\"", "x: sh -c!"),
        ("sh -c \"cat {x}\"", "x: sh -c"),
        ("sh -c 'cat \"$1\"' sh \"{x}\"", ""),
        ("cd a && bash -c \"{x}\"", "x: sh -c!"),
        ("awk \"BEGIN { print ({x}) }\"", "x: awk"),
        ("awk -v a=\"{x}\" 'BEGIN { print a }'", ""),
        ("python3 -c \"print({x})\"", "x: python -c"),
        ("out=$(perl -e \"{x}\")", "x: perl -e"),
        ("echo \"{x}\" | node -e 'x'", ""),
        ("ssh host \"cd {x}\"", "x: ssh"),
        ("printf '%s' \"{x}\" | xargs rm", "x: xargs"),
        ("printf '%s' \"{x}\" | sort", ""),
        ("{x} a", "x: the shell, as a command"),
        ("true; \"{x}\"", "x: the shell, as a command"),
        ("trap \"{x}\" EXIT", "x: trap"),
        ("cat -- \"{x}\" > \"{y}\"", ""),
        ("[ -n \"{x}\" ] && echo \"{y}\"", ""),
    ] {
        assert_eq!(shown(Command::shell(script)), expected, "{script}");
    }
}
