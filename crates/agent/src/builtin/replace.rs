//! Putting a file in the place of another, all at once or not at all.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};

use cap_std::fs::{Dir, File, Metadata, MetadataExt as _, OpenOptionsExt as _, PermissionsExt};
use rustix::fs::{Gid, Uid, fchown};
use rustix::io::Errno;

use crate::builtin::blocking::Stop;
use crate::builtin::spelling::named;
use crate::builtin::workspace::{RelPath, Workspace, options};

/// How much is written between two looks at whether to go on, in bytes.
const PIECE: usize = 1 << 20;
/// What a new file lets others do, before the mask of the process.
const NEW: u32 = 0o666;
/// What it lets others do while it is not yet in its workspace.
const PRIVATE: u32 = 0o600;
/// What a file lets its group do, and that a program runs as its group.
const GROUP: u32 = 0o2070;
/// That a program runs as the owner of its file.
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

/// Writes a file: its bytes are there as a whole, or all is as it was. Directories above it are made. Returns how many bytes
/// a file had whose place it takes.
///
/// A link in its place is followed, inside the directory. `expected` is the state in which the file must still be.
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
        return Err(format!(
            "{text} names a directory, no file; add the name of a file"
        ));
    };
    if written.text.ends_with('/') {
        return Err(format!(
            "{text} ends with a slash, so it names a directory; add the name of a file"
        ));
    }
    let name = Path::new(name);
    // From here on the directory is held by a handle: nothing that is swapped above it matters any more.
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
        workspace.refuse_what_is_no_file(about, written)?;
        if about.permissions().readonly() {
            return Err(trouble(Errno::ACCESS.into()));
        }
        // The permissions of the directory would let it be replaced all the same.
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
    // Otherwise a crash could leave an empty file where there was a full one.
    file.sync_data().map_err(trouble)?;
    let is = || above.symlink_metadata(name).ok().as_ref().map(State::of);
    if expected.is_some() && is() != expected {
        return Err(format!(
            "{text} was changed by somebody else at the same moment, so nothing was changed; read it again, then try again"
        ));
    }
    stop.check()?;
    temporary.put(name).map_err(trouble)?;
    Ok(there.map(|about| about.len()))
}

/// The path of the file that is meant, where it is a link the one that it leads to.
fn target(workspace: &Workspace, written: &RelPath) -> io::Result<PathBuf> {
    match workspace.dir().symlink_metadata(&written.path) {
        Ok(about) if about.is_symlink() => workspace.dir().canonicalize(&written.path),
        Ok(_) => Ok(written.path.clone()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(written.path.clone()),
        Err(error) => Err(error),
    }
}

/// Whether a file has a list of who may use it, besides its permissions.
#[cfg(target_os = "linux")]
fn has_access_list(file: &File) -> bool {
    let mut nothing: [u8; 0] = [];
    rustix::fs::fgetxattr(file, "system.posix_acl_access", &mut nothing).is_ok()
}

/// Elsewhere such a list gives rights of its own, and the permissions say nothing of it.
#[cfg(not(target_os = "linux"))]
const fn has_access_list(_: &File) -> bool {
    false
}

/// A file that is not in its place yet. Dropping it removes it.
struct Temporary<'d> {
    dir: &'d Dir,
    name: Option<String>,
    file: File,
}

/// What a file that takes the place of another has of it.
#[derive(Clone, Copy, Debug)]
struct Kept {
    owner: bool,
    group: bool,
}

impl Kept {
    /// What the file lets others do. What it let its owner or its group do must not go to another one.
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
    /// One that lets others do what the file lets them do whose place it takes, or less if that has an access list.
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
            // Then what the group may do is said by the list alone, and the permissions say the most of all in it.
            kept.group &= !has_list;
            let mode = kept.narrowed(about.mode());
            let mode = PermissionsExt::from_mode(mode);
            // Afterwards, because a change of the owner takes some of them away.
            temporary.file.set_permissions(mode)?;
        }
        Ok(temporary)
    }

    /// Gives it the owner and the group of the file whose place it takes, as far as that is allowed.
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
            // Target is nobody to tell.
            let _ = self.dir.remove_file(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    #[test]
    fn what_others_may_do() {
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
