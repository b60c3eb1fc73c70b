//! How many files the process may have open: each connection is one.

use rustix::process::{Resource, getrlimit, setrlimit};

/// What is open beside connections, and room to spare.
const OTHERS: u64 = 64;

/// Raises the limit as far as possible. Returns a warning if it is too low for this many requests, each with a
/// connection of its client and one to the model's server.
pub(super) fn raise(requests: u32) -> Option<String> {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum;
    if limit.current != wanted {
        limit.current = wanted;
        // Some systems name no limit and still have one. What counts is what is there afterwards.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    few(getrlimit(Resource::Nofile).current, requests)
}

fn few(limit: Option<u64>, requests: u32) -> Option<String> {
    let needed = u64::from(requests) * 2 + OTHERS;
    let limit = limit.filter(|limit| *limit < needed)?;
    let enough = limit.saturating_sub(OTHERS) / 2;
    Some(format!(
        "the open file limit of {limit} allows about {enough} requests; {requests} (`--max-requests`) need {needed}. Raise the hard limit (`ulimit -Hn`, `LimitNOFILE=` in systemd), or lower `--max-requests`"
    ))
}

#[cfg(test)]
mod tests {
    use super::few;

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
                "about 0 requests; 4096 (`--max-requests`) need 8256",
            ),
        ] {
            let warning = few(limit, requests).unwrap_or_default();
            assert!(warning.contains(expected), "{warning}");
            assert_eq!(warning.is_empty(), expected.is_empty(), "{warning}");
        }
    }
}
