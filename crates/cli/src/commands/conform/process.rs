//! The parser under test: a process that answers JSON lines.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::outcome::{Failure, not_started};

/// The maximum length of an answer, in bytes.
const LINE_LIMIT: u64 = 16 * 1024 * 1024;

/// A running parser. Dropping it kills the process and its children.
pub(super) struct ParserProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    timeout: Duration,
}

impl ParserProcess {
    /// Starts the parser.
    pub(super) fn start(command: &[OsString], timeout: Duration) -> Result<Self, Failure> {
        let missing_command = || Failure::Usage("missing COMMAND".to_owned());
        let (program, arguments) = command.split_first().ok_or_else(missing_command)?;
        let started = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let started = started.and_then(|mut child| {
            let pipes = child.stdin.take().zip(child.stdout.take());
            let (input, output) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
            Ok(Self {
                child,
                input,
                output: BufReader::new(output),
                timeout,
            })
        });
        started.map_err(|error| {
            let reason = not_started(&error);
            Failure::Runtime(format!("cannot start {}: {reason}", program.display()))
        })
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn request(&mut self, request: &Value) -> Result<Value, Failure> {
        let id = request["id"].as_str().unwrap_or_default();
        let fail = |reason: String| Failure::Runtime(format!("{id}: the parser {reason}"));
        let seconds = self.timeout.as_secs();
        let line = match timeout(self.timeout, self.exchange(format!("{request}\n"))).await {
            Ok(Ok(line)) => line,
            Ok(Err(error)) => return Err(fail(format!("ended without an answer ({error})"))),
            Err(_) => {
                return Err(fail(format!(
                    "did not answer within {seconds} s; use `--timeout` to allow more time"
                )));
            }
        };
        match serde_json::from_slice(&line) {
            Ok(answer @ Value::Object(_)) => Ok(answer),
            Ok(_) => Err(fail("answered with JSON that is not an object".to_owned())),
            Err(error) => Err(fail(format!(
                "answered with a line that is not JSON: {error}"
            ))),
        }
    }

    async fn exchange(&mut self, line: String) -> io::Result<Vec<u8>> {
        self.input.write_all(line.as_bytes()).await?;
        self.input.flush().await?;
        let mut answer = Vec::new();
        let mut output = (&mut self.output).take(LINE_LIMIT);
        match output.read_until(b'\n', &mut answer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(answer),
        }
    }
}

impl Drop for ParserProcess {
    fn drop(&mut self) {
        let id = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.try_into().ok()?));
        if let Some(id) = id {
            // The process may have exited already.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}
