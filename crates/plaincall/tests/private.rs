use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use plaincall::private;

fn check(path: &Path, expected: u32) {
    let mode = fs::metadata(path).map(|data| data.permissions().mode() & 0o777);
    assert_eq!(mode.ok(), Some(expected), "{}", path.display());
}

#[test]
fn only_the_owner_can_use_new_files_and_directories() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    private::open(&path("file"), OpenOptions::new().write(true).create(true)).unwrap();
    check(&path("file"), 0o600);
    private::create_directory(&path("above/below")).unwrap();
    check(&path("above/below"), 0o700);
    let temporary = private::temporary_directory("plaincall-", folder.path()).unwrap();
    check(temporary.path(), 0o700);
    for (name, restricted) in [("file", 0o600), ("above", 0o700)] {
        fs::set_permissions(path(name), Permissions::from_mode(0o755)).unwrap();
        private::restrict(&path(name)).unwrap();
        check(&path(name), restricted);
    }
}

#[test]
fn what_exists_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    private::create_directory(folder.path()).unwrap();
    check(folder.path(), 0o755);
    let error = private::create_new_directory(folder.path()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
}
