//! Matching of paths below a directory, however they are written.

use std::path::{Component, Path, PathBuf};

use super::pattern::Pattern;
use super::spelling::{self, Fit};

/// Matches a path against a pattern (`spec/running.md`, "Paths").
pub(super) fn fit(pattern: &Pattern, text: &str, root: &Path) -> Fit {
    let path = below(text, root);
    if pattern.as_str().starts_with('/') {
        return spelling::fit(pattern, &root.join(path).to_string_lossy());
    }
    let found = spelling::fit(pattern, &path);
    if found > Fit::No {
        return found;
    }
    let resolved = below(&resolved(&root.join(&path)), root);
    // A pattern for any directory includes the root.
    let here = pattern.as_str().strip_prefix("**/").map(Pattern::new);
    let patterns = here.iter().chain([pattern]);
    let fits = patterns.map(|pattern| spelling::fit(pattern, &resolved));
    fits.max().unwrap_or(Fit::No).min(Fit::Perhaps)
}

/// Returns the path without `..`, as if it contained no links.
fn resolved(path: &Path) -> String {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            part => resolved.push(part),
        }
    }
    resolved.to_string_lossy().into_owned()
}

/// Returns the path relative to the directory, or unchanged if it is elsewhere.
fn below(text: &str, root: &Path) -> String {
    let path = Path::new(text);
    let path = path.strip_prefix(root).unwrap_or(path);
    // `components` skips empty segments.
    let parts = path.components();
    let path: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    match path.to_string_lossy() {
        empty if empty.is_empty() => ".".to_owned(),
        path => path.into_owned(),
    }
}
