//! The tools' definitions, from a file.

use std::path::Path;

use plaincall::{Policy, Rules, Tool, Toolbox, ToolsFile, tools_file::FileError};

use crate::status::Failure;
use crate::terminal::problems;
use crate::text::input::read_whole;

/// The definitions of tools, by name.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    toolbox: Toolbox,
    /// The policy for runs.
    pub(crate) policy: Policy,
    /// The rules about calls.
    pub(crate) rules: Rules,
    /// The CRC-32 of the file's text.
    pub(crate) crc32: u32,
}

impl Tools {
    /// All of them.
    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// All of them, and the built-in tool that reads on in long results, unless the file defines one of its name.
    pub(crate) fn toolbox_for_running(&self) -> Toolbox {
        let mut toolbox = self.toolbox.clone();
        // It is refused if there is one of this name.
        let _ = toolbox.add(Tool::read_result());
        toolbox
    }
}

/// Reads a tools file. Shows its errors in the source.
pub(crate) fn load(path: &Path) -> Result<Tools, Failure> {
    let (name, text) = read(path)?;
    load_text(&name, &text, path)
}

/// Parses a tools file. Shows its errors in the source.
pub(crate) fn load_text(name: &str, text: &str, path: &Path) -> Result<Tools, Failure> {
    let file = parse(name, text, path)?;
    let toolbox =
        Toolbox::new(file.tools).map_err(|error| Failure::Broken(format!("{name}: {error}")))?;
    Ok(Tools {
        toolbox,
        policy: file.policy,
        rules: file.rules,
        crc32: crc32fast::hash(text.as_bytes()),
    })
}

/// What messages call a file, and its text.
pub(crate) fn read(path: &Path) -> Result<(String, String), Failure> {
    let (name, bytes) = read_whole(path)?;
    let text = text(&name, bytes)?;
    Ok((name, text))
}

/// What a file holds, as text.
pub(crate) fn text(name: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(valid);
        let line = before.filter(|&&byte| byte == b'\n').count() + 1;
        Failure::Broken(format!(
            "cannot read {name}: line {line} is not UTF-8 text; save the file as UTF-8"
        ))
    })
}

/// Parses a `tools.toml`. Shows its errors.
pub(crate) fn parse(name: &str, text: &str, path: &Path) -> Result<ToolsFile, Failure> {
    // The folder of the file has a meaning in it, so the path has to be a whole one.
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    plaincall::read_tools(text, whole).map_err(|error| invalid_file(name, text, &error))
}

/// Shows the errors of a tools file.
pub(crate) fn invalid_file(name: &str, text: &str, error: &FileError) -> Failure {
    let mistakes = problems::show(name, text, error);
    Failure::Broken(format!(
        "{name} has {mistakes}, so its tools cannot be used"
    ))
}
