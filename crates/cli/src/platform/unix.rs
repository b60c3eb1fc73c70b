//! Unix: standard streams, files, directories, and processes that this one starts.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fstat};
use rustix::process::{Pid, Resource, Signal, getpgrp, getrlimit, kill_process, setrlimit};
use rustix::termios::tcgetpgrp;
use tokio::process::Child;

use crate::environment::Environment;
use crate::platform::StandardInput;
use crate::terminal::interrupts::Interrupt;

/// The name of the variable with the home directory.
pub(crate) const HOME: &str = "HOME";
/// The variables with the directory of configuration, state or cached files, and these directories below the home directory.
pub(crate) const CONFIGURATION: (&str, &[&str]) = ("XDG_CONFIG_HOME", &[".config"]);
pub(crate) const STATE: (&str, &[&str]) = ("XDG_STATE_HOME", &[".local", "state"]);
pub(crate) const CACHE: (&str, &[&str]) = ("XDG_CACHE_HOME", &[".cache"]);

/// Permission bit: anyone can write.
const WORLD_WRITABLE: u32 = 0o002;
/// Permission bit: only the owner can replace files in the directory.
const STICKY: u32 = 0o1000;

/// Returns the name of an environment variable as this system compares it.
pub(crate) fn variable_name(name: OsString) -> OsString {
    name
}

/// Returns the directory for temporary files.
pub(crate) fn temporary_directory(environment: &Environment) -> PathBuf {
    environment
        .get("TMPDIR")
        .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// Returns whether the terminal can move its cursor.
pub(crate) fn has_capable_terminal(environment: &Environment) -> bool {
    environment.get("TERM").is_some_and(|name| name != "dumb")
}

/// Returns what standard input is.
pub(crate) fn standard_input() -> StandardInput {
    let kind = fstat(io::stdin()).map(|metadata| FileType::from_raw_mode(metadata.st_mode));
    match kind {
        Ok(FileType::RegularFile) => StandardInput::File,
        Ok(FileType::Fifo) => StandardInput::Pipe,
        _ => StandardInput::Other,
    }
}

/// Waits for data on standard input. Returns whether there is none for a second.
pub(crate) fn is_input_silent() -> bool {
    let stdin = io::stdin();
    let second = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut watched, Some(&second)) == Ok(0)
}

pub(crate) fn standard_output() -> io::Result<File> {
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Returns whether a path is another name of standard output.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    path == Path::new("/dev/stdout")
}

/// Gives a new file the permissions of one that a shell's `>` creates: the umask decides.
pub(crate) fn set_usual_permissions(builder: &mut tempfile::Builder<'_, '_>) {
    builder.permissions(Permissions::from_mode(0o666));
}

/// Opens a file without waiting for the other end of a pipe.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// Returns why another user may have written a file, as a phrase that follows its name.
pub(crate) fn ownership_flaw(path: &Path, metadata: &Metadata) -> io::Result<Option<String>> {
    let user = rustix::process::geteuid().as_raw();
    // Check both a symbolic link and its target.
    for owner in [fs::symlink_metadata(path)?.uid(), metadata.uid()] {
        if owner != user && owner != 0 {
            let phrase = format!("belongs to another user (uid {owner}; yours is {user})");
            return Ok(Some(phrase));
        }
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mode = fs::symlink_metadata(directory)?.permissions().mode();
    let is_open = mode & WORLD_WRITABLE != 0 && mode & STICKY == 0;
    Ok(is_open.then(|| "is in a world-writable directory".to_owned()))
}

/// Returns the path of these bytes, which are those of an [`OsStr`].
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// Raises the limit of open files as far as possible, and returns it.
pub(crate) fn raise_open_files() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum;
    if limit.current != maximum {
        limit.current = maximum;
        // Some systems report no limit but have one, so the limit is read again below.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    getrlimit(Resource::Nofile).current
}

/// Returns whether the process has a terminal.
pub(crate) fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Sends a signal to a program. The terminal sends signals of its keyboard to the program too, so these are not forwarded.
pub(crate) fn forward(interrupt: Interrupt, child: &Child) {
    if interrupt.is_from_keyboard() && is_in_foreground() {
        return;
    }
    let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    if let Some((id, signal)) = id.zip(Signal::from_named_raw(interrupt as i32)) {
        // The command may have ended already.
        let _ = kill_process(id, signal);
    }
}

/// Returns whether the keyboard of a terminal signals this process.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty").ok();
    let foreground = terminal.and_then(|terminal| tcgetpgrp(terminal).ok());
    foreground == Some(getpgrp())
}

/// Returns the exit status; for a signal, 128 plus its number.
pub(crate) fn exit_status(status: ExitStatus) -> u8 {
    let code = status.code();
    let code = code.or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Returns the command that opens a page in the browser of the desktop, if there is one.
pub(crate) fn desktop_browser(environment: &Environment) -> Option<Command> {
    if cfg!(target_os = "macos") {
        return Some(Command::new("open"));
    }
    let mut displays = ["DISPLAY", "WAYLAND_DISPLAY"].into_iter();
    let has_display = displays.any(|name| environment.get(name).is_some());
    has_display.then(|| Command::new("xdg-open"))
}

/// Keeps Ctrl-C in the terminal from a program.
pub(crate) fn detach(command: &mut Command) {
    command.process_group(0);
}
