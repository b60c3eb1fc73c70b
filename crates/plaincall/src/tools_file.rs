//! `tools.toml`: command tools, the policy of runs, and rules in a file.
//!
//! ```toml
//! [tools.search]
//! description = "Searches the project files for a text."
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
//! reason = "that directory is private"
//! ```

mod rules;
mod tool;

use std::path::Path;

use plaincall_config::tools::RunTable;
use plaincall_config::{Document, Location, Size, child};
pub use plaincall_config::{FileDiagnostic, FileError};
use plaincall_tool::ToolSpec;

use crate::cut::READ_RESULT;
use crate::policy::Policy;
use crate::rules::Rules;
use crate::tool::Tool;

/// The content of a tools file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolsFile {
    /// The tools, in the order of the file.
    pub tools: Vec<Tool>,
    /// The policy of runs, from `[run]`. Default: [`Policy::default`].
    pub policy: Policy,
    /// The rules, from `[[rules]]`, in the order of the file.
    pub rules: Rules,
}

/// A tool of the file, with its definition if that is valid.
struct Known {
    name: String,
    spec: Option<ToolSpec>,
}

/// Parses the text of a tools file.
///
/// `path` is the path of the file, for messages and for `{directory:tools}`, which needs an absolute path. The file itself is
/// not read.
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
/// Returns all problems of the file, each with its line and column.
pub fn read_tools(text: &str, path: impl AsRef<Path>) -> Result<ToolsFile, FileError> {
    let path = path.as_ref();
    let mut document = Document::toml(path.display().to_string(), text);
    let mut file = ToolsFile::default();
    // After a syntax error, the rest may mean something else.
    if document.is_well_formed() {
        fill(&mut file, &mut document, path);
    }
    document.finish(file)
}

fn fill(file: &mut ToolsFile, document: &mut Document, path: &Path) {
    for (pointer, form) in [("/tools", "[tools.NAME]"), ("/run", "[run]")] {
        let node = document.root().get(pointer);
        if let Some(node) = node.filter(|node| node.table().is_none()) {
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
    // Without tools, every rule would be reported as unmatched.
    if !known.is_empty() {
        file.rules = rules::rules(document, &known);
    }
}

fn policy(table: &RunTable) -> Policy {
    let base = Policy::default();
    let bytes = |size: Option<Size>, default| size.map_or(default, |size| size.0);
    Policy {
        concurrent: table.concurrent.unwrap_or(base.concurrent),
        calls_per_turn: table.calls_per_turn.map(Into::into),
        block_order: table.block_order.unwrap_or(base.block_order),
        emoji_order: table.emoji_order.unwrap_or(base.emoji_order),
        turn_timeout: table.turn_timeout.map(|time| time.0),
        gate_timeout: table.gate_timeout.map_or(base.gate_timeout, |time| time.0),
        writes: table.writes.unwrap_or_default(),
        unclosed: table.unclosed.unwrap_or_default(),
        limits: base.limits,
        result_limit: bytes(table.result_limit, base.result_limit),
        echoes: table.echoes.unwrap_or_default(),
        untrusted_limit: bytes(table.untrusted_limit, base.untrusted_limit),
        dependency_limit: bytes(table.dependency_limit, base.dependency_limit),
        dependency_total: bytes(table.dependency_total, base.dependency_total),
    }
}
