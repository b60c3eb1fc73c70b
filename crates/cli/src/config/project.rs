//! A project's file: it comes with the project, from whoever wrote that, and counts as far as it is trusted.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config::layer::{Author, Layer};
use crate::config::texts::{self, Texts};
use crate::config::{mistakes, trust};
use crate::status::Failure;
use crate::tools_file;

/// What a project's file is called.
const FILE: &str = "plaincall.toml";
/// What the model reads of a rule that denies, as long as its words are not trusted.
const UNTRUSTED_REASON: &str = "a rule of the project denies this call";
/// Everybody can write there.
const WORLD_WRITABLE: u32 = 0o002;
/// What stands there belongs to whoever has put it there.
const STICKY: u32 = 0o1000;

/// A project's file.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) path: PathBuf,
    /// The text that was read. It is read once: what was looked at is what is used.
    pub(super) text: String,
    pub(crate) is_trusted: bool,
    /// The files that it names.
    pub(super) named: Vec<PathBuf>,
    /// Of these the one with words for the model.
    pub(super) prose: Option<PathBuf>,
    /// All paths in it.
    paths: Vec<PathBuf>,
    /// Their texts, the very ones that are trusted; nothing if they are not.
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
    /// It has mistakes, which were shown if somebody asked for them.
    pub(crate) is_mistake: bool,
}

/// The nearest project's file, from a directory up.
pub(super) fn find(here: &Path) -> Option<PathBuf> {
    let files = here.ancestors().map(|folder| folder.join(FILE));
    files.into_iter().find(|path| path.is_file())
}

impl Project {
    /// Reads the file. What of it counts is in the layer.
    ///
    /// `is_told` is whether somebody wants to know about the file itself: then its mistakes are shown, and are no failure.
    ///
    /// # Errors
    /// It has mistakes, and what it forbade was trusted before they were made.
    pub(super) fn read(
        path: PathBuf,
        schema: &Value,
        home: Option<&Path>,
        state: Option<&Path>,
        is_told: bool,
    ) -> Result<(Self, Layer), Failure> {
        let mut project = Self {
            path,
            text: String::new(),
            is_trusted: false,
            named: Vec::new(),
            prose: None,
            paths: Vec::new(),
            texts: Texts::default(),
            left_out: Vec::new(),
            flaw: None,
        };
        let said = trust::said(state, &project.path);
        let name = project.path.display().to_string();
        let read = read_own(&project.path);
        let read = read.and_then(|text| {
            project.text = text;
            let (author, text) = (Author::Project, &project.text);
            mistakes::layer(text, &project.path, schema, author, home).map_err(|mistakes| {
                if is_told || said.is_some() {
                    mistakes::show(&name, text, &mistakes);
                }
                Flaw {
                    sentence: format!("has {}", mistakes::count(&mistakes)),
                    is_mistake: true,
                }
            })
        });
        let layer = match read {
            Ok(layer) => layer,
            // What it forbids is counted on.
            Err(flaw) if said.is_some() && !is_told => {
                return Err(Failure::Configuration(format!(
                    "{name} {}, so nothing is done; `--no-project` leaves it out",
                    flaw.sentence
                )));
            }
            Err(flaw) => {
                project.flaw = Some(flaw);
                return Ok((project, Layer::default()));
            }
        };
        project.named = named(&layer);
        let prose = layer.values.get("system_file").and_then(Value::as_str);
        project.prose = prose.map(PathBuf::from);
        project.paths.clone_from(&layer.paths);
        // Nothing that it names is looked at before somebody has said that it may be.
        if let Some(said) = said
            && let Ok(texts) = project.read_named()
            && said == trust::fingerprint(&project.path, &project.text, &texts)
        {
            project.is_trusted = true;
            project.texts = texts;
            return Ok((project, layer));
        }
        let layer = project.untrusted(layer);
        Ok((project, layer))
    }

    /// What counts of a layer without trust: what forbids. That is rules that deny, and rules by which somebody is asked,
    /// which come after all others. What they say to the model is said in words of ours.
    fn untrusted(&mut self, mut layer: Layer) -> Layer {
        let is = |rule: &Value, word: &str| rule.get("verdict").is_some_and(|it| it == word);
        let mut kept = Layer::default();
        for (key, value) in std::mem::take(&mut layer.values) {
            match (key.as_str(), value) {
                ("rules", Value::Array(rules)) => {
                    let mut counting = Vec::new();
                    let mut has_allowing = false;
                    for (index, mut rule) in rules.into_iter().enumerate() {
                        if is(&rule, "allow") {
                            has_allowing = true;
                            continue;
                        }
                        if is(&rule, "deny")
                            && let Value::Object(rule) = &mut rule
                        {
                            rule.insert("reason".to_owned(), UNTRUSTED_REASON.into());
                        }
                        if let Some(place) = layer.places.remove(&format!("rules[{index}]")) {
                            let path = format!("rules[{}]", counting.len());
                            kept.places.insert(path, place);
                        }
                        counting.push(rule);
                    }
                    if has_allowing {
                        self.left_out.push("rules that allow".to_owned());
                    }
                    kept.values.insert(key, Value::Array(counting));
                }
                (name, _) => self.left_out.push(format!("`{name}`")),
            }
        }
        kept
    }

    /// The texts of the files that it names.
    ///
    /// # Errors
    /// One of them cannot be used, or a path in it leads out of the project: which, and why.
    pub(super) fn read_named(&self) -> Result<Texts, String> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        for path in &self.paths {
            texts::stays_in(path, folder)
                .map_err(|reason| format!("{} cannot be used: {reason}", path.display()))?;
        }
        Texts::read(&self.named, folder)
    }

    /// What is to be said if something of it does not count.
    pub(crate) fn doubt(&self) -> Option<String> {
        let path = self.path.display();
        if let Some(Flaw {
            sentence,
            is_mistake,
        }) = &self.flaw
        {
            let more = if *is_mistake {
                "; `plaincall config` shows more"
            } else {
                ""
            };
            return Some(format!("{path} {sentence}, so nothing of it counts{more}"));
        }
        if self.left_out.is_empty() {
            return None;
        }
        Some(format!(
            "{path} is not trusted, so this of it does not count: {}; `plaincall config --trust` shows it and asks whether to trust it",
            self.left_out.join(", ")
        ))
    }
}

/// The text of a project's file that is not somebody else's.
fn read_own(path: &Path) -> Result<String, Flaw> {
    let flaw = |sentence: String| Flaw {
        sentence,
        is_mistake: false,
    };
    let unreadable = |reason: String| flaw(format!("cannot be read: {reason}"));
    let (bytes, about) = texts::read(path).map_err(unreadable)?;
    let look = |path: &Path| {
        fs::symlink_metadata(path).map_err(|error| flaw(format!("cannot be read: {error}")))
    };
    let own = rustix::process::geteuid().as_raw();
    // The link, if it is one, and what it leads to.
    for owner in [look(path)?.uid(), about.uid()] {
        if owner != own && owner != 0 {
            return Err(flaw(format!(
                "belongs to another user (number {owner}; you are {own})"
            )));
        }
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mode = look(folder)?.permissions().mode();
    if mode & WORLD_WRITABLE != 0 && mode & STICKY == 0 {
        return Err(flaw(
            "stands in a directory in which everybody can replace it".to_owned(),
        ));
    }
    let name = path.display().to_string();
    tools_file::text(&name, bytes).map_err(|failure| Flaw {
        sentence: format!("is no text: {}", failure.message()),
        is_mistake: true,
    })
}

/// The files that a layer names and whose texts are used as if they stood in it.
fn named(layer: &Layer) -> Vec<PathBuf> {
    let values = &layer.values;
    let list = |value: Option<&Value>| {
        let list = value.and_then(Value::as_array).into_iter().flatten();
        let paths = list.filter_map(Value::as_str).map(PathBuf::from);
        paths.collect::<Vec<_>>()
    };
    let mut named = list(values.get("tools"));
    named.extend(list(values.get("mcp").and_then(|mcp| mcp.get("files"))));
    let system = values.get("system_file").and_then(Value::as_str);
    named.extend(system.map(PathBuf::from));
    named
}
