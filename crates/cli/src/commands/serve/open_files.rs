//! The limit of open files. Each connection needs one.

use crate::platform::raise_open_files;

/// Files other than connections, with some reserve.
const RESERVE: u64 = 64;

/// Raises the limit as far as possible. Returns a warning if it is too low for this many requests, which need two
/// connections each: to the client and to the model server.
pub(super) fn raise(requests: usize) -> Option<String> {
    warning(raise_open_files(), requests)
}

fn warning(limit: Option<u64>, requests: usize) -> Option<String> {
    let needed = u64::try_from(requests).unwrap_or(u64::MAX);
    let needed = needed.saturating_mul(2).saturating_add(RESERVE);
    let limit = limit.filter(|limit| *limit < needed)?;
    let enough = limit.saturating_sub(RESERVE) / 2;
    Some(format!(
        "the open file limit of {limit} allows about {enough} requests; {requests} (`max_requests`) need {needed}. Raise the hard limit (`ulimit -Hn`, `LimitNOFILE=` in systemd), or lower `max_requests` in `[serve]`"
    ))
}

#[cfg(test)]
mod tests {
    use super::warning;

    #[test]
    fn too_few_files() {
        for (limit, requests, expected) in [
            (None, 1_000_000, ""),
            (Some(264), 100, ""),
            (
                Some(263),
                100,
                "the open file limit of 263 allows about 99 requests; 100 ",
            ),
            (
                Some(10),
                4096,
                "about 0 requests; 4096 (`max_requests`) need 8256",
            ),
        ] {
            let warning = warning(limit, requests).unwrap_or_default();
            assert!(warning.contains(expected), "{warning}");
            assert_eq!(warning.is_empty(), expected.is_empty(), "{warning}");
        }
    }
}
