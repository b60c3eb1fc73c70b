//! Tool definitions from files, in any supported format.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use plaincall::command::Interpreted;
use plaincall::reply::Unclosed;
use plaincall::tool::ToolSpec;
use plaincall::{Rules, Tool};
use plaincall_config::{Document, FileError, Location};
use plaincall_tool::{ToolSet, definitions::read_tool_definitions};
use serde::de::IgnoredAny;

use crate::options::ToolsOption;
use crate::status::Failure;
use crate::tools_file::{self, invalid_file};

impl ToolsOption {
    /// Loads the tools, if a file is set, and the handling of calls without an end marker. `texts` are the other files
    /// that the command reads, if any. Prints errors to standard error.
    pub(crate) fn load(
        &self,
        texts: Option<&[PathBuf]>,
    ) -> Result<(Option<ToolSet>, Unclosed), Failure> {
        let mut unclosed = Unclosed::default();
        if self.tools.is_empty() {
            return Ok((None, unclosed));
        }
        if let Some(texts) = texts {
            self.check_standard_input(texts)?;
        }
        let mut set = ToolSet::default();
        let mut files: HashMap<String, &Path> = HashMap::new();
        let mut has_tools_file = false;
        for path in &self.tools {
            let found = load(path)?;
            has_tools_file |= found.rules.is_some();
            if found.unclosed == Unclosed::Run {
                unclosed = Unclosed::Run;
            }
            for tool in found.tools {
                let name = tool.name.clone();
                if set.add(tool).is_err() {
                    let other = files.get(&name).copied().unwrap_or(path);
                    return Err(Failure::Runtime(format!(
                        "duplicate tool `{name}` in {} and {}; remove one of them",
                        other.display(),
                        path.display()
                    )));
                }
                files.insert(name, path);
            }
        }
        if has_tools_file {
            // Running these tools also provides `read_result`. Adding fails if the file defines a tool with this name.
            let _ = set.add(Tool::read_result().spec().clone());
        }
        Ok((Some(set), unclosed))
    }

    fn check_standard_input(&self, texts: &[PathBuf]) -> Result<(), Failure> {
        let standard = Path::new("-");
        let count = |paths: &[PathBuf]| paths.iter().filter(|path| *path == standard).count();
        let is_text = texts.is_empty() || count(texts) > 0;
        if count(&self.tools) + usize::from(is_text) > 1 && count(&self.tools) > 0 {
            let message = "the texts and `--tools` cannot both come from standard input; name a file for one of them";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(())
    }
}

/// A file with tool definitions.
pub(crate) struct DefinitionFile {
    /// The name of the file in messages.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) tools: Vec<ToolSpec>,
    /// The rules, if the file is a `tools.toml` (whose tools can run).
    pub(crate) rules: Option<Rules>,
    /// The parameters of these tools whose values are interpreted as code.
    pub(crate) interpreted: Vec<(String, Interpreted)>,
    /// The handling of calls without an end marker.
    pub(crate) unclosed: Unclosed,
}

/// Returns an error for text that is not valid JSON. Line and column start at 1; the column counts bytes.
fn not_json(file: &str, text: &str, (line, column): (usize, usize), message: String) -> FileError {
    let lines = text.split_inclusive('\n');
    let before: usize = lines.take(line.saturating_sub(1)).map(str::len).sum();
    FileError::syntax(file, text, before + column.saturating_sub(1), message)
}

/// Reads a file with definitions and prints its errors.
pub(crate) fn load(path: &Path) -> Result<DefinitionFile, Failure> {
    let (name, contents) = tools_file::read_tools(path)?;
    let text = contents.strip_prefix('\u{feff}').unwrap_or(&contents);
    if text.trim().is_empty() && path.extension().is_some_and(|it| it == "json") {
        return Err(defines_no_tools(&name));
    }
    if !is_json(text) {
        let file = tools_file::parse(&name, text, path)?;
        return Ok(DefinitionFile {
            tools: file.tools.iter().map(Tool::spec).cloned().collect(),
            rules: Some(file.rules),
            interpreted: file.tools.iter().flat_map(interpreted).collect(),
            unclosed: file.policy.unclosed,
            text: text.to_owned(),
            name,
        });
    }
    let tools = read_tool_definitions(text)
        .or_else(|error| {
            if let (Some(place), [mistake]) = (error.json_position, error.errors.as_slice()) {
                return Err(not_json(&name, text, place, mistake.to_string()));
            }
            let mut document = Document::json(&*name, text);
            for mistake in &error.errors {
                document.problem(&Location::value(&mistake.at), mistake.to_string());
            }
            document.finish(Vec::new())
        })
        .map_err(|error| invalid_file(&name, text, &error))?;
    if tools.is_empty() {
        return Err(defines_no_tools(&name));
    }
    Ok(DefinitionFile {
        tools,
        rules: None,
        interpreted: Vec::new(),
        unclosed: Unclosed::default(),
        text: text.to_owned(),
        name,
    })
}

fn defines_no_tools(name: &str) -> Failure {
    Failure::Runtime(format!("{name} defines no tools"))
}

fn interpreted(tool: &Tool) -> impl Iterator<Item = (String, Interpreted)> {
    let all = tool.interpreted().iter();
    all.map(|one| (tool.name().to_owned(), one.clone()))
}

/// Returns whether a text is JSON or probably meant as JSON. TOML cannot start with `{`; text that starts with `[` is a
/// TOML table header if a name follows.
fn is_json(text: &str) -> bool {
    let start = text.trim_ascii_start();
    let is_list_of_objects = || {
        let inside = start.strip_prefix('[').map(str::trim_ascii_start);
        inside.is_some_and(|inside| inside.starts_with('{'))
    };
    start.starts_with('{')
        || is_list_of_objects()
        || serde_json::from_str::<IgnoredAny>(text).is_ok()
}
