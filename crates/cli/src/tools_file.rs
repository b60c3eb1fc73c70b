//! Reading of tools files.

use std::path::Path;

use plaincall::{Policy, Rules, Tool, Toolbox, ToolsFile, tools_file::FileError};

use crate::status::Failure;
use crate::terminal::problems;
use crate::text::input::{Input, read_input, without_bom};

/// The tools of a file, with its policy and rules.
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
    /// Returns the tools of the file.
    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// Returns the tools of the file and the built-in `read_result`, unless the file defines a tool with this name.
    pub(crate) fn toolbox_for_running(&self) -> Toolbox {
        let mut toolbox = self.toolbox.clone();
        // Fails if the file defines a tool with this name.
        let _ = toolbox.add(Tool::read_result());
        toolbox
    }
}

/// Reads a tools file. Prints its errors with source excerpts.
pub(crate) fn load(path: &Path) -> Result<Tools, Failure> {
    let (name, text) = read_tools(path)?;
    load_text(&name, &text, path)
}

/// Parses a tools file. Prints its errors with source excerpts.
pub(crate) fn load_text(name: &str, text: &str, path: &Path) -> Result<Tools, Failure> {
    let file = parse(name, text, path)?;
    let toolbox =
        Toolbox::new(file.tools).map_err(|error| Failure::Runtime(format!("{name}: {error}")))?;
    Ok(Tools {
        toolbox,
        policy: file.policy,
        rules: file.rules,
        crc32: crc32fast::hash(text.as_bytes()),
    })
}

/// The maximum size of a file with settings or keys, in bytes.
const MAX_SMALL: usize = 1 << 20;

/// Returns the name of a file with settings or keys in messages, and its text. A longer file, or a device that never ends, is an
/// error.
pub(crate) fn read_small(path: &Path) -> Result<(String, String), Failure> {
    read_up_to(path, MAX_SMALL)
}

/// The maximum size of a file with definitions of tools, in bytes.
const MAX_TOOLS: usize = 16 << 20;

/// Like [`read_small`], for a file with definitions of tools.
pub(crate) fn read_tools(path: &Path) -> Result<(String, String), Failure> {
    read_up_to(path, MAX_TOOLS)
}

fn read_up_to(path: &Path, limit: usize) -> Result<(String, String), Failure> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    let bytes = input.into_bytes_up_to(limit)?;
    let text = text(&name, bytes)?;
    Ok((name, text))
}

/// Returns the name of a file in messages, and its text.
pub(crate) fn read(path: &Path) -> Result<(String, String), Failure> {
    let (name, bytes) = read_input(path)?;
    let text = text(&name, bytes)?;
    Ok((name, text))
}

/// Converts the bytes of a file to text, without a byte order mark.
pub(crate) fn text(name: &str, mut bytes: Vec<u8>) -> Result<String, Failure> {
    let mark = bytes.len() - without_bom(&bytes).len();
    bytes.drain(..mark);
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(valid);
        let line = before.filter(|&&byte| byte == b'\n').count() + 1;
        Failure::Runtime(format!(
            "cannot read {name}: line {line} is not UTF-8 text; save the file as UTF-8"
        ))
    })
}

/// Parses a `tools.toml` and prints its errors.
pub(crate) fn parse(name: &str, text: &str, path: &Path) -> Result<ToolsFile, Failure> {
    // Paths in the file are relative to its directory, so the path must be absolute.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    plaincall::read_tools(text, absolute).map_err(|error| invalid_file(name, text, &error))
}

/// Prints the errors of a tools file and returns the failure.
pub(crate) fn invalid_file(name: &str, text: &str, error: &FileError) -> Failure {
    let errors = problems::show(name, text, error);
    // JSON has another form, and the error of an empty file contains this advice.
    let is_other = text.trim_start().starts_with(|c| !matches!(c, '{' | '['));
    let advice = if is_other && !text.contains("[tools") {
        "; a tools file has a table `[tools.NAME]` for each tool"
    } else {
        ""
    };
    Failure::Runtime(format!(
        "{name} has {errors}, so its tools cannot be used{advice}"
    ))
}
