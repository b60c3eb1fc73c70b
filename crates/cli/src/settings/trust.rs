//! Whether the user trusts a project's file.
//!
//! It comes from the author of the project. Until the user trusts it, only its restrictions apply. Trust covers the exact
//! content of this file and of the files that it names. Changing any of these files revokes trust.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use plaincall_config::{not_shown, redacted, redacted_prose};
use sha2::{Digest as _, Sha256};

use crate::output::Output;
use crate::settings::texts::Texts;
use crate::settings::{Configuration, Project};
use crate::status::{Failure, Outcome, Status, remark};
use crate::terminal::tty::Tty;
use crate::visible::harmless;

/// The SHA-256 of texts, each with its length, which keeps two apart.
fn sha256<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> String {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    let mut hex = String::new();
    for byte in digest.finalize() {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The project's file and those that it names.
fn files<'f>(project: &'f Project, named: &'f Texts) -> impl Iterator<Item = (&'f Path, &'f [u8])> {
    let named = named.iter().map(|(path, text)| (&**path, &**text));
    std::iter::once((&*project.path, project.text.as_bytes())).chain(named)
}

/// The fingerprint of these texts. Their paths are part of it, as seen from the folder of the project's file.
pub(super) fn fingerprint(project: &Project, named: &Texts) -> String {
    sha256(files(project, named).flat_map(|(path, text)| {
        let path = path.strip_prefix(project.folder()).unwrap_or(path);
        [path.as_os_str().as_bytes(), text]
    }))
}

/// The file that holds the fingerprint of what was trusted of this project.
fn file(state: &Path, path: &Path) -> PathBuf {
    let name = sha256([path.as_os_str().as_bytes()]);
    state.join("trusted").join(name)
}

/// The fingerprint of the texts that were trusted under this path, if any were.
pub(super) fn fingerprint_of(state: Option<&Path>, path: &Path) -> Option<String> {
    fs::read_to_string(file(state?, path)).ok()
}

/// Trusts these texts from now on, in the place of what was trusted under this path; or nothing of it any more.
fn set(state: &Path, path: &Path, fingerprint: Option<&str>) -> Result<(), Failure> {
    let file = file(state, path);
    let written = match fingerprint {
        Some(fingerprint) => {
            let folder = file.parent().unwrap_or(state);
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            // A part of a fingerprint trusts nothing.
            made.and_then(|()| fs::write(&file, fingerprint))
        }
        None => fs::remove_file(&file),
    };
    match written {
        Err(error) if error.kind() == ErrorKind::NotFound && fingerprint.is_none() => Ok(()),
        written => written
            .map_err(|error| Failure::Broken(format!("cannot write {}: {error}", file.display()))),
    }
}

/// Shows the project's file and those that it names, and trusts them if the user confirms on the terminal, or
/// `expected` is their fingerprint.
///
/// # Errors
/// What keeps it from being trusted.
pub(crate) fn trust(configuration: &Configuration, expected: &str, output: &mut Output) -> Outcome {
    let (project, state) = place(configuration)?;
    let name = &project.name;
    if let Some(flaw) = &project.flaw {
        let message = format!("{name} {}, so it cannot be trusted", flaw.sentence);
        return Err(Failure::Configuration(message));
    }
    // What is shown is what is hashed, and what is trusted; nothing is read twice.
    let texts = project
        .read_named()
        .map_err(|reason| Failure::Broken(format!("{name} cannot be trusted: {reason}")))?;
    let fingerprint = fingerprint(project, &texts);
    show(project, &texts, output)?;
    if expected.is_empty() {
        if !is_wanted(&fingerprint)? {
            remark(&format!("{name} is not trusted"));
            return Ok(Status::Wrong);
        }
    } else if expected != fingerprint {
        return Err(Failure::Broken(format!(
            "nothing was trusted: the fingerprint of the files above is {fingerprint}, not {expected}"
        )));
    }
    set(state, &project.path, Some(&fingerprint))?;
    remark(&format!(
        "{name} is now trusted as shown above, until one of these files changes; to undo this, run `plaincall config --distrust`"
    ));
    Ok(Status::Good)
}

/// Does not trust the project's file any more.
///
/// # Errors
/// There is none, or it cannot be remembered.
pub(crate) fn distrust(configuration: &Configuration) -> Outcome {
    let (project, state) = place(configuration)?;
    set(state, &project.path, None)?;
    remark(&format!("{} is no longer trusted", project.name));
    Ok(Status::Good)
}

/// The project, and where trust in it is kept.
fn place(configuration: &Configuration) -> Result<(&Project, &Path), Failure> {
    let no_file =
        "no project configuration: there is no `plaincall.toml` in this directory or its parents";
    let no_state = "cannot store trust: neither `XDG_STATE_HOME` nor `HOME` is set";
    let (project, state) = (
        configuration.project.as_ref(),
        configuration.state.as_deref(),
    );
    Ok((
        project.ok_or_else(|| Failure::Usage(no_file.to_owned()))?,
        state.ok_or_else(|| Failure::Broken(no_state.to_owned()))?,
    ))
}

fn show(project: &Project, texts: &Texts, output: &mut Output) -> Result<(), Failure> {
    for (path, text) in files(project, texts) {
        let text = String::from_utf8_lossy(text);
        let text = if project.prose.as_deref() == Some(path) {
            redacted_prose(&text, not_shown)
        } else {
            redacted(&text, not_shown)
        };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let (path, text) = (harmless(&path.display().to_string()), harmless(&text));
        output.text(format_args!("--- {path}\n{text}{end}"))?;
    }
    output.flush()
}

fn is_wanted(fingerprint: &str) -> Result<bool, Failure> {
    let terminal = Tty::open().map_err(|reason| {
        Failure::Broken(format!(
            "nothing was trusted: {reason}; to trust the files above, run `plaincall config --trust={fingerprint}`"
        ))
    })?;
    let answer = terminal.line("Trust these files? [y/N] ");
    let answer = answer.map_err(|error| Failure::Broken(format!("cannot ask: {error}")))?;
    let answer = answer.trim().to_ascii_lowercase();
    Ok(answer == "y" || answer == "yes")
}
