//! The memory of this process, in bytes, if the system reports it (Linux).

use std::fs;

/// The memory in use.
pub(crate) fn now() -> Option<usize> {
    field("VmRSS:")
}

/// The maximum memory so far.
pub(crate) fn peak() -> Option<usize> {
    field("VmHWM:")
}

fn field(name: &str) -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}
