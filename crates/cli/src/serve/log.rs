//! The log: one line of JSON for each request.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plaincall_gateway::{Counts, Observe, Report};
use serde::{Serialize, Serializer};
use serde_json::json;

/// How many lines wait for who reads them. More are lost, and counted: a request never waits for its line.
const WAITING: usize = 4096;
/// How long lines are gathered before they are written.
const GATHERING: Duration = Duration::from_millis(10);
/// How long the end of the command waits for lines that nobody reads.
const PATIENCE: Duration = Duration::from_secs(1);

/// A log that a thread of its own writes.
#[derive(Debug)]
pub(super) struct Log {
    /// None when the log has been closed.
    lines: Mutex<Option<SyncSender<String>>>,
    lost: Arc<AtomicU64>,
    /// Hangs up when all is written.
    written: Mutex<Receiver<()>>,
}

impl Log {
    /// Begins the thread.
    pub(super) fn to(out: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let (lines, waiting) = sync_channel(WAITING);
        let (hold, written) = sync_channel(0);
        let lost = Arc::new(AtomicU64::new(0));
        let of_thread = Arc::clone(&lost);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                // If nobody reads any more, the server still serves.
                let _ = write(out, &waiting, &of_thread);
                drop(hold);
            })?;
        Ok(Arc::new(Self {
            lines: Mutex::new(Some(lines)),
            lost,
            written: Mutex::new(written),
        }))
    }

    fn add(&self, line: &impl Serialize) {
        let line = serde_json::to_string(line).unwrap_or_default();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let given = lines.as_ref().map(|lines| lines.try_send(line));
        if !matches!(given, Some(Ok(()))) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all is written, but not long.
    pub(super) fn close(&self) {
        let lines = self
            .lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(lines);
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let _: Result<(), RecvTimeoutError> = written.recv_timeout(PATIENCE);
    }
}

impl Observe for Log {
    fn ended(&self, report: &Report) {
        self.add(&Line::new(report, SystemTime::now()));
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "it has a thread of its own, and nobody waits for it"
)]
fn write(mut out: impl Write, lines: &Receiver<String>, lost: &AtomicU64) -> io::Result<()> {
    while let Ok(first) = lines.recv() {
        // Lines that come meanwhile go out with this one, and nobody has to wake this thread for them.
        thread::sleep(GATHERING);
        let mut text = first;
        text.push('\n');
        for line in lines.try_iter().take(WAITING) {
            text.push_str(&line);
            text.push('\n');
        }
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            text.push_str(
                &json!({"time": seconds(SystemTime::now()), "lost_lines": lost}).to_string(),
            );
            text.push('\n');
        }
        out.write_all(text.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}

/// The line of a request.
#[derive(Serialize)]
struct Line<'r> {
    time: f64,
    request_id: &'r str,
    path: &'r str,
    model: &'r str,
    stream: bool,
    translated: bool,
    status: u16,
    ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abandoned: Option<bool>,
    #[serde(flatten)]
    counts: Counted,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<&'r [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    given: Option<&'r str>,
}

/// What has been counted, less what has not happened.
struct Counted(Counts);

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = self.0;
        let happened = [
            ("calls", counts.calls),
            ("wrong_calls", counts.wrong_calls),
            ("cut_calls", counts.cut_calls),
            ("unwanted_calls", counts.unwanted_calls),
            ("stray_markers", counts.stray_markers),
            ("dependent_calls", counts.dependent_calls),
            ("surplus_calls", counts.surplus_calls),
            ("missing_calls", counts.missing_calls),
            ("repair_rounds", counts.repair_rounds),
        ];
        serializer.collect_map(happened.into_iter().filter(|(_, count)| *count > 0))
    }
}

impl<'r> Line<'r> {
    fn new(report: &'r Report, now: SystemTime) -> Self {
        let contents = report.contents.as_ref();
        let given = contents.map(|contents| contents.given.as_str());
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        Self {
            time: seconds(now),
            request_id: &report.request_id,
            path: report.path,
            model: &report.model,
            stream: report.is_streamed,
            translated: report.is_translated,
            status: report.status,
            ms: milliseconds(report.time),
            first_ms: report.first_piece.map(milliseconds),
            error: report.error.as_deref(),
            abandoned: report.is_abandoned.then_some(true),
            counts: Counted(report.counts),
            asked: contents.map(|contents| contents.asked.as_slice()),
            said: contents.map(|contents| contents.said.as_str()),
            given: given.filter(|given| !given.is_empty()),
        }
    }
}

/// Seconds since 1970, with three digits behind the point.
fn seconds(time: SystemTime) -> f64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs_f64() * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, mpsc};

    use serde_json::{Value, json};

    use super::{Log, WAITING};

    /// Writes what it gets, but waits for a word before each piece.
    struct Slow {
        may_write: mpsc::Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.may_write.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_that_nobody_reads_holds_nothing_up() {
        let (let_write, may_write) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let out = Slow {
            may_write,
            written: Arc::clone(&written),
        };
        let log = Log::to(out).unwrap();
        let many = 3 * WAITING;
        for number in 0..many {
            log.add(&json!(number));
        }
        drop(let_write);
        log.close();
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let lost: u64 = lines
            .iter()
            .filter_map(|line| line["lost_lines"].as_u64())
            .sum();
        let told = lines.iter().filter(|line| line.is_number()).count();
        assert!(told >= WAITING, "{told}");
        assert_eq!(told as u64 + lost, many as u64);
    }
}
