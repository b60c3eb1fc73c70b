//! The log: one line of JSON for each request.

use std::io::{self, ErrorKind, Write};
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plaincall_gateway::{Observer, Report};
use serde_json::{Value, json};

/// How much waits to be written, in bytes. Further lines are lost, and counted: a request never waits for its line.
const WAITING: usize = 8 << 20;
/// How long lines are gathered before they are written.
const GATHERING: Duration = Duration::from_millis(10);
/// How long the command waits at its end for lines that are not read.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A log that a thread of its own writes.
#[derive(Debug, Default)]
pub(super) struct Log {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// The lines that wait to be written.
#[derive(Debug, Default)]
struct Waiting {
    lines: String,
    /// How many lines were lost since the last report.
    lost: u64,
    is_closed: bool,
    /// Whether all is written.
    is_written: bool,
}

impl Log {
    /// Starts the thread. It reports a write error once, and again after lines could be written.
    pub(super) fn to(
        out: impl Write + Send + 'static,
        say: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let log = Arc::new(Self::default());
        let of_thread = Arc::clone(&log);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                of_thread.write(out, say);
                of_thread.lock().is_written = true;
                of_thread.changed.notify_all();
            })?;
        Ok(log)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, line: &Value) {
        let line = format!("{line}\n");
        let mut waiting = self.lock();
        if waiting.is_closed || waiting.lines.len() + line.len() > WAITING {
            waiting.lost += 1;
        } else {
            waiting.lines.push_str(&line);
            self.changed.notify_all();
        }
    }

    /// Waits until all is written, but not long.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        self.changed.notify_all();
        let is_open = |waiting: &mut Waiting| !waiting.is_written;
        drop(self.changed.wait_timeout_while(waiting, TIMEOUT, is_open));
    }

    /// Waits for lines. Returns them, and how many were lost; nothing when the log is closed.
    #[allow(
        clippy::disallowed_methods,
        reason = "it has its own thread, which nothing waits for"
    )]
    fn next(&self) -> Option<(String, u64)> {
        let is_idle = |waiting: &mut Waiting| waiting.lines.is_empty() && !waiting.is_closed;
        let waiting = self.changed.wait_while(self.lock(), is_idle);
        drop(waiting);
        // Lines that arrive meanwhile are written together, without waking this thread again.
        thread::sleep(GATHERING);
        let mut waiting = self.lock();
        let lines = take(&mut waiting.lines);
        (!lines.is_empty()).then(|| (lines, take(&mut waiting.lost)))
    }

    fn write(&self, mut out: impl Write, say: impl Fn(&str)) {
        let mut is_reported = false;
        let mut is_cut = false;
        while let Some((lines, lost)) = self.next() {
            // What was written last may be a part of a line.
            let begin = usize::from(is_cut);
            let mut text = if is_cut { format!("\n{lines}") } else { lines };
            let end = text.len();
            if lost > 0 {
                let line = json!({"time": seconds(SystemTime::now()), "lost_lines": lost});
                text.push_str(&line.to_string());
                text.push('\n');
            }
            let (written, result) = write_all(&mut out, text.as_bytes());
            if let Some(last) = text.as_bytes().get(..written).and_then(<[u8]>::last) {
                is_cut = *last != b'\n';
            }
            // The server still serves when lines cannot be written, and the next are tried again.
            if let Err(error) = &result {
                let left = text.as_bytes().get(written.max(begin)..end);
                // Each line ends, and holds no other end.
                let left = memchr::memchr_iter(b'\n', left.unwrap_or_default()).count();
                let untold = if written < text.len() { lost } else { 0 };
                self.lock().lost += untold + u64::try_from(left).unwrap_or(u64::MAX);
                if !is_reported {
                    say(&format!(
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
        self.add(&line(report, SystemTime::now()));
    }
}

/// Writes a text; how much of it is written, also when the rest cannot be.
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

/// The line of a request: what is known of it, and the counts of what happened.
fn line(report: &Report, now: SystemTime) -> Value {
    let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let contents = report.contents.as_ref();
    let client_reply = contents.map(|contents| &contents.client_reply);
    let mut line = json!({
        "time": seconds(now),
        "request_id": report.request_id,
        "path": report.path,
        "key": report.key,
        "model": report.model,
        "stream": report.is_streamed,
        "translated": report.is_translated,
        "status": report.status,
        "duration_ms": milliseconds(report.duration),
        "first_byte_ms": report.time_to_first_byte.map(milliseconds),
        "error": report.error,
        "error_type": report.error_type,
        "abandoned": report.is_abandoned.then_some(true),
        "model_requests": contents.map(|contents| &contents.model_requests),
        "model_reply": contents.map(|contents| &contents.model_reply),
        "client_reply": client_reply.filter(|reply| !reply.is_empty()),
    });
    if let Some(line) = line.as_object_mut() {
        line.retain(|_, value| !value.is_null());
        let happened = report.counts.each().filter(|(.., count)| *count > 0);
        line.extend(happened.map(|(name, _, count)| (name.to_owned(), count.into())));
    }
    line
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

    type Written = Arc<Mutex<Vec<u8>>>;

    /// Writes as this does.
    struct Out<F>(F, Written);

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

    /// A log whose output waits until the sender is dropped.
    fn slow() -> (Arc<Log>, mpsc::Sender<()>, Written) {
        let (let_write, may_write) = mpsc::channel();
        let written = Written::default();
        let write = move |bytes: &[u8]| {
            let _ = may_write.recv();
            Ok(bytes.len())
        };
        let log = Log::to(Out(write, Arc::clone(&written)), |_| {}).unwrap();
        (log, let_write, written)
    }

    #[test]
    fn a_log_that_is_not_read_blocks_nothing() {
        let (log, let_write, written) = slow();
        let line = json!("x".repeat(1000));
        let room = WAITING / 1003;
        let many = 3 * room;
        for _ in 0..many {
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
        assert_eq!(written as u64 + lost, many as u64);
    }

    #[test]
    fn long_lines_wait_only_as_far_as_there_is_room() {
        let (log, let_write, _) = slow();
        let quarter = json!("x".repeat(WAITING / 4 - 3));
        for _ in 0..20 {
            log.add(&quarter);
        }
        // Some wait, and some are being written.
        assert!(log.lock().lines.len() <= WAITING);
        assert!(log.lock().lost >= 12);
        drop(let_write);
        log.close();
        assert_eq!(log.lock().lines, "");
    }

    #[test]
    fn write_errors_are_reported_once_and_retried() {
        let written = Written::default();
        let (tried, is_tried) = mpsc::channel();
        let mut times = 0;
        // It writes three bytes, fails twice, and then works.
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
        let (say, messages) = mpsc::channel();
        let log = Log::to(out, move |words| say.send(words.to_owned()).unwrap()).unwrap();
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
