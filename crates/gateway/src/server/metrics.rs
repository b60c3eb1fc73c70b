//! Metrics since the start of the server, in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::counts::Counts;
use crate::server::key_limits::Uses;
use crate::server::report::Report;
use crate::server::upstream::UpstreamCounts;

/// The upper bounds of the histogram buckets, in seconds.
const BUCKETS: [f64; 10] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

/// Sums over all requests.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    requests: BTreeMap<u16, u64>,
    abandoned: u64,
    errors: BTreeMap<&'static str, u64>,
    counts: Counts,
    first_piece: Times,
    whole: Times,
}

#[derive(Debug, Default)]
struct Times {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

impl Times {
    fn add(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        for (bucket, end) in self.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= end);
        }
        self.count += 1;
        self.seconds += seconds;
    }

    fn write(&self, name: &str, help: &str, out: &mut String) {
        let buckets = self.buckets.iter().zip(BUCKETS);
        let buckets = buckets.map(|(count, end)| (format!("_bucket{{le=\"{end}\"}}"), *count));
        let all = (r#"_bucket{le="+Inf"}"#.to_owned(), self.count);
        write(name, help, "histogram", buckets.chain([all]), out);
        let (seconds, count) = (self.seconds, self.count);
        let _ = writeln!(out, "plaincall_{name}_sum {seconds}");
        let _ = writeln!(out, "plaincall_{name}_count {count}");
    }
}

/// Writes one metric. Each sample has a suffix for the name, and a value.
fn write<S: Display, V: Display>(
    name: &str,
    help: &str,
    kind: &str,
    samples: impl IntoIterator<Item = (S, V)>,
    out: &mut String,
) {
    let _ = writeln!(out, "# HELP plaincall_{name} {help}");
    let _ = writeln!(out, "# TYPE plaincall_{name} {kind}");
    for (labels, value) in samples {
        let _ = writeln!(out, "plaincall_{name}{labels} {value}");
    }
}

/// Writes the counters of each model server.
fn write_servers(servers: &BTreeMap<&str, UpstreamCounts>, out: &mut String) {
    type Count = fn(&UpstreamCounts) -> u64;
    let table: [(&str, &str, &str, Count); 4] = [
        (
            "upstream_requests_total",
            "Requests to a model server.",
            "counter",
            |counts| counts.requests,
        ),
        (
            "upstream_failures_total",
            "Requests that a model server did not answer, or answered with a status from 500.",
            "counter",
            |counts| counts.failures,
        ),
        (
            "upstream_retries_total",
            "Requests retried because this model server had not accepted them.",
            "counter",
            |counts| counts.retries,
        ),
        (
            "upstream_up",
            "Whether a model server answered the last request.",
            "gauge",
            |counts| u64::from(!counts.is_down),
        ),
    ];
    for (name, help, kind, count) in table {
        let samples = servers.iter();
        let samples =
            samples.map(|(server, counts)| (format!("{{upstream=\"{server}\"}}"), count(counts)));
        write(name, help, kind, samples, out);
    }
}

/// Writes the use of each client key, by its position.
fn write_keys(keys: impl Iterator<Item = Uses>, out: &mut String) {
    let keys: Vec<(usize, Uses)> = (1..).zip(keys).collect();
    if keys.is_empty() {
        return;
    }
    let active = keys.iter();
    let active = active.map(|(key, uses)| (format!("{{key=\"{key}\"}}"), uses.active));
    let help = "Requests in progress with a client key.";
    write("key_requests_active", help, "gauge", active, out);
    let limited = keys.iter().flat_map(|(key, uses)| {
        let counts = [
            ("concurrent", uses.over_concurrent),
            ("rate", uses.over_rate),
        ];
        counts.map(|(limit, count)| (format!("{{key=\"{key}\",limit=\"{limit}\"}}"), count))
    });
    let help = "Requests rejected because of a limit of their client key.";
    write("key_limited_requests_total", help, "counter", limited, out);
}

impl Metrics {
    // The sums stay usable after a panic in `add`.
    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, report: &Report) {
        let mut sums = self.sums();
        *sums.requests.entry(report.status).or_default() += 1;
        sums.abandoned += u64::from(report.is_abandoned);
        if let Some(kind) = report.error_type {
            *sums.errors.entry(kind).or_default() += 1;
        }
        sums.counts += report.counts;
        if let Some(time) = report.time_to_first_byte {
            sums.first_piece.add(time);
        }
        sums.whole.add(report.duration);
    }

    /// Returns the metrics as text, with the number of active requests, the counters of model servers and the use of keys.
    pub(in crate::server) fn text(
        &self,
        active: usize,
        servers: &BTreeMap<&str, UpstreamCounts>,
        keys: impl Iterator<Item = Uses>,
    ) -> String {
        let retries: u64 = servers.values().map(|counts| counts.retries).sum();
        let sums = self.sums();
        let mut out = String::new();
        let statuses = sums.requests.iter();
        let statuses = statuses.map(|(status, count)| (format!("{{status=\"{status}\"}}"), count));
        let help = "Completed requests.";
        write("requests_total", help, "counter", statuses, &mut out);
        let kinds = sums.errors.iter();
        let kinds = kinds.map(|(kind, count)| (format!("{{type=\"{kind}\"}}"), count));
        let help =
            "Requests that ended with an error, including errors in streams with status 200.";
        write("errors_total", help, "counter", kinds, &mut out);
        let help = "Requests in progress.";
        write("requests_active", help, "gauge", [("", active)], &mut out);
        let others = [
            (
                "abandoned_requests",
                "Requests whose client disconnected.",
                sums.abandoned,
            ),
            (
                "retries",
                "Requests retried because the model server had not accepted them.",
                retries,
            ),
        ];
        for (name, help, count) in others.into_iter().chain(sums.counts.each()) {
            let name = format!("{name}_total");
            write(&name, help, "counter", [("", count)], &mut out);
        }
        write_servers(servers, &mut out);
        write_keys(keys, &mut out);
        let help = "Seconds until the first byte of a response.";
        sums.first_piece
            .write("time_to_first_byte_seconds", help, &mut out);
        let help = "Seconds until the end of a response.";
        sums.whole.write("request_seconds", help, &mut out);
        out
    }
}
