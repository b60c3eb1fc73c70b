//! What has happened since the server began, in the text form of Prometheus.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use crate::counts::Counts;
use crate::server::report::Report;

/// The upper ends of the buckets of times, in seconds.
const BUCKETS: [f64; 10] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

/// Sums over all requests.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    /// Requests by status.
    requests: std::collections::BTreeMap<u16, u64>,
    abandoned: u64,
    /// Requests that ended with an error, also behind the beginning of a stream, by its type.
    errors: std::collections::BTreeMap<&'static str, u64>,
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
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} histogram\n");
        for (count, end) in self.buckets.iter().zip(BUCKETS) {
            let _ = writeln!(out, "{name}_bucket{{le=\"{end}\"}} {count}");
        }
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{name}_sum {}", self.seconds);
        let _ = writeln!(out, "{name}_count {}", self.count);
    }
}

impl Sums {
    /// What only grows, and has no labels.
    fn write_totals(&self, retries: u64, out: &mut String) {
        let Counts {
            calls,
            wrong_calls,
            cut_calls,
            unwanted_calls,
            stray_markers,
            dependent_calls,
            surplus_calls,
            missing_calls,
            repair_rounds,
            invented_results,
            loosened_tools,
            dropped_tools,
        } = self.counts;
        for (name, help, count) in [
            (
                "requests_abandoned",
                "Requests whose client went away.",
                self.abandoned,
            ),
            (
                "retries",
                "Requests sent again, since the model's server had not taken them up.",
                retries,
            ),
            (
                "calls",
                "Calls given to clients, complete and right.",
                calls,
            ),
            ("calls_wrong", "Calls that were wrong.", wrong_calls),
            ("calls_cut", "Calls that broke off.", cut_calls),
            (
                "calls_unwanted",
                "Calls left out, since none was allowed.",
                unwanted_calls,
            ),
            ("markers_stray", "Markers left out of texts.", stray_markers),
            (
                "replies_dependent",
                "Replies that ended before a call that waits for another.",
                dependent_calls,
            ),
            (
                "replies_surplus",
                "Replies that ended before a second call.",
                surplus_calls,
            ),
            (
                "replies_without_call",
                "Replies without a call where one had to be.",
                missing_calls,
            ),
            ("repair_rounds", "Hidden rounds of repair.", repair_rounds),
            (
                "results_invented",
                "Texts with results that a model has invented, left out.",
                invented_results,
            ),
            (
                "tools_loosened",
                "Tools that were offered with a looser schema.",
                loosened_tools,
            ),
            (
                "tools_dropped",
                "Tools that could not be offered.",
                dropped_tools,
            ),
        ] {
            let _ = writeln!(
                out,
                "# HELP plaincall_{name}_total {help}\n# TYPE plaincall_{name}_total counter\nplaincall_{name}_total {count}"
            );
        }
    }
}

impl Metrics {
    /// A request has ended.
    pub(crate) fn add(&self, report: &Report) {
        // A thread that panicked while it added leaves sums that are still sums.
        let mut sums = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *sums.requests.entry(report.status).or_default() += 1;
        sums.abandoned += u64::from(report.is_abandoned);
        if let Some(kind) = report.error_type {
            *sums.errors.entry(kind).or_default() += 1;
        }
        sums.counts += report.counts;
        if let Some(time) = report.first_piece {
            sums.first_piece.add(time);
        }
        sums.whole.add(report.time);
    }

    /// All of it as text, with the requests that are being answered and those that were sent again.
    pub(crate) fn text(&self, active: usize, retries: u64) -> String {
        let sums = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut out = String::new();
        let name = "plaincall_requests_total";
        let _ = write!(
            out,
            "# HELP {name} Requests that have ended.\n# TYPE {name} counter\n"
        );
        for (status, count) in &sums.requests {
            let _ = writeln!(out, "{name}{{status=\"{status}\"}} {count}");
        }
        let name = "plaincall_errors_total";
        let _ = write!(
            out,
            "# HELP {name} Requests that ended with an error, also in a stream with the status 200.\n# TYPE {name} counter\n"
        );
        for (kind, count) in &sums.errors {
            let _ = writeln!(out, "{name}{{type=\"{kind}\"}} {count}");
        }
        let name = "plaincall_requests_active";
        let _ = writeln!(
            out,
            "# HELP {name} Requests that are being answered.\n# TYPE {name} gauge\n{name} {active}"
        );
        sums.write_totals(retries, &mut out);
        let help = "Seconds until the first piece of an answer.";
        sums.first_piece
            .write("plaincall_first_piece_seconds", help, &mut out);
        let help = "Seconds until the end of an answer.";
        sums.whole
            .write("plaincall_request_seconds", help, &mut out);
        out
    }
}
