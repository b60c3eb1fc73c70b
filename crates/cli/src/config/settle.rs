//! `plaincall config --trust` and `--distrust`: somebody has looked at a project's file, or is done with it.

use std::path::Path;

use crate::config::redact::{not_shown, prose, settings};
use crate::config::texts::Texts;
use crate::config::{Configuration, Project, trust};
use crate::output::Output;
use crate::run::terminal::Controlling;
use crate::status::{Failure, Outcome, Status, remark};
use crate::visible::harmless;

/// Shows the project's file and those that it names, and trusts these texts if somebody says so: the person at the
/// terminal, or whoever names their fingerprint.
///
/// # Errors
/// What keeps it from being trusted.
pub(super) fn trust(
    configuration: &Configuration,
    fingerprint: &str,
    output: &mut Output,
) -> Outcome {
    let (project, state) = place(configuration)?;
    let path = project.path.display();
    if let Some(flaw) = &project.flaw {
        let sentence = &flaw.sentence;
        let message = format!("{path} {sentence}, so it cannot be trusted");
        return Err(Failure::Configuration(message));
    }
    // What is shown is what is hashed, and what is trusted; nothing is read twice.
    let texts = project
        .read_named()
        .map_err(|reason| Failure::Broken(format!("{path} cannot be trusted: {reason}")))?;
    let sha256 = trust::fingerprint(&project.path, &project.text, &texts);
    show(project, &texts, output)?;
    output.flush()?;
    if fingerprint.is_empty() {
        if !is_wanted(&sha256)? {
            remark(&format!("{path} is not trusted"));
            return Ok(Status::Wrong);
        }
    } else if fingerprint != sha256 {
        return Err(Failure::Broken(format!(
            "nothing is trusted: the fingerprint of the texts above is {sha256}, and not {fingerprint}"
        )));
    }
    trust::set(state, &project.path, Some(&sha256))?;
    remark(&format!(
        "{path} is trusted as it is shown above, until one of these texts changes; `plaincall config --distrust` takes that back"
    ));
    Ok(Status::Good)
}

/// Does not trust the project's file any more.
///
/// # Errors
/// There is none, or it cannot be remembered.
pub(super) fn distrust(configuration: &Configuration) -> Outcome {
    let (project, state) = place(configuration)?;
    trust::set(state, &project.path, None)?;
    remark(&format!(
        "{} is not trusted any more",
        project.path.display()
    ));
    Ok(Status::Good)
}

/// What it is about, and where it is remembered.
fn place(configuration: &Configuration) -> Result<(&Project, &Path), Failure> {
    let project = configuration.project.as_ref().ok_or_else(|| {
        Failure::Usage(
            "there is no project's file: no `plaincall.toml` here or in a directory above"
                .to_owned(),
        )
    })?;
    let state = configuration.state.as_deref().ok_or_else(|| {
        Failure::Broken(
            "nowhere to remember it: neither `XDG_STATE_HOME` nor `HOME` is set".to_owned(),
        )
    })?;
    Ok((project, state))
}

fn show(project: &Project, texts: &Texts, output: &mut Output) -> Result<(), Failure> {
    let mut print = |path: &Path, text: &str| {
        let text = if project.prose.as_deref() == Some(path) {
            prose(text, not_shown)
        } else {
            settings(text, not_shown)
        };
        let text = harmless(&text);
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let path = harmless(&path.display().to_string());
        output.text(format_args!("--- {path}\n{text}{end}"))
    };
    print(&project.path, &project.text)?;
    for (path, text) in texts.iter() {
        print(path, &String::from_utf8_lossy(text))?;
    }
    Ok(())
}

/// Asks at the terminal.
fn is_wanted(sha256: &str) -> Result<bool, Failure> {
    let terminal = Controlling::open().map_err(|reason| {
        Failure::Broken(format!(
            "nothing is trusted yet: {reason}; `plaincall config --trust={sha256}` trusts what is shown above, and nothing else"
        ))
    })?;
    let answer = terminal.line("Trust these texts? [y/N] ");
    let answer = answer.map_err(|error| Failure::Broken(format!("cannot ask: {error}")))?;
    Ok(matches!(
        answer.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}
