//! The log: one line of JSON for each request.

use std::io::{self, ErrorKind, Write};
use std::iter;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plaincall_gateway::{Observe, Report};
use serde_json::{Value, json};

/// How many lines wait for who reads them. More are lost, and counted: a request never waits for its line.
const WAITING: usize = 4096;
/// How long all of them are together, in bytes: lines with contents are long.
const WAITING_BYTES: usize = 8 << 20;
/// How long lines are gathered before they are written.
const GATHERING: Duration = Duration::from_millis(10);
/// How long the end of the command waits for lines that nobody reads.
const PATIENCE: Duration = Duration::from_secs(1);

/// A log that a thread of its own writes.
#[derive(Debug)]
pub(super) struct Log {
    /// None when the log has been closed.
    lines: Mutex<Option<SyncSender<String>>>,
    waiting: Arc<Waiting>,
    /// Hangs up when all is written.
    written: Mutex<Receiver<()>>,
}

/// What is known of the lines that wait.
#[derive(Debug, Default)]
struct Waiting {
    /// How many were lost since that was last told.
    lost: AtomicU64,
    bytes: AtomicUsize,
}

impl Log {
    /// Begins the thread. It says once what is wrong when lines cannot be written, and again after some could be.
    pub(super) fn to(
        out: impl Write + Send + 'static,
        say: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let (lines, receiver) = sync_channel(WAITING);
        let (hold, written) = sync_channel(0);
        let waiting = Arc::new(Waiting::default());
        let of_thread = Arc::clone(&waiting);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                write(out, &receiver, &of_thread, say);
                drop(hold);
            })?;
        Ok(Arc::new(Self {
            lines: Mutex::new(Some(lines)),
            waiting,
            written: Mutex::new(written),
        }))
    }

    fn add(&self, line: &Value) {
        let line = line.to_string();
        let len = line.len();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let room = WAITING_BYTES.saturating_sub(self.waiting.bytes.load(Ordering::Relaxed));
        // It is counted before it can be taken away.
        self.waiting.bytes.fetch_add(len, Ordering::Relaxed);
        let is_given = len <= room
            && lines
                .as_ref()
                .is_some_and(|lines| lines.try_send(line).is_ok());
        if !is_given {
            self.waiting.bytes.fetch_sub(len, Ordering::Relaxed);
            self.waiting.lost.fetch_add(1, Ordering::Relaxed);
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

#[allow(
    clippy::disallowed_methods,
    reason = "it has a thread of its own, and nobody waits for it"
)]
fn write(mut out: impl Write, lines: &Receiver<String>, waiting: &Waiting, say: impl Fn(&str)) {
    let mut is_told = false;
    let mut is_cut = false;
    while let Ok(first) = lines.recv() {
        // Lines that come meanwhile go out with this one, and nobody has to wake this thread for them.
        thread::sleep(GATHERING);
        let mut text = String::new();
        // What was written last may be a part of a line.
        if is_cut {
            text.push('\n');
        }
        let begin = text.len();
        for line in iter::once(first).chain(lines.try_iter().take(WAITING)) {
            waiting.bytes.fetch_sub(line.len(), Ordering::Relaxed);
            text.push_str(&line);
            text.push('\n');
        }
        let end = text.len();
        let lost = waiting.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            text.push_str(
                &json!({"time": seconds(SystemTime::now()), "lost_lines": lost}).to_string(),
            );
            text.push('\n');
        }
        let (written, result) = write_all(&mut out, text.as_bytes());
        if let Some(last) = text.as_bytes().get(..written).and_then(<[u8]>::last) {
            is_cut = *last != b'\n';
        }
        match result {
            Ok(()) => is_told = false,
            // The server still serves, and the next lines are tried again.
            Err(error) => {
                let left = text.as_bytes().get(written.max(begin)..end);
                // Each line ends, and holds no other end.
                let left = left.unwrap_or_default().split(|byte| *byte == b'\n');
                let left = left.count() - 1;
                let untold = if written < text.len() { lost } else { 0 };
                let lost = untold + u64::try_from(left).unwrap_or(u64::MAX);
                waiting.lost.fetch_add(lost, Ordering::Relaxed);
                if !is_told {
                    say(&format!(
                        "the log cannot be written, its lines are lost: {error}"
                    ));
                }
                is_told = true;
            }
        }
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
    let given = contents.map(|contents| &contents.given);
    let mut line = json!({
        "time": seconds(now),
        "request_id": report.request_id,
        "path": report.path,
        "key": report.key,
        "model": report.model,
        "stream": report.is_streamed,
        "translated": report.is_translated,
        "status": report.status,
        "ms": milliseconds(report.time),
        "first_ms": report.first_piece.map(milliseconds),
        "error": report.error,
        "error_type": report.error_type,
        "abandoned": report.is_abandoned.then_some(true),
        "asked": contents.map(|contents| &contents.asked),
        "said": contents.map(|contents| &contents.said),
        "given": given.filter(|given| !given.is_empty()),
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
    use std::sync::atomic::Ordering;
    use std::sync::{Arc, Mutex, mpsc};

    use serde_json::{Value, json};

    use super::{Log, WAITING, WAITING_BYTES};

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
    fn a_log_that_nobody_reads_holds_nothing_up() {
        let (log, let_write, written) = slow();
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

    #[test]
    fn long_lines_wait_only_as_far_as_there_is_room() {
        let (log, let_write, _) = slow();
        let quarter = json!("x".repeat(WAITING_BYTES / 4));
        for _ in 0..20 {
            log.add(&quarter);
        }
        // Some wait, and some are being written.
        assert!(log.waiting.bytes.load(Ordering::Relaxed) <= WAITING_BYTES);
        assert!(log.waiting.lost.load(Ordering::Relaxed) >= 12);
        drop(let_write);
        log.close();
        assert_eq!(log.waiting.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_cannot_be_written_is_told_once_and_tried_again() {
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
        let (say, said) = mpsc::channel();
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
        let said: Vec<String> = said.iter().collect();
        assert_eq!(
            said,
            ["the log cannot be written, its lines are lost: the disk is full"]
        );
    }
}
