//! The files, directories and processes that are left.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;

/// The counts at one time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left {
    tasks: usize,
    children: Vec<String>,
    files: usize,
    directories: BTreeSet<String>,
}

impl Left {
    /// `folder` is where runs create their directories.
    pub(crate) fn now(folder: &Path) -> Self {
        Self {
            tasks: Handle::current().metrics().num_alive_tasks(),
            children: children(),
            files: fs::read_dir("/proc/self/fd").unwrap().count(),
            directories: fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect(),
        }
    }

    /// Waits until there is no more than this. The system may take a moment to remove a killed process.
    pub(crate) async fn check(&self, folder: &Path, at: &str) {
        for _ in 0..500 {
            if Self::now(folder) == *self {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(Self::now(folder), *self, "{at}");
    }
}

/// The children of this process, including zombies.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let about = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
        let parent = about.rsplit(") ").next()?.split(' ').nth(1)?.to_owned();
        (parent == own).then_some(name)
    });
    processes.collect()
}
