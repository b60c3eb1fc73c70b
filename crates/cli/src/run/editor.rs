//! The arguments of a call in a person's editor.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Stdio;

use plaincall::{Arguments, ToolSpec};
use plaincall_call::{bind_arguments, flatten_call};
use serde_json::Value;
use tokio::process::Command;

use crate::run::desk::Desk;
use crate::run::terminal::Controlling;

/// Arguments that a person has changed.
#[derive(Debug)]
pub(crate) struct Edited {
    /// As they were written.
    pub(crate) arguments: Arguments,
    /// As the tool gets them.
    pub(crate) bound: Arguments,
}

/// Opens the editor on the arguments; `None` if they were left as they were.
///
/// # Errors
/// There is no editor, it failed, or what was written cannot be arguments of the tool: a sentence for the person.
pub(crate) async fn edit(
    desk: &Desk,
    spec: &ToolSpec,
    arguments: &Arguments,
) -> Result<Option<Edited>, String> {
    let Some(editor) = &desk.editor else {
        return Err(
            "there is no editor: set the variable VISUAL or EDITOR to the name of one".to_owned(),
        );
    };
    let before = arguments.to_value();
    let mut text = serde_json::to_string_pretty(&before).map_err(|error| error.to_string())?;
    text.push('\n');
    let failed = |error: io::Error| format!("the editor could not be used: {error}");
    let mut file = tempfile::Builder::new()
        .prefix("plaincall-arguments-")
        .suffix(".json")
        .tempfile_in(&desk.temporary_directory)
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.flush().map_err(failed)?;
    let path = file.into_temp_path();
    // Until this is dropped the display is quiet.
    let _quiet = desk.quiet().await;
    run(editor, &path).await?;
    let written = path.to_path_buf();
    let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(written)).await;
    let text = text.map_err(io::Error::other).and_then(|text| text);
    let text = text.map_err(failed)?;
    read(&text, &before, spec)
}

/// Runs the editor on the terminal, and gives the terminal back as it was.
async fn run(editor: &OsString, path: &Path) -> Result<(), String> {
    let name = editor.display();
    let failed = |error: io::Error| format!("the editor `{name}` could not be started: {error}");
    let terminal = Controlling::open().map_err(str::to_owned)?;
    let handed_over = terminal.hand_over().map_err(failed)?;
    let stdio = || handed_over.file().map(Stdio::from).map_err(failed);
    let mut script = OsString::from("exec ");
    script.push(editor);
    script.push(" \"$1\"");
    // People write options there, too, as in `code --wait`.
    let status = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg("sh")
        .arg(path)
        .stdin(stdio()?)
        .stdout(stdio()?)
        .stderr(stdio()?)
        .kill_on_drop(true)
        .status()
        .await
        .map_err(failed)?;
    if status.success() {
        Ok(())
    } else {
        Err(format!(
            "the editor `{name}` failed ({status}); the arguments are as they were"
        ))
    }
}

/// Reads what was written.
fn read(text: &str, before: &Value, spec: &ToolSpec) -> Result<Option<Edited>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        format!("what was written is no JSON ({error}), so the arguments are as they were")
    })?;
    if value == *before {
        return Ok(None);
    }
    let Value::Object(object) = value else {
        return Err(
            "what was written is no JSON object, so the arguments are as they were".to_owned(),
        );
    };
    let wrong = |what: String| format!("{what}; the arguments are as they were");
    let pairs = flatten_call(&object, spec).map_err(wrong)?;
    let pairs = pairs
        .iter()
        .map(|(pointer, text)| (pointer.as_str(), text.as_str()));
    let arguments =
        Arguments::from_pairs_for(spec, pairs).map_err(|error| wrong(error.to_string()))?;
    let bound = bind_arguments(spec, &arguments).map_err(|problems| {
        let messages: Vec<&str> = problems
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        wrong(messages.join("; "))
    })?;
    Ok(Some(Edited { arguments, bound }))
}

#[cfg(test)]
mod tests {
    use plaincall::{Parameter, ParameterKind, ToolSpec};
    use serde_json::json;

    use super::read;

    fn spec() -> ToolSpec {
        ToolSpec::new("deploy")
            .parameter(Parameter::new("host", ParameterKind::String))
            .parameter(Parameter::new("count", ParameterKind::Integer).optional())
    }

    #[test]
    fn what_was_written() {
        let before = json!({"host": "a"});
        let check = |text: &str, expected: Result<Option<&[(&str, &str)]>, &str>| {
            let found = read(text, &before, &spec());
            match (found, expected) {
                (Ok(None), Ok(None)) => {}
                (Ok(Some(edited)), Ok(Some(expected))) => {
                    let pairs: Vec<(&str, &str)> = edited
                        .arguments
                        .iter()
                        .map(|argument| (argument.pointer, argument.text))
                        .collect();
                    assert_eq!(pairs, expected, "{text}");
                }
                (Err(found), Err(part)) => assert!(found.contains(part), "{text}: {found}"),
                (found, expected) => panic!("{text}: {found:?}, not {expected:?}"),
            }
        };
        check(r#"{ "host": "a" }"#, Ok(None));
        check(r#"{"host": "b"}"#, Ok(Some(&[("host", "b")])));
        check(
            r#"{"count": 3, "host": "02134"}"#,
            Ok(Some(&[("count", "3"), ("host", "02134")])),
        );
        check(r#"{"host": "b""#, Err("is no JSON"));
        check(r#"["host"]"#, Err("is no JSON object"));
        check("{}", Err("host"));
        check(r#"{"host": "b", "other": "c"}"#, Err("other"));
        check(r#"{"host": "b", "count": "many"}"#, Err("count"));
    }
}
