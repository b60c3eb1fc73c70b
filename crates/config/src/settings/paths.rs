//! Paths in a file, which are relative to its directory.

use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Settings;
use crate::child;

/// A path, which is absolute after [`Settings::resolve`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, extend("format" = "path", "minLength" = 1))]
pub struct FilePath(pub PathBuf);

impl FilePath {
    /// Resolves the path relative to a directory. `~` is the home directory.
    pub fn resolve(&self, folder: &Path, home: Option<&Path>) -> PathBuf {
        match self.0.strip_prefix("~").ok().zip(home) {
            Some((rest, home)) => home.join(rest),
            None => folder.join(&self.0),
        }
    }
}

impl Settings {
    /// Makes all paths absolute. `folder` returns the directory for the value at a pointer.
    pub fn resolve(&mut self, folder: impl Fn(&str) -> PathBuf, home: Option<&Path>) {
        for (pointer, path) in self.paths() {
            path.0 = path.resolve(&folder(&pointer), home);
        }
    }

    /// Returns all paths with their pointers.
    pub fn paths(&mut self) -> Vec<(String, &mut FilePath)> {
        let below = |table: &str, name: &str, key: &str| child(&child(table, name), key);
        let list = |pointer: String| move |index| format!("{pointer}/{index}");
        let mut paths = Vec::new();
        let sessions = self.sessions.iter_mut();
        paths.extend(sessions.map(|path| ("/sessions".to_owned(), path)));
        let own = (
            String::new(),
            (&mut self.system_file, &mut self.tools),
            (&mut self.builtin, &mut self.mcp),
        );
        let agents = self.agents.iter_mut().map(|(name, agent)| {
            (
                child("/agents", name),
                (&mut agent.system_file, &mut agent.tools),
                (&mut agent.builtin, &mut agent.mcp),
            )
        });
        for (at, (system_file, tools), (builtin, mcp)) in [own].into_iter().chain(agents) {
            let system_file = system_file.iter_mut();
            paths.extend(system_file.map(|path| (format!("{at}/system_file"), path)));
            let directory = builtin.directory.iter_mut();
            paths.extend(directory.map(|path| (format!("{at}/builtin/directory"), path)));
            paths.extend((0..).map(list(format!("{at}/tools"))).zip(tools));
            let files = format!("{at}/mcp/files");
            paths.extend((0..).map(list(files)).zip(&mut mcp.files));
            let servers = format!("{at}/mcp/servers");
            for (name, server) in &mut mcp.servers {
                let cwd = server.cwd.iter_mut();
                paths.extend(cwd.map(|path| (below(&servers, name, "cwd"), path)));
            }
        }
        let serve = &mut self.serve;
        let keys = serve.keys_file.iter_mut();
        paths.extend(keys.map(|path| ("/serve/keys_file".to_owned(), path)));
        let secret = serve.secret_file.iter_mut();
        paths.extend(secret.map(|path| ("/serve/secret_file".to_owned(), path)));
        for (name, model) in &mut self.models {
            let (replay, key_file) = (model.replay.iter_mut(), model.key_file.iter_mut());
            paths.extend(replay.map(|path| (below("/models", name, "replay"), path)));
            paths.extend(key_file.map(|path| (below("/models", name, "key_file"), path)));
        }
        paths
    }
}

/// Returns whether a path is lexically below a directory.
pub(super) fn is_below(path: &Path, folder: &Path) -> bool {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found.starts_with(folder)
}
