//! A project's file: it comes with the project, from its author, and counts as far as it is trusted.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use plaincall_config::{FilePath, Node, Settings, read_settings, untrusted};

use crate::settings::texts::{self, Texts};
use crate::settings::trust;
use crate::status::Failure;
use crate::terminal::problems;
use crate::tools_file;

/// The name of a project's file.
const FILE: &str = "plaincall.toml";
/// Everybody can write there.
const WORLD_WRITABLE: u32 = 0o002;
/// Only the owner of a file can replace it there.
const STICKY: u32 = 0o1000;

#[derive(Debug, Default)]
pub(crate) struct Project {
    pub(crate) path: PathBuf,
    /// Its name for messages.
    pub(crate) name: String,
    /// The text that was read. It is read once: what was looked at is what is used.
    pub(super) text: String,
    pub(crate) is_trusted: bool,
    /// The files that it names and whose texts are used as if they were in it.
    named: Vec<PathBuf>,
    /// Of these the one with words for the model.
    pub(super) prose: Option<PathBuf>,
    /// All paths in it.
    paths: Vec<PathBuf>,
    /// The texts of the named files, the very ones that are trusted; none if they are not.
    pub(super) texts: Texts,
    /// What of it does not count, since it is not trusted.
    pub(crate) left_out: Vec<String>,
    /// Why nothing of it counts.
    pub(crate) flaw: Option<Flaw>,
}

/// Why nothing of a project's file counts: a sentence of which the file is the beginning.
#[derive(Clone, Debug)]
pub(crate) struct Flaw {
    pub(crate) sentence: String,
    /// The file is invalid. Its errors were shown if requested.
    pub(crate) is_invalid: bool,
}

/// The nearest project's file, from a directory up.
pub(super) fn find(here: &Path) -> Option<PathBuf> {
    let mut files = here.ancestors().map(|folder| folder.join(FILE));
    files.find(|path| path.is_file())
}

impl Project {
    /// Reads the file, and the layer of what counts of it. With `shows_errors` its mistakes are shown, and are no failure.
    ///
    /// # Errors
    /// It has mistakes, and what it forbade was trusted before they were made.
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
        let read = read_own(&project.path).and_then(|text| {
            project.text = text;
            let place = Some((project.folder(), home));
            read_settings(&project.name, &project.text, place).map_err(|error| {
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
            // The user counts on what it forbids.
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
        project.note_paths(&layer, home);
        // The files that it names are not read before the user trusts them.
        if let Some(trusted) = trusted
            && let Ok(texts) = project.read_named()
            && trusted == trust::fingerprint(&project, &texts)
        {
            project.is_trusted = true;
            project.texts = texts;
            return Ok((project, layer));
        }
        let (layer, left_out) = untrusted(layer);
        project.left_out = left_out;
        Ok((project, layer))
    }

    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn note_paths(&mut self, layer: &Node, home: Option<&Path>) {
        let Ok(mut settings) = layer.read::<Settings>() else {
            return;
        };
        settings.resolve(|_| self.folder().to_owned(), home);
        let path = |FilePath(path): FilePath| path;
        let paths = settings.paths().into_iter();
        self.paths = paths.map(|(_, path)| path.0.clone()).collect();
        self.prose = settings.system_file.map(path);
        let named = settings.tools.into_iter().chain(settings.mcp.files);
        self.named = named.map(path).chain(self.prose.clone()).collect();
    }

    /// The texts of the files that it names.
    ///
    /// # Errors
    /// One of them cannot be used, or a path in it leads out of the project: which, and why.
    pub(super) fn read_named(&self) -> Result<Texts, String> {
        for path in &self.paths {
            texts::stays_in(path, self.folder())
                .map_err(|reason| format!("{} cannot be used: {reason}", path.display()))?;
        }
        texts::read_all(&self.named, self.folder())
    }

    /// The warning if something of it does not count.
    pub(super) fn warning(&self) -> Option<String> {
        let name = &self.name;
        if let Some(flaw) = &self.flaw {
            let mut text = format!("{name} {}, so it is ignored", flaw.sentence);
            if flaw.is_invalid {
                text.push_str("; for details, run `plaincall config`");
            }
            return Some(text);
        }
        let left_out = self.left_out.join(", ");
        (!left_out.is_empty()).then(|| format!(
            "{name} is not trusted, so these keys are ignored: {left_out}; to review and trust it, run `plaincall config --trust`"
        ))
    }
}

/// The text of a project's file that belongs to the user.
fn read_own(path: &Path) -> Result<String, Flaw> {
    let flaw = |sentence: String| Flaw {
        sentence,
        is_invalid: false,
    };
    let unreadable = |reason: String| flaw(format!("cannot be read: {reason}"));
    let (bytes, about) = texts::read(path).map_err(unreadable)?;
    let look =
        |path: &Path| fs::symlink_metadata(path).map_err(|error| unreadable(error.to_string()));
    let own = rustix::process::geteuid().as_raw();
    // The link, if it is one, and what it leads to.
    for owner in [look(path)?.uid(), about.uid()] {
        if owner != own && owner != 0 {
            let sentence = format!("belongs to another user (uid {owner}; yours is {own})");
            return Err(flaw(sentence));
        }
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mode = look(folder)?.permissions().mode();
    if mode & WORLD_WRITABLE != 0 && mode & STICKY == 0 {
        return Err(flaw("is in a world-writable directory".to_owned()));
    }
    let name = path.display().to_string();
    tools_file::text(&name, bytes).map_err(|_| Flaw {
        sentence: "is not UTF-8 text".to_owned(),
        is_invalid: true,
    })
}
