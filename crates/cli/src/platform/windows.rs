//! Windows: standard streams, files, directories, and processes that this one starts.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal as _};
use std::os::windows::io::AsHandle as _;
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use tokio::process::Child;

use crate::environment::Environment;
use crate::platform::StandardInput;
use crate::platform::terminal::has_escape_sequences;
use crate::terminal::interrupts::Interrupt;

/// The name of the variable with the home directory.
pub(crate) const HOME: &str = "USERPROFILE";
/// The variables with the directory of configuration, state or cached files, and these directories below the home directory.
pub(crate) const CONFIGURATION: (&str, &[&str]) = ("APPDATA", &["AppData", "Roaming"]);
pub(crate) const STATE: (&str, &[&str]) = ("LOCALAPPDATA", &["AppData", "Local"]);
pub(crate) const CACHE: (&str, &[&str]) = STATE;

/// `CREATE_NEW_PROCESS_GROUP`.
const NEW_GROUP: u32 = 0x200;

/// Returns the name of an environment variable as this system compares it: without case.
pub(crate) fn variable_name(mut name: OsString) -> OsString {
    name.make_ascii_uppercase();
    name
}

/// Returns the directory for temporary files.
pub(crate) fn temporary_directory(environment: &Environment) -> PathBuf {
    let mut names = ["TEMP", "TMP", HOME].into_iter();
    let directory = names.find_map(|name| environment.get(name));
    directory.map_or_else(|| PathBuf::from(r"C:\Windows\Temp"), PathBuf::from)
}

/// Returns whether the console can move its cursor with escape sequences.
pub(crate) fn has_capable_terminal(environment: &Environment) -> bool {
    environment.get("TERM").is_none_or(|name| name != "dumb") && has_escape_sequences()
}

/// Returns what standard input is.
pub(crate) fn standard_input() -> StandardInput {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return StandardInput::Other;
    }
    let Ok(handle) = stdin.as_handle().try_clone_to_owned() else {
        return StandardInput::Other;
    };
    match File::from(handle).metadata() {
        Ok(metadata) if metadata.is_file() => StandardInput::File,
        Ok(_) => StandardInput::Other,
        // Only files have metadata.
        Err(_) => StandardInput::Pipe,
    }
}

/// Returns whether standard input has no data for a second, which is unknown here.
pub(crate) const fn is_input_silent() -> bool {
    false
}

pub(crate) fn standard_output() -> io::Result<File> {
    Ok(io::stdout().as_handle().try_clone_to_owned()?.into())
}

/// Returns whether a path is another name of standard output.
pub(crate) const fn is_standard_output(_: &Path) -> bool {
    false
}

/// A new file has the permissions of its directory.
pub(crate) const fn set_usual_permissions(_: &mut tempfile::Builder<'_, '_>) {}

/// Opens a file.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Returns why another user may have written a file. Its owner is unknown here, so only trust in its text protects.
pub(crate) const fn ownership_flaw(_: &Path, _: &Metadata) -> io::Result<Option<String>> {
    Ok(None)
}

/// Returns the path of these bytes, which are those of an [`OsStr`](std::ffi::OsStr).
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Returns the limit of open files: none.
pub(crate) const fn raise_open_files() -> Option<u64> {
    None
}

/// Returns whether the process has a console.
pub(crate) fn has_terminal() -> bool {
    File::open("CONIN$").is_ok()
}

/// The console sends its events to the program too, so nothing is forwarded.
pub(crate) const fn forward(_: Interrupt, _: &Child) {}

/// Returns the exit status, or 1 if it is larger than 255.
pub(crate) fn exit_status(status: ExitStatus) -> u8 {
    let code = status.code();
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Returns the command that opens a page in the browser of the desktop.
pub(crate) fn desktop_browser(_: &Environment) -> Option<Command> {
    let mut command = Command::new("rundll32.exe");
    command.arg("url.dll,FileProtocolHandler");
    Some(command)
}

/// Keeps Ctrl-C in the console from a program.
pub(crate) fn detach(command: &mut Command) {
    command.creation_flags(NEW_GROUP);
}
