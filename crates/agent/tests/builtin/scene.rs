//! A directory, and calls of the tools for it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use plaincall::{AllowAll, Run, Stop, Toolbox};
use plaincall_agent::builtin::Builtin;
use plaincall_agent::plaincall;
use tempfile::TempDir;

/// A directory `in`, beside a secret.
pub(crate) struct Scene {
    folder: TempDir,
    toolbox: Toolbox,
}

/// The text of every file outside.
pub(crate) const SECRET: &str = "outside and secret";

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(|builtin| builtin)
    }

    pub(crate) fn with(set: impl FnOnce(Builtin) -> Builtin) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        fs::create_dir(folder.path().join("out")).unwrap();
        fs::write(folder.path().join("out/secret"), SECRET).unwrap();
        let builtin = Builtin::in_directory(folder.path().join("in")).unwrap();
        let toolbox = set(builtin).toolbox().unwrap();
        Self { folder, toolbox }
    }

    /// Creates one with these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let scene = Self::new();
        for (path, content) in files {
            scene.file(path, content);
        }
        scene
    }

    pub(crate) fn path(&self, path: impl AsRef<OsStr>) -> PathBuf {
        self.folder.path().join("in").join(Path::new(path.as_ref()))
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    pub(crate) fn file(&self, path: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
    }

    pub(crate) fn content(&self, path: &str) -> String {
        String::from_utf8(fs::read(self.path(path)).unwrap()).unwrap()
    }

    /// The names in a directory.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    pub(crate) fn run(&self) -> Run {
        Run::builder(self.toolbox.clone())
            .gate(AllowAll)
            .environment([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("SECRET", "s")])
            .build()
            .unwrap()
    }

    /// Returns the result of a text with one call: its output, or `error: message`, and after ` | ` the printed text.
    pub(crate) async fn say(&self, text: &str) -> String {
        let mut run = self.run();
        let mut turn = run.turn();
        turn.feed(text);
        let results = turn.finish(Stop::Natural).await;
        let result = &results[0];
        let output = result.output.as_deref();
        // Expected texts must not contain the path of this directory.
        let folder = self.folder.path().to_str().unwrap();
        match result.error.as_deref() {
            None => output.unwrap().replace(folder, "DIR"),
            Some(error) => {
                let output = output.map_or(String::new(), |output| format!(" | {output}"));
                format!("error: {error}{output}").replace(folder, "DIR")
            }
        }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &[(&str, &str)]) -> String {
        self.say(&call(tool, arguments)).await
    }

    pub(crate) async fn check(&self, tool: &str, arguments: &[(&str, &str)], expected: &str) {
        let found = self.call(tool, arguments).await;
        assert_eq!(found, expected, "{tool} {arguments:?}");
    }

    /// Asserts that the outcome of the call contains each of the parts.
    pub(crate) async fn check_parts(&self, tool: &str, arguments: &[(&str, &str)], parts: &[&str]) {
        let found = self.call(tool, arguments).await;
        for part in parts {
            assert!(
                found.contains(part),
                "{tool} {arguments:?}: no {part:?} in\n{found}"
            );
        }
    }
}

/// Returns the text of a call.
pub(crate) fn call(tool: &str, arguments: &[(&str, &str)]) -> String {
    let mut text = format!("!!!GADGET_START:{tool}\n");
    for (name, value) in arguments {
        write!(text, "!!!ARG:{name}\n{value}\n").unwrap();
    }
    text.push_str("!!!GADGET_END\n");
    text
}

/// A name that is not UTF-8.
pub(crate) fn bytes(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}
