//! The tools of the simulated world, which are data: `tasks/tools.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plaincall::Effect;
use plaincall::tool::ToolSpec;
use plaincall_agent::model::NativeTool;
use serde::Deserialize;
use serde_json::Value;

pub(crate) const TEXT: &str = include_str!("../tasks/tools.toml");

/// The parsed file. A test checks that it is valid.
static FILE: LazyLock<File> = LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The conventions of each group.
    conventions: BTreeMap<String, String>,
    tool: Vec<Definition>,
}

/// A tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    pub(crate) name: String,
    group: String,
    pub(crate) does: Operation,
    /// The list that an `append` tool adds to.
    #[serde(default)]
    pub(crate) list: String,
    /// The number of entries before the first.
    #[serde(default)]
    pub(crate) number: u64,
    /// The result of an `append` or `fixed` tool. `{number}` is the number of the entry.
    #[serde(default)]
    pub(crate) result: String,
    effect: Effect,
    description: String,
    positional: Option<Vec<String>>,
    body: Option<String>,
    parameters: String,
    manual: String,
}

/// The effect of a tool on the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    ReadFile,
    WriteFile,
    EditFile,
    ListFiles,
    SearchFiles,
    MakeDirectory,
    MoveFile,
    DeleteFile,
    GetRecord,
    FindRecords,
    SaveRecord,
    DeleteRecord,
    ReadGauge,
    RunTests,
    Append,
    Fixed,
}

/// Returns the names of all tools.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILE.tool.iter().map(|tool| tool.name.as_str())
}

pub(crate) fn definition(name: &str) -> Option<&'static Definition> {
    FILE.tool.iter().find(|tool| tool.name == name)
}

impl Definition {
    fn schema(&self) -> Value {
        serde_json::from_str(&self.parameters).unwrap_or_default()
    }

    /// The description, with the manual and the conventions of the group if it is a long one.
    fn described(&self, is_long: bool) -> String {
        if !is_long {
            return self.description.clone();
        }
        let conventions = FILE.conventions.get(&self.group);
        let conventions = conventions.map_or("", String::as_str);
        format!("{}\n{}\n{conventions}", self.description, self.manual)
    }

    pub(crate) fn spec(&self, is_long: bool) -> Option<ToolSpec> {
        let mut spec = ToolSpec::new(&self.name)
            .describe(self.described(is_long))
            .effect(self.effect)
            .parameters_from_schema(&self.schema())
            .ok()?;
        spec.positional.clone_from(&self.positional);
        spec.body.clone_from(&self.body);
        Some(spec)
    }

    pub(crate) fn native(&self, is_long: bool) -> NativeTool {
        NativeTool::new(&*self.name, self.described(is_long), self.schema())
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE, File, TEXT, definition};

    #[test]
    fn the_file_is_valid() {
        let file: File = toml::from_str(TEXT).unwrap();
        assert_eq!(file.tool.len(), 24);
        for tool in &file.tool {
            assert!(tool.spec(false).is_some(), "{}", tool.name);
            assert!(tool.schema().is_object(), "{}", tool.name);
            assert!(file.conventions.contains_key(&tool.group), "{}", tool.name);
            assert!(definition(&tool.name).is_some());
        }
        assert_eq!(FILE.tool.len(), 24);
    }
}
