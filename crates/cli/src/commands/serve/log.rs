//! The access log: one JSON line per request.

use std::io::{self, ErrorKind, Write};
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plaincall_gateway::{Counts, Observer, Report};
use serde::{Serialize, Serializer};
use serde_json::json;

/// The maximum size of buffered lines. Further lines are lost and counted, so requests never wait for the log.
const BUFFER_SIZE: usize = 8 << 20;
/// How long lines are collected before a write.
const COLLECT_TIME: Duration = Duration::from_millis(10);
/// How long `close` waits for pending writes.
const TIMEOUT: Duration = Duration::from_secs(1);

/// An access log that is written by its own thread.
#[derive(Debug, Default)]
pub(super) struct Log {
    buffer: Mutex<Buffer>,
    changed: Condvar,
}

/// Lines that are not written yet.
#[derive(Debug, Default)]
struct Buffer {
    lines: String,
    /// The number of lines lost since the last report.
    lost: u64,
    is_closed: bool,
    /// Whether everything was written.
    is_written: bool,
}

impl Log {
    /// Starts the thread. It reports the first of consecutive write errors.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        report_error: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let log = Arc::new(Self::default());
        let writer = Arc::clone(&log);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                writer.write(out, report_error);
                writer.lock().is_written = true;
                writer.changed.notify_all();
            })?;
        Ok(log)
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, line: &impl Serialize) {
        let line = serde_json::to_string(line);
        let mut buffer = self.lock();
        match line {
            Ok(line) if !buffer.is_closed && buffer.lines.len() + line.len() < BUFFER_SIZE => {
                // The thread waits only while there are no lines, and waking it takes a system call.
                let is_first = buffer.lines.is_empty();
                buffer.lines.push_str(&line);
                buffer.lines.push('\n');
                if is_first {
                    self.changed.notify_all();
                }
            }
            _ => buffer.lost += 1,
        }
    }

    /// Closes the log and waits briefly until everything is written.
    pub(super) fn close(&self) {
        let mut buffer = self.lock();
        buffer.is_closed = true;
        self.changed.notify_all();
        let is_open = |buffer: &mut Buffer| !buffer.is_written;
        drop(self.changed.wait_timeout_while(buffer, TIMEOUT, is_open));
    }

    /// Waits for lines and returns them with the number of lost lines. Returns none if the log is closed.
    #[allow(
        clippy::disallowed_methods,
        reason = "this thread is used only by the log"
    )]
    fn next(&self) -> Option<(String, u64)> {
        let is_idle = |buffer: &mut Buffer| buffer.lines.is_empty() && !buffer.is_closed;
        let buffer = self.changed.wait_while(self.lock(), is_idle);
        drop(buffer);
        // Lines that arrive in the meantime are written together, which saves wakeups.
        thread::sleep(COLLECT_TIME);
        let mut buffer = self.lock();
        let lines = take(&mut buffer.lines);
        (!lines.is_empty()).then(|| (lines, take(&mut buffer.lost)))
    }

    fn write(&self, mut out: impl Write, report_error: impl Fn(&str)) {
        let mut is_reported = false;
        let mut is_torn = false;
        while let Some((lines, lost)) = self.next() {
            // The last write may have ended in the middle of a line.
            let begin = usize::from(is_torn);
            let mut text = if is_torn { format!("\n{lines}") } else { lines };
            let end = text.len();
            if lost > 0 {
                let line = json!({"time": seconds(SystemTime::now()), "lost_lines": lost});
                text.push_str(&line.to_string());
                text.push('\n');
            }
            let (written, result) = write_all(&mut out, text.as_bytes());
            if let Some(last) = text.as_bytes().get(..written).and_then(<[u8]>::last) {
                is_torn = *last != b'\n';
            }
            // After a write error, the server continues and the next lines are tried again.
            if let Err(error) = &result {
                let unwritten = text.as_bytes().get(written.max(begin)..end);
                // Each line contains exactly one line end.
                let unwritten = memchr::memchr_iter(b'\n', unwritten.unwrap_or_default()).count();
                let unreported = if written < text.len() { lost } else { 0 };
                self.lock().lost += unreported + u64::try_from(unwritten).unwrap_or(u64::MAX);
                if !is_reported {
                    report_error(&format!(
                        "cannot write the access log; its lines are lost: {error}"
                    ));
                }
            }
            is_reported = result.is_err();
        }
    }
}

impl Observer for Log {
    fn request_ended(&self, report: &Report) {
        self.add(&Line::new(report, SystemTime::now()));
    }
}

/// Writes a text. Returns the number of bytes written, even after an error.
fn write_all(out: &mut impl Write, mut text: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while !text.is_empty() {
        match out.write(text) {
            Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
            Ok(more) => {
                written += more;
                text = text.get(more..).unwrap_or_default();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, out.flush())
}

/// A line about a request.
#[derive(Serialize)]
struct Line<'a> {
    time: f64,
    request_id: &'a str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<usize>,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    stream: bool,
    translated: bool,
    status: u16,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_byte_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abandoned: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_requests: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_reply: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_reply: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    #[serde(flatten, serialize_with = "nonzero")]
    counts: &'a Counts,
}

/// The advice for a model whose template begins the reasoning.
const IN_REASONING: &str =
    "the reply ends reasoning that it did not begin: set `in_reasoning = true` for this model";

impl<'a> Line<'a> {
    fn new(report: &'a Report, now: SystemTime) -> Self {
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        let contents = report.contents.as_ref();
        let client_reply = contents.map(|contents| &*contents.client_reply);
        Self {
            time: seconds(now),
            request_id: &report.request_id,
            path: report.path,
            key: report.key,
            model: &report.model,
            upstream: report.upstream.as_deref(),
            stream: report.is_streamed,
            translated: report.is_translated,
            status: report.status,
            duration_ms: milliseconds(report.duration),
            first_byte_ms: report.time_to_first_byte.map(milliseconds),
            error: report.error.as_deref(),
            error_type: report.error_type,
            abandoned: report.is_abandoned.then_some(true),
            model_requests: contents.map(|contents| &*contents.model_requests),
            model_reply: contents.map(|contents| &*contents.model_reply),
            client_reply: client_reply.filter(|reply| !reply.is_empty()),
            hint: (report.counts.unmatched_reasoning > 0).then_some(IN_REASONING),
            counts: &report.counts,
        }
    }
}

fn nonzero<S: Serializer>(counts: &Counts, serializer: S) -> Result<S::Ok, S::Error> {
    let counts = counts.each().filter(|(.., count)| *count > 0);
    serializer.collect_map(counts.map(|(name, _, count)| (name, count)))
}

/// Returns seconds since 1970, rounded to milliseconds.
fn seconds(time: SystemTime) -> f64 {
    let duration = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    (duration.as_secs_f64() * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, mpsc};

    use serde_json::{Value, json};

    use super::{BUFFER_SIZE, Log};

    type Output = Arc<Mutex<Vec<u8>>>;

    /// A writer with this behavior that records what it writes.
    struct Out<F>(F, Output);

    impl<F: FnMut(&[u8]) -> io::Result<usize>> Write for Out<F> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.0(bytes)?;
            self.1.lock().unwrap().extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Creates a log whose writes block until the sender is dropped.
    fn blocked() -> (Arc<Log>, mpsc::Sender<()>, Output) {
        let (let_write, may_write) = mpsc::channel();
        let written = Output::default();
        let write = move |bytes: &[u8]| {
            let _ = may_write.recv();
            Ok(bytes.len())
        };
        let log = Log::start(Out(write, Arc::clone(&written)), |_| {}).unwrap();
        (log, let_write, written)
    }

    #[test]
    fn an_unread_log_does_not_block() {
        let (log, let_write, written) = blocked();
        let line = json!("x".repeat(1000));
        let room = BUFFER_SIZE / 1003;
        let total = 3 * room;
        for _ in 0..total {
            log.add(&line);
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
        let written = lines.iter().filter(|line| line.is_string()).count();
        assert!(written >= room, "{written}");
        assert!(lost > 0);
        assert_eq!(written as u64 + lost, total as u64);
    }

    #[test]
    fn long_lines_are_limited_by_the_buffer_size() {
        let (log, let_write, _) = blocked();
        let quarter = json!("x".repeat(BUFFER_SIZE / 4 - 3));
        for _ in 0..20 {
            log.add(&quarter);
        }
        // Some lines are buffered, others are being written.
        assert!(log.lock().lines.len() <= BUFFER_SIZE);
        assert!(log.lock().lost >= 12);
        drop(let_write);
        log.close();
        assert_eq!(log.lock().lines, "");
    }

    #[test]
    fn write_errors_are_reported_once_and_retried() {
        let written = Output::default();
        let (tried, is_tried) = mpsc::channel();
        let mut times = 0;
        // The first write is partial, two fail, and later ones succeed.
        let write = move |bytes: &[u8]| {
            times += 1;
            match times {
                1 => Ok(3),
                2 | 3 => {
                    let _ = tried.send(());
                    Err(io::Error::other("the disk is full"))
                }
                _ => Ok(bytes.len()),
            }
        };
        let out = Out(write, Arc::clone(&written));
        let (report_error, messages) = mpsc::channel();
        let log = Log::start(out, move |text| report_error.send(text.to_owned()).unwrap()).unwrap();
        for number in 1..=2 {
            log.add(&json!({"number": number}));
            is_tried.recv().unwrap();
        }
        log.add(&json!({"number": 3}));
        log.close();
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["{\"n", "{\"number\":3}"], "{text}");
        assert!(lines[2].ends_with("\"lost_lines\":2}"), "{text}");
        let messages: Vec<String> = messages.iter().collect();
        assert_eq!(
            messages,
            ["cannot write the access log; its lines are lost: the disk is full"]
        );
    }
}
