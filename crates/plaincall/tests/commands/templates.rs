//! Placeholders in commands and scripts.

use plaincall::tool::{Arguments, Parameter, ParameterKind, ToolSpec};
use plaincall::{Command, Tool};

const NAMES: [&str; 7] = ["a", "b", "c", "name", "path", "größe", "_a-b.c"];

/// Creates a tool from a command.
fn tool(command: Command) -> Result<Tool, plaincall::command::CommandError> {
    let parameters = NAMES.map(|name| Parameter::new(name, ParameterKind::String));
    let spec = ToolSpec::new("t");
    Tool::command(
        parameters.into_iter().fold(spec, ToolSpec::parameter),
        command,
    )
}

/// Returns the displayed command, with `<name>` for each argument.
fn filled(command: Command) -> String {
    let tool = tool(command.tools_directory("/<tools>")).unwrap();
    let values = NAMES.map(|name| (name, format!("<{name}>")));
    let values = values.iter().map(|(name, value)| (*name, value.as_str()));
    let arguments = Arguments::from_pairs(values).unwrap();
    tool.command_text(&arguments).unwrap()
}

#[test]
fn placeholders() {
    for (text, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("{path}", "<path>"),
        ("--file={path}.txt", "--file=<path>.txt"),
        ("{a}{b}", "<a><b>"),
        ("{directory:run}/x", "{directory:run}/x"),
        ("{directory:tools}", "/<tools>"),
        ("{größe}{_a-b.c}", "<größe><_a-b.c>"),
        // Other braces are ordinary characters.
        ("{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}"),
        ("{\"a\":{path}}", "{\"a\":<path>}"),
        ("{}{ a }{a b}{1}{_}", "{}{ a }{a b}{1}{_}"),
        ("{directory: other}", "{directory: other}"),
        ("{open", "{open"),
        ("}{", "}{"),
        // Double braces are literals.
        ("{{path}}", "{path}"),
        ("{{path}", "{<path>"),
        ("{{{path}}}", "{{path}}"),
        ("{{directory:tools}}", "{directory:tools}"),
        ("{{print $1}}", "{{print $1}}"),
        ("${path}", "$<path>"),
    ] {
        let shown = filled(Command::new(["p", text]));
        let shown = shown.strip_prefix("p ").unwrap().trim_matches('\'');
        assert_eq!(shown, expected, "{text}");
    }
    let error = tool(Command::new(["p", "{directory:other}"])).unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("unknown directory `{directory:other}`"),
        "{error}"
    );
}

#[test]
fn a_shell_keeps_its_variables() {
    for (text, expected) in [
        (
            "echo \"${HOME}/{path}\"",
            "echo \"${HOME}/${1}\"\n# ${1} is '<path>'",
        ),
        (
            "awk '{{print}}' {path}",
            "awk '{print}' ${1}\n# ${1} is '<path>'",
        ),
        ("f() { echo; }", "f() { echo; }"),
        ("echo {a,b} {1..3}", "echo {a,b} {1..3}"),
    ] {
        assert_eq!(filled(Command::shell(text)), expected);
    }
}

#[test]
fn between_single_quotes() {
    for (script, expected) in [
        ("echo 'hello {name}'", &[12][..]),
        ("echo '{a} {b}' 'x' '{c}'", &[6, 10, 20]),
        ("echo \"it's\" '{a}'", &[13]),
        ("echo \\' '{a}'", &[9]),
        ("echo a#'{a}'", &[8]),
        ("# don't\necho '{a}'", &[14]),
        ("echo \"${x#y}\" '{a}'", &[15]),
        ("echo \"\\\"\" '{a}'", &[11]),
        ("echo '{{a}}{b}'", &[11]),
        ("é='{a}'", &[4]),
        ("echo \"{name}\" {name}", &[]),
        ("echo \"it's {name}\"", &[]),
        ("echo 'a '\"{name}\"' b'", &[]),
        ("awk '{ print }' '{{name}}' '${name}' '{a b}'", &[]),
        ("echo x # isn't {name}, isn't it?", &[]),
        ("echo \\'{name}\\'", &[]),
        // The scan stops at syntax that it cannot follow.
        ("cat <<E\n'{name}'\nE", &[]),
        ("echo \"$(echo \"it's\")\" {name} '", &[]),
        ("echo \"$(sed 's/{a}/b/')\"", &[]),
        ("echo \"`echo '{a}'`\"", &[]),
        ("echo \"${x:-\"'\"}\" '{a}'", &[]),
        ("echo $'{a}'", &[]),
        ("echo '{a}", &[]),
        ("trap 'rm \"{path}\"' EXIT", &[]),
        ("eval 'echo \"{path}\"'", &[]),
    ] {
        let problems = tool(Command::shell(script)).map_or_else(|error| error.problems, |_| vec![]);
        let places = problems.iter().map(|problem| {
            assert!(
                problem.message.contains("between single quotes"),
                "{script}"
            );
            let text = problem.placeholder.as_deref().unwrap();
            let mut found = script.match_indices(text);
            found.nth(problem.occurrence).unwrap().0
        });
        assert_eq!(places.collect::<Vec<_>>(), expected, "{script}");
    }
}
