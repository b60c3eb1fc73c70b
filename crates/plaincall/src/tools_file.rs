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

mod choice;
mod mistake;
mod parameters;
mod retry;
mod rules;
mod run;
mod size;
mod table;
mod time;
mod tool;

use std::borrow::Cow;
use std::path::Path;

use plaincall_call::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use mistake::{Mistake, ToolsFileError};
#[doc(hidden)]
pub use time::read_time;

use crate::cut::READ_RESULT;
use crate::policy::Policy;
use crate::rules::Rules;
use crate::tool::Tool;
use mistake::Mistakes;
use rules::Known;
use table::Table;

/// What a file may hold at its top.
const TABLES: [&str; 3] = ["tools", "run", "rules"];

/// What a tools file says.
#[derive(Clone, Debug, Default)]
pub struct ToolsFile {
    /// The tools, in the order of the file.
    pub tools: Vec<Tool>,
    /// What holds for all calls of a run, from the table `[run]`; what it does not say is as in [`Policy::default`].
    pub policy: Policy,
    /// The rules, each from a table `[[rules]]`, in the order of the file.
    pub rules: Rules,
}

/// Reads the text of a tools file.
///
/// `path` is where the file lies; it must be absolute for `{directory:tools}`, which stands for its folder, to mean
/// anything. Nothing is read from it.
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
/// assert_eq!(error.mistakes[0].line, 2);
/// # Ok::<(), plaincall::ToolsFileError>(())
/// ```
///
/// # Errors
/// All mistakes of the file, each with its line and column.
pub fn read_tools(text: &str, path: impl AsRef<Path>) -> Result<ToolsFile, ToolsFileError> {
    let mut mistakes = Mistakes::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or_default();
        if error.message() == "duplicate key" {
            let key = text.get(span.clone()).unwrap_or_default();
            mistakes.add(span, format!("`{key}` stands here for the second time"));
        } else {
            mistakes.add(span, error.message());
        }
    }
    // Behind a mistake in the form, the rest may mean something else than it seems to.
    mistakes.is_toml = errors.is_empty();
    let file = if mistakes.is_toml {
        file(document.get_ref(), path.as_ref(), &mut mistakes)
    } else {
        ToolsFile::default()
    };
    mistakes.into_result(file)
}

fn file(document: &DeTable<'_>, path: &Path, mistakes: &mut Mistakes<'_>) -> ToolsFile {
    for key in document.keys() {
        let name = key.get_ref().as_ref();
        if !TABLES.contains(&name) {
            let message = format!(
                "there is no key `{name}` here; a file holds `[tools.NAME]`, `[run]` and `[[rules]]`{}",
                did_you_mean(name, TABLES)
            );
            mistakes.add(key.span(), message);
        }
    }
    let mut file = ToolsFile::default();
    let mut known = Vec::new();
    if let Some((_, value)) = entry(document, "tools") {
        match value.get_ref() {
            DeValue::Table(table) => tools(table, path, mistakes, &mut file.tools, &mut known),
            other => {
                let kind = table::kind(other);
                let message = format!("`tools` is {kind}; write `[tools.NAME]` for each tool");
                mistakes.add(value.span(), message);
            }
        }
    }
    if known.is_empty() && mistakes.count() == 0 {
        let message = "the file defines no tool; a tool begins with `[tools.NAME]`";
        mistakes.add(0..0, message);
    }
    if let Some((key, value)) = entry(document, "run") {
        match value.get_ref() {
            DeValue::Table(table) => {
                file.policy = run::policy(&Table::new(key.get_ref(), key.span(), table), mistakes);
            }
            other => {
                let kind = table::kind(other);
                mistakes.add(value.span(), format!("`run` is {kind}; write `[run]`"));
            }
        }
    }
    // Without a tool nothing is known that a rule could be about.
    let rules = entry(document, "rules").filter(|_| !known.is_empty());
    if let Some((_, value)) = rules {
        file.rules = rules::rules(value, &known, mistakes);
    }
    file
}

fn entry<'t, 'i>(
    table: &'t DeTable<'i>,
    name: &str,
) -> Option<(&'t Spanned<Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    table.iter().find(|(key, _)| key.get_ref() == name)
}

/// Reads all tools. What is `known` of a tool that has a mistake is its name.
fn tools<'t>(
    table: &'t DeTable<'_>,
    path: &Path,
    mistakes: &mut Mistakes<'_>,
    tools: &mut Vec<Tool>,
    known: &mut Vec<Known<'t>>,
) {
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let before = mistakes.count();
        let tool = if let DeValue::Table(definition) = value.get_ref() {
            let table = Table::new(name, key.span(), definition);
            if name == READ_RESULT {
                let message = "`read_result` is the name of the built-in tool that reads on in long results; give this one another name";
                mistakes.add(key.span(), message);
            }
            tool::tool(&table, path, mistakes).filter(|_| mistakes.count() == before)
        } else {
            let kind = table::kind(value.get_ref());
            mistakes.add(
                value.span(),
                format!("the tool `{name}` is {kind}; write `[tools.{name}]`"),
            );
            None
        };
        known.push(Known {
            name,
            spec: tool.as_ref().map(|tool| tool.spec().clone()),
        });
        tools.extend(tool);
    }
}
