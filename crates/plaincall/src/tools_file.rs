//! `tools.toml`: tools that are commands, how runs go and what may run, written down in a file.
//!
//! ```toml
//! [tools.search]
//! description = "Searches the files of the project for a text."
//! parameters = { text = "string", folder = "string?" }
//! command = ["grep", "-rn", "-e", "{text}", "--", "{folder}"]
//! directory = "{directory:tools}"
//! effect = "read"
//! timeout = "10s"
//!
//! [run]
//! concurrent = 4
//!
//! [[rules]]
//! tools = "search"
//! arguments = { folder = "secret/**" }
//! verdict = "deny"
//! reason = "that folder is nobody's business"
//! ```

mod rules;
mod tool;

use std::path::Path;

use plaincall_call::ToolSpec;
use plaincall_config::tools::RunTable;
use plaincall_config::{Document, Location, child};
pub use plaincall_config::{FileDiagnostic, FileError};

use crate::cut::READ_RESULT;
use crate::policy::Policy;
use crate::rules::Rules;
use crate::tool::Tool;

/// What a tools file says.
#[derive(Clone, Debug, Default)]
pub struct ToolsFile {
    /// The tools, in the order of the file.
    pub tools: Vec<Tool>,
    /// The policy of runs, from the table `[run]`. Default: [`Policy::default`].
    pub policy: Policy,
    /// The rules, each from a table `[[rules]]`, in the order of the file.
    pub rules: Rules,
}

/// A tool of the file, and its definition if there is no problem in it.
struct Known {
    name: String,
    spec: Option<ToolSpec>,
}

/// Reads the text of a tools file.
///
/// `path` is the path of the file; it must be absolute for `{directory:tools}`, which stands for its folder. Nothing is read
/// from it.
///
/// ```
/// let text = r#"
/// [tools.today]
/// command = ["date", "+%F"]
/// effect = "read"
///
/// [run]
/// turn_timeout = "5m"
/// "#;
/// let file = plaincall::read_tools(text, "/home/me/tools.toml")?;
/// assert_eq!(file.tools[0].name(), "today");
/// assert_eq!(file.policy.turn_timeout, Some(std::time::Duration::from_mins(5)));
///
/// let error = plaincall::read_tools("[tools.today]\ncommand = \"date\"", "/home/me/tools.toml").unwrap_err();
/// assert_eq!(error.problems[0].line, 2);
/// # Ok::<(), plaincall::tools_file::FileError>(())
/// ```
///
/// # Errors
/// All problems of the file, each with its line and column.
pub fn read_tools(text: &str, path: impl AsRef<Path>) -> Result<ToolsFile, FileError> {
    let path = path.as_ref();
    let mut document = Document::toml(path.display().to_string(), text);
    let mut file = ToolsFile::default();
    // Behind a mistake in the syntax, the rest may mean something else than it seems to.
    if document.is_well_formed() {
        fill(&mut file, &mut document, path);
    }
    document.finish(file)
}

fn fill(file: &mut ToolsFile, document: &mut Document, path: &Path) {
    for (pointer, form) in [("/tools", "[tools.NAME]"), ("/run", "[run]")] {
        if let Some(node) = document
            .root()
            .get(pointer)
            .filter(|node| node.table().is_none())
        {
            let message = format!("`{}` is {}; write `{form}`", &pointer[1..], node.kind());
            document.problem(&Location::value(pointer), message);
        }
    }
    document.deny_unknown_keys("", &["tools", "run", "rules"]);
    let mut known = Vec::new();
    for name in document.keys("/tools") {
        let at = child("/tools", &name);
        if name == READ_RESULT {
            let message = "`read_result` is the name of a built-in tool; rename this one";
            document.problem(&Location::key(&at), message);
        }
        let tool = tool::tool(document, &name, &at, path);
        let spec = tool.as_ref().map(|tool| tool.spec().clone());
        known.push(Known { name, spec });
        file.tools.extend(tool);
    }
    if known.is_empty() && document.count() == 0 {
        let message = "the file defines no tools; define one with `[tools.NAME]`";
        document.problem(&Location::key(""), message);
    }
    if let Some(table) = document.read::<RunTable>("/run") {
        file.policy = policy(&table);
    }
    // Without a tool nothing is known that a rule could be about.
    if !known.is_empty() {
        file.rules = rules::rules(document, &known);
    }
}

fn policy(table: &RunTable) -> Policy {
    let usual = Policy::default();
    Policy {
        concurrent: table.concurrent.unwrap_or(usual.concurrent),
        calls_per_turn: table.calls_per_turn.map(Into::into),
        block_order: table.block_order.unwrap_or(usual.block_order),
        emoji_order: table.emoji_order.unwrap_or(usual.emoji_order),
        turn_timeout: table.turn_timeout.map(|time| time.0),
        gate_timeout: table.gate_timeout.map_or(usual.gate_timeout, |time| time.0),
        writes: table.writes.unwrap_or_default(),
        unclosed: table.unclosed.unwrap_or_default(),
        limits: usual.limits,
        result_limit: table.result_limit.map_or(usual.result_limit, |size| size.0),
        echoes: table.echoes.unwrap_or_default(),
        untrusted_limit: table
            .untrusted_limit
            .map_or(usual.untrusted_limit, |size| size.0),
        dependency_limit: table
            .dependency_limit
            .map_or(usual.dependency_limit, |size| size.0),
        dependency_total: table
            .dependency_total
            .map_or(usual.dependency_total, |size| size.0),
    }
}
