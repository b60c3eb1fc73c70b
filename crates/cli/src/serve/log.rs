//! The log: one line of JSON for each request.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plaincall_gateway::{Observe, Report};
use serde_json::{Map, Value, json};

/// How many lines wait for who reads them. More are lost, and counted: a request never waits for its line.
const WAITING: usize = 4096;
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

    fn add(&self, line: &Value) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let given = lines.as_ref().map(|lines| lines.try_send(line.to_string()));
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
        self.add(&line(report, SystemTime::now()));
    }
}

fn write(mut out: impl Write, lines: &Receiver<String>, lost: &AtomicU64) -> io::Result<()> {
    while let Ok(first) = lines.recv() {
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
fn line(report: &Report, now: SystemTime) -> Value {
    let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let mut line = Map::new();
    let mut put = |name: &str, value: Value| line.insert(name.to_owned(), value);
    put("time", json!(seconds(now)));
    put("request_id", json!(report.request_id));
    put("path", json!(report.path));
    put("model", json!(report.model));
    put("stream", json!(report.is_streamed));
    put("translated", json!(report.is_translated));
    put("status", json!(report.status));
    put("ms", json!(milliseconds(report.time)));
    if let Some(time) = report.first_piece {
        put("first_ms", json!(milliseconds(time)));
    }
    if let Some(error) = &report.error {
        put("error", json!(error));
    }
    if report.is_abandoned {
        put("abandoned", json!(true));
    }
    let counts = report.counts;
    for (name, count) in [
        ("calls", counts.calls),
        ("wrong_calls", counts.wrong_calls),
        ("cut_calls", counts.cut_calls),
        ("unwanted_calls", counts.unwanted_calls),
        ("stray_markers", counts.stray_markers),
        ("dependent_calls", counts.dependent_calls),
        ("surplus_calls", counts.surplus_calls),
        ("missing_calls", counts.missing_calls),
        ("repair_rounds", counts.repair_rounds),
    ] {
        if count > 0 {
            put(name, json!(count));
        }
    }
    Value::Object(line)
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
