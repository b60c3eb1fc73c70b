//! The user's trust in a project configuration.
//!
//! The configuration comes from the author of the project. Until the user trusts it, only its restrictions apply. Trust
//! covers the exact content of this file and of the files that it includes. Changing any of these files revokes trust.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plaincall::private;
use plaincall_config::secret::{not_shown, redacted, redacted_prose};
use sha2::{Digest as _, Sha256};

use crate::output::Output;
use crate::platform::{HOME, STATE};
use crate::sanitize::sanitize;
use crate::settings::texts::Texts;
use crate::settings::{Configuration, Project};
use crate::status::{Failure, Outcome, Status, cannot_write, print_note};
use crate::terminal::tty::Tty;

/// Returns the SHA-256 of texts. Each is prefixed with its length, so that their boundaries matter.
fn sha256<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> String {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    let mut hex = String::new();
    for byte in digest.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Returns the project configuration and its included files.
fn files<'f>(
    project: &'f Project,
    included: &'f Texts,
) -> impl Iterator<Item = (&'f Path, &'f [u8])> {
    let included = included.iter().map(|(path, text)| (&**path, &**text));
    std::iter::once((&*project.path, project.text.as_bytes())).chain(included)
}

/// Returns the fingerprint of these files. It includes their paths, relative to the project.
pub(super) fn fingerprint(project: &Project, included: &Texts) -> String {
    sha256(files(project, included).flat_map(|(path, text)| {
        let path = path.strip_prefix(project.directory()).unwrap_or(path);
        [path.as_os_str().as_encoded_bytes(), text]
    }))
}

/// Returns the path of the file with the trusted fingerprint of a project.
fn file(state: &Path, path: &Path) -> PathBuf {
    let name = sha256([path.as_os_str().as_encoded_bytes()]);
    state.join("trusted").join(name)
}

/// Returns the trusted fingerprint of a project, if any.
pub(super) fn fingerprint_of(state: Option<&Path>, path: &Path) -> Option<String> {
    fs::read_to_string(file(state?, path)).ok()
}

/// Stores the trusted fingerprint of a project, or removes it.
fn set(state: &Path, path: &Path, fingerprint: Option<&str>) -> Result<(), Failure> {
    let file = file(state, path);
    let result = match fingerprint {
        Some(fingerprint) => {
            let directory = file.parent().unwrap_or(state);
            let created = private::create_directory(directory);
            // An incomplete fingerprint matches nothing.
            created.and_then(|()| fs::write(&file, fingerprint))
        }
        None => fs::remove_file(&file),
    };
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound && fingerprint.is_none() => Ok(()),
        result => result.map_err(|error| cannot_write(&file, &error)),
    }
}

/// Shows the project configuration and its included files. Trusts them if the user confirms on the terminal or
/// `expected` is their fingerprint.
pub(crate) fn trust(configuration: &Configuration, expected: &str, output: &mut Output) -> Outcome {
    let (project, state) = project_and_state(configuration)?;
    let name = &project.name;
    if let Some(flaw) = &project.flaw {
        let message = format!("{name} {}, so it cannot be trusted", flaw.sentence);
        return Err(Failure::Configuration(message));
    }
    // The same texts are shown, hashed and trusted; nothing is read twice.
    let texts = project
        .read_included()
        .map_err(|reason| Failure::Runtime(format!("{name} cannot be trusted: {reason}")))?;
    let fingerprint = fingerprint(project, &texts);
    show(project, &texts, output)?;
    if expected.is_empty() {
        if !confirm(&fingerprint)? {
            print_note(&format!("{name} is not trusted"));
            return Ok(Status::Failed);
        }
    } else if expected != fingerprint {
        return Err(Failure::Runtime(format!(
            "nothing was trusted: the fingerprint of the files above is {fingerprint}, not {expected}"
        )));
    }
    set(state, &project.path, Some(&fingerprint))?;
    print_note(&format!(
        "{name} is now trusted as shown above, until one of these files changes; to undo this, run `plaincall config --distrust`"
    ));
    Ok(Status::Success)
}

/// Stops trusting the project configuration.
pub(crate) fn distrust(configuration: &Configuration) -> Outcome {
    let (project, state) = project_and_state(configuration)?;
    set(state, &project.path, None)?;
    print_note(&format!("{} is no longer trusted", project.name));
    Ok(Status::Success)
}

/// Returns the project and the state directory.
fn project_and_state(configuration: &Configuration) -> Result<(&Project, &Path), Failure> {
    let no_file =
        "no project configuration: there is no `plaincall.toml` in this directory or its parents";
    let no_state = format!(
        "cannot store trust: neither `{}` nor `{HOME}` is set",
        STATE.0
    );
    let (project, state) = (
        configuration.project.as_ref(),
        configuration.state.as_deref(),
    );
    Ok((
        project.ok_or_else(|| Failure::Usage(no_file.to_owned()))?,
        state.ok_or(Failure::Runtime(no_state))?,
    ))
}

fn show(project: &Project, texts: &Texts, output: &mut Output) -> Result<(), Failure> {
    for (path, text) in files(project, texts) {
        let text = String::from_utf8_lossy(text);
        let text = if project.system_files.iter().any(|it| it == path) {
            redacted_prose(&text, not_shown)
        } else {
            redacted(&text, not_shown)
        };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let (path, text) = (sanitize(&path.display().to_string()), sanitize(&text));
        output.text(format_args!("--- {path}\n{text}{end}"))?;
    }
    output.flush()
}

fn confirm(fingerprint: &str) -> Result<bool, Failure> {
    let terminal = Tty::open().map_err(|reason| {
        Failure::Runtime(format!(
            "nothing was trusted: {reason}; to trust the files above, run `plaincall config --trust={fingerprint}`"
        ))
    })?;
    let answer = terminal.prompt("Trust these files? [y/N] ");
    let answer =
        answer.map_err(|error| Failure::Runtime(format!("cannot read the answer: {error}")))?;
    let answer = answer.trim().to_ascii_lowercase();
    Ok(answer == "y" || answer == "yes")
}
