//! `.gitignore` files.

use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use crate::builtin::glob::Glob;
use crate::builtin::workspace::{open_without_waiting, read_all};

/// The largest file, in bytes.
const LONGEST: usize = 64 << 10;
/// The most rules that apply to a directory, together with those of the directories above it. Further ones are not read.
const MOST_RULES: usize = 1_000;

/// The rules for the current directory of a search: those of its own file and of the directories above it.
#[derive(Debug, Default)]
pub(super) struct Ignored(Vec<(PathBuf, Vec<Rule>)>);

#[derive(Debug)]
struct Rule {
    glob: Glob,
    is_negated: bool,
    is_for_directories: bool,
    /// The rule applies to names in its own directory only.
    is_at_top: bool,
}

impl Ignored {
    /// Reads the file of a directory, unless the last one read is the same.
    pub(super) fn enter(&mut self, dir: &Dir, path: &Path) {
        while self.0.pop_if(|(last, _)| !path.starts_with(last)).is_some() {}
        if self.0.last().is_some_and(|(last, _)| last == path) {
            return;
        }
        let file = open_without_waiting(dir, Path::new(".gitignore")).ok();
        let file = file.filter(|file| file.metadata().is_ok_and(|about| about.is_file()));
        let bytes = file.and_then(|file| read_all(file, LONGEST).ok().flatten());
        let text = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
        let rules = text.trim_start_matches('\u{feff}').lines();
        let known: usize = self.0.iter().map(|(_, rules)| rules.len()).sum();
        let rules = rules.take(MOST_RULES.saturating_sub(known));
        self.0
            .push((path.to_owned(), rules.filter_map(Rule::read).collect()));
    }

    /// Returns whether the last rule that matches hides a path. Rules of deeper directories come last.
    pub(super) fn hides(&self, path: &Path, is_directory: bool) -> bool {
        let folders = self.0.iter().rev();
        let mut rules = folders.flat_map(|(folder, rules)| {
            let below = path.strip_prefix(folder).unwrap_or(path);
            rules.iter().rev().map(move |rule| (rule, below))
        });
        let last = rules.find(|(rule, below)| rule.fits(below, is_directory));
        last.is_some_and(|(rule, _)| !rule.is_negated)
    }
}

impl Rule {
    fn read(line: &str) -> Option<Self> {
        let line = line.trim_end();
        if line.starts_with('#') {
            return None;
        }
        let (line, is_negated) = match line.strip_prefix('!') {
            Some(rest) => (rest, true),
            None => (line, false),
        };
        let pattern = line.strip_suffix('/').unwrap_or(line);
        Some(Self {
            glob: Glob::new(pattern).ok()?,
            is_negated,
            is_for_directories: pattern.len() < line.len(),
            is_at_top: pattern
                .strip_prefix('/')
                .is_some_and(|it| !it.contains('/')),
        })
    }

    fn fits(&self, below: &Path, is_directory: bool) -> bool {
        let is_at_top = below.parent() == Some(Path::new(""));
        (is_directory || !self.is_for_directories)
            && (is_at_top || !self.is_at_top)
            && self.glob.fits(below)
    }
}
