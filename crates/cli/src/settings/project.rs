//! The project configuration, which needs the user's trust.

use std::path::{Path, PathBuf};

use plaincall_config::Node;
use plaincall_config::settings::{FilePath, Settings, read_settings, untrusted};

use crate::platform::ownership_flaw;
use crate::settings::texts::{self, Texts};
use crate::settings::trust;
use crate::status::Failure;
use crate::terminal::problems;
use crate::tools_file;

/// The file name.
const FILE: &str = "plaincall.toml";

/// A project configuration.
#[derive(Debug, Default)]
pub(crate) struct Project {
    pub(crate) path: PathBuf,
    /// The name in messages.
    pub(crate) name: String,
    /// The text of the file, read only once so that exactly the checked text is used.
    pub(super) text: String,
    pub(crate) is_trusted: bool,
    /// The files that it includes.
    included: Vec<PathBuf>,
    /// The included system prompts.
    pub(super) system_files: Vec<PathBuf>,
    /// All paths in its settings.
    paths: Vec<PathBuf>,
    /// The checked texts of the included files, if they are trusted.
    pub(super) texts: Texts,
    /// The keys that are ignored because the file is not trusted.
    pub(crate) ignored: Vec<String>,
    /// The names of its agents, if they are ignored.
    pub(super) untrusted_agents: Vec<String>,
    /// Why the whole file is ignored.
    pub(crate) flaw: Option<Flaw>,
}

/// Why a project configuration is ignored.
#[derive(Clone, Debug)]
pub(crate) struct Flaw {
    /// A phrase that follows the name of the file.
    pub(crate) sentence: String,
    /// Whether the content is invalid.
    pub(crate) is_invalid: bool,
}

/// Finds the nearest project configuration in a directory and its parents.
pub(super) fn find(here: &Path) -> Option<PathBuf> {
    let mut files = here.ancestors().map(|directory| directory.join(FILE));
    files.find(|path| path.is_file())
}

impl Project {
    /// Reads the file and returns the layer of its applicable settings. Fails if the file is invalid and an earlier
    /// version of it is trusted; with `shows_errors`, only prints the errors.
    pub(super) fn read(
        path: PathBuf,
        home: Option<&Path>,
        state: Option<&Path>,
        shows_errors: bool,
    ) -> Result<(Self, Node), Failure> {
        let mut project = Self {
            name: path.display().to_string(),
            path,
            ..Self::default()
        };
        let trusted = trust::fingerprint_of(state, &project.path);
        let read = read_file(&project.path).and_then(|text| {
            project.text = text;
            let base = Some((project.directory(), home));
            read_settings(&project.name, &project.text, base).map_err(|error| {
                let count = if shows_errors || trusted.is_some() {
                    problems::show(&project.name, &project.text, &error)
                } else {
                    problems::count(&error)
                };
                Flaw {
                    sentence: format!("has {count}"),
                    is_invalid: true,
                }
            })
        });
        let layer = match read {
            Ok(layer) => layer,
            // The user relies on its restrictions.
            Err(flaw) if trusted.is_some() && !shows_errors => {
                return Err(Failure::Configuration(format!(
                    "{} {}; fix it, or ignore it with `--no-project`",
                    project.name, flaw.sentence
                )));
            }
            Err(flaw) => {
                project.flaw = Some(flaw);
                return Ok((project, Node::default()));
            }
        };
        project.collect_paths(&layer, home);
        // Included files are read only if some version of the project is trusted.
        if let Some(trusted) = trusted
            && let Ok(texts) = project.read_included()
            && trusted == trust::fingerprint(&project, &texts)
        {
            project.is_trusted = true;
            project.texts = texts;
            return Ok((project, layer));
        }
        let agents = layer.get("/agents").and_then(Node::table);
        let agents = agents.map(|agents| agents.keys().cloned().collect());
        project.untrusted_agents = agents.unwrap_or_default();
        let (layer, ignored) = untrusted(layer);
        project.ignored = ignored;
        Ok((project, layer))
    }

    pub(super) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn collect_paths(&mut self, layer: &Node, home: Option<&Path>) {
        let Ok(mut settings) = layer.read::<Settings>() else {
            return;
        };
        settings.resolve(|_| self.directory().to_owned(), home);
        let path = |FilePath(path): FilePath| path;
        let paths = settings.paths().into_iter();
        self.paths = paths.map(|(_, path)| path.0.clone()).collect();
        let mut included: Vec<FilePath> = settings.tools;
        included.extend(settings.mcp.files);
        let mut system_files: Vec<FilePath> = settings.system_file.into_iter().collect();
        for agent in settings.agents.into_values() {
            included.extend(agent.tools.into_iter().chain(agent.mcp.files));
            system_files.extend(agent.system_file);
        }
        self.system_files = system_files.into_iter().map(path).collect();
        let included = included.into_iter().map(path);
        self.included = included.chain(self.system_files.clone()).collect();
    }

    /// Reads the included files.
    pub(super) fn read_included(&self) -> Result<Texts, String> {
        for path in &self.paths {
            texts::check_in_project(path, self.directory())
                .map_err(|reason| format!("{} cannot be used: {reason}", path.display()))?;
        }
        texts::read_all(&self.included, self.directory())
    }

    /// Returns the warning about ignored settings, if any.
    pub(super) fn warning(&self) -> Option<String> {
        let name = &self.name;
        if let Some(flaw) = &self.flaw {
            let mut text = format!("{name} {}, so it is ignored", flaw.sentence);
            if flaw.is_invalid {
                text.push_str("; for details, run `plaincall config`");
            }
            return Some(text);
        }
        let ignored = self.ignored.join(", ");
        (!ignored.is_empty()).then(|| format!(
            "{name} is not trusted, so these keys are ignored: {ignored}; to review and trust it, run `plaincall config --trust`"
        ))
    }
}

/// Reads a project configuration that belongs to the user.
fn read_file(path: &Path) -> Result<String, Flaw> {
    let flaw = |sentence: String| Flaw {
        sentence,
        is_invalid: false,
    };
    let unreadable = |reason: String| flaw(format!("cannot be read: {reason}"));
    let (bytes, metadata) = texts::read(path).map_err(unreadable)?;
    let flawed = ownership_flaw(path, &metadata).map_err(|error| unreadable(error.to_string()))?;
    if let Some(sentence) = flawed {
        return Err(flaw(sentence));
    }
    let name = path.display().to_string();
    tools_file::text(&name, bytes).map_err(|_| Flaw {
        sentence: "is not UTF-8 text".to_owned(),
        is_invalid: true,
    })
}
