//! Replaces files atomically.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};

use cap_std::fs::{Dir, File, Metadata, MetadataExt as _, OpenOptionsExt as _, PermissionsExt};
use rustix::fs::{Gid, Uid, fchown};
use rustix::io::Errno;

use crate::builtin::blocking::Stop;
use crate::builtin::spelling::named;
use crate::builtin::workspace::{RelPath, Workspace, options};

/// How much is written between two checks for cancellation, in bytes.
const PIECE: usize = 1 << 20;
/// The mode of a new file, before the umask.
const NEW: u32 = 0o666;
/// The mode of a temporary file.
const PRIVATE: u32 = 0o600;
/// The mode bits of the group, including setgid.
const GROUP: u32 = 0o2070;
/// The setuid bit.
const SET_USER: u32 = 0o4000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    device: u64,
    inode: u64,
    length: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl State {
    pub(super) fn of(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
            length: about.len(),
            seconds: about.mtime(),
            nanoseconds: about.mtime_nsec(),
        }
    }
}

/// Writes a file atomically and creates its parent directories. Returns the size of the replaced file.
///
/// Follows a link inside the directory. `expected` is the state that the file must still have.
pub(super) fn replace(
    workspace: &Workspace,
    written: &RelPath,
    content: &[u8],
    expected: Option<State>,
    stop: &Stop,
) -> Result<Option<u64>, String> {
    stop.check()?;
    let trouble = |error: io::Error| workspace.trouble(&error, written, "written");
    let path = target(workspace, written).map_err(trouble)?;
    let text = named(&written.text);
    let Some(Component::Normal(name)) = path.components().next_back() else {
        return Err(format!("{text} is a directory; add a file name"));
    };
    if written.text.ends_with('/') {
        return Err(format!("{text} ends with a slash; add a file name"));
    }
    let name = Path::new(name);
    // From here on, a handle holds the directory: swapping its parents has no effect.
    let above = match path.parent() {
        Some(above) if above != Path::new("") => {
            workspace.dir().create_dir_all(above).map_err(trouble)?;
            workspace.dir().open_dir(above).map_err(trouble)?
        }
        _ => workspace.dir().open_dir(".").map_err(trouble)?,
    };
    let there = match above.symlink_metadata(name) {
        Ok(about) => Some(about),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(trouble(error)),
    };
    let mut has_list = false;
    if let Some(about) = &there {
        workspace.reject_special_files(about, written)?;
        if about.permissions().readonly() {
            return Err(trouble(Errno::ACCESS.into()));
        }
        // A read-only file in a writable directory could be replaced otherwise.
        let file = above
            .open_with(name, options().write(true))
            .map_err(trouble)?;
        has_list = has_access_list(&file);
    }
    let temporary = Temporary::new(&above, there.as_ref(), has_list).map_err(trouble)?;
    let mut file = &temporary.file;
    for piece in content.chunks(PIECE) {
        stop.check()?;
        file.write_all(piece).map_err(trouble)?;
    }
    // Otherwise a crash could leave an empty file.
    file.sync_data().map_err(trouble)?;
    let is = || above.symlink_metadata(name).ok().as_ref().map(State::of);
    if expected.is_some() && is() != expected {
        return Err(format!(
            "{text} was changed by another program; nothing was changed. Read it again and retry"
        ));
    }
    stop.check()?;
    temporary.put(name).map_err(trouble)?;
    Ok(there.map(|about| about.len()))
}

/// The path of the file, with links resolved.
fn target(workspace: &Workspace, written: &RelPath) -> io::Result<PathBuf> {
    match workspace.dir().symlink_metadata(&written.path) {
        Ok(about) if about.is_symlink() => workspace.dir().canonicalize(&written.path),
        Ok(_) => Ok(written.path.clone()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(written.path.clone()),
        Err(error) => Err(error),
    }
}

/// Whether a file has a POSIX access control list.
#[cfg(target_os = "linux")]
fn has_access_list(file: &File) -> bool {
    let mut nothing: [u8; 0] = [];
    rustix::fs::fgetxattr(file, "system.posix_acl_access", &mut nothing).is_ok()
}

/// On other systems an access control list is independent of the mode.
#[cfg(not(target_os = "linux"))]
const fn has_access_list(_: &File) -> bool {
    false
}

/// A temporary file. Dropping it removes it.
struct Temporary<'d> {
    dir: &'d Dir,
    name: Option<String>,
    file: File,
}

/// Whether a new file has the owner and group of the replaced file.
#[derive(Clone, Copy, Debug)]
struct Kept {
    owner: bool,
    group: bool,
}

impl Kept {
    /// Removes the rights of an owner or group that was not kept from a mode.
    fn narrowed(self, mode: u32) -> u32 {
        let mut mode = mode & 0o7777;
        if !self.owner {
            mode &= !SET_USER;
        }
        if !self.group {
            mode &= !GROUP;
        }
        mode
    }
}

impl<'d> Temporary<'d> {
    /// Creates a file with the mode of the replaced file, or a narrower one if that has an access control list.
    fn new(dir: &'d Dir, there: Option<&Metadata>, has_list: bool) -> io::Result<Self> {
        let mode = if there.is_some() { PRIVATE } else { NEW };
        let mut options = options();
        options.write(true).create_new(true).mode(mode);
        let mut tries = 0;
        let (name, file) = loop {
            let number = getrandom::u64().map_err(io::Error::other)?;
            let name = format!(".plaincall-{number:016x}.tmp");
            match dir.open_with(&name, &options) {
                Ok(file) => break (name, file),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < 8 => tries += 1,
                Err(error) => return Err(error),
            }
        };
        let temporary = Self {
            dir,
            name: Some(name),
            file,
        };
        if let Some(about) = there {
            let mut kept = temporary.take_ownership(about)?;
            // With a list, the group bits of the mode are the mask of the list, not the rights of the group.
            kept.group &= !has_list;
            let mode = kept.narrowed(about.mode());
            let mode = PermissionsExt::from_mode(mode);
            // Last, because a change of owner clears some bits.
            temporary.file.set_permissions(mode)?;
        }
        Ok(temporary)
    }

    /// Sets the owner and group of the replaced file, as far as permitted.
    fn take_ownership(&self, about: &Metadata) -> io::Result<Kept> {
        let is = self.file.metadata()?;
        let give = |user, group| fchown(&self.file, user, group).is_ok();
        let (user, group) = (about.uid(), about.gid());
        Ok(Kept {
            owner: is.uid() == user || give(Some(Uid::from_raw(user)), None),
            group: is.gid() == group || give(None, Some(Gid::from_raw(group))),
        })
    }

    fn put(mut self, name: &Path) -> io::Result<()> {
        if let Some(temporary) = &self.name {
            self.dir.rename(temporary, self.dir, name)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // The error cannot be reported.
            let _ = self.dir.remove_file(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    #[test]
    fn permissions_of_a_lost_owner_are_removed() {
        for (mode, owner, group, expected) in [
            (0o100_640, true, true, 0o640),
            (0o100_640, true, false, 0o600),
            (0o664, true, false, 0o604),
            (0o7777, true, true, 0o7777),
            (0o7777, true, false, 0o5707),
            (0o7777, false, true, 0o3777),
            (0o600, false, false, 0o600),
        ] {
            let found = Kept { owner, group }.narrowed(mode);
            assert_eq!(found, expected, "{mode:o} {owner} {group}");
        }
    }
}
