//! Runs that are killed and resumed repeatedly: no call starts twice, and no acknowledged event is lost. This file
//! depends on no other, so that longer tests can use it too.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time limit for each wait.
const PATIENCE: Duration = Duration::from_mins(1);

/// The time in which a tool must show its start, if its process was just created.
const BEGINNING: Duration = Duration::from_millis(500);

/// A tool that records its start and its end, and one that reads.
const TOOLS: &str = r#"
[tools.append]
effect = "write"
shell = """
echo "start $PLAINCALL_ID" >> "{directory:tools}/journal"
sleep 0.02
echo "end $PLAINCALL_ID" >> "{directory:tools}/journal"
"""

[tools.look]
effect = "read"
shell = 'sleep 0.01; grep -c end "{directory:tools}/journal" || true'
"#;

/// A run to kill.
#[derive(Debug)]
pub(crate) struct Crash {
    /// The command.
    plaincall: PathBuf,
    /// The directory of the reply, the tools, the log and the journal.
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// The acknowledged lines: the log on standard output.
    acknowledged: Vec<String>,
}

/// The result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    /// The number of kills while it ran.
    pub(crate) kills: u32,
    /// The number of times it was resumed.
    pub(crate) resumed: u32,
    /// The number of calls whose outcome a user had to report.
    pub(crate) words: u32,
}

impl Crash {
    /// A run of this many calls that write, with as many that read between them, in an empty directory.
    pub(crate) fn new(
        plaincall: &Path,
        directory: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        calls: u32,
    ) -> io::Result<Self> {
        let mut reply = String::from("A run that is killed.\n");
        for number in 0..calls {
            // Two independent chains.
            let before = match number.checked_sub(2) {
                Some(before) => format!(":look_{before}"),
                None => String::new(),
            };
            for header in [
                format!("append:write_{number}{before}"),
                format!("look:look_{number}:write_{number}"),
            ] {
                let _ = write!(
                    reply,
                    "!!!GADGET_START:{header}\n!!!GADGET_END\nSome text.\n"
                );
            }
        }
        fs::write(directory.join("reply.txt"), reply)?;
        fs::write(directory.join("tools.toml"), TOOLS)?;
        fs::write(directory.join("journal"), "")?;
        Ok(Self {
            plaincall: plaincall.to_owned(),
            directory: directory.to_owned(),
            environment: environment.into_iter().collect(),
            acknowledged: Vec::new(),
        })
    }

    /// Starts the run, kills it after the first of these times, resumes it, kills it after the second, and so on.
    /// Then lets it finish.
    ///
    /// # Errors
    /// Returns the first violation.
    pub(crate) fn survive(mut self, kills: &[Duration]) -> Result<Trace, String> {
        let mut trace = Trace::default();
        for (round, kill) in kills.iter().map(Some).chain([None]).enumerate() {
            let mut options: Vec<String> = Vec::new();
            if self.has_begun() {
                options.extend(["--resume".to_owned(), "log".to_owned()]);
                let words = self.words()?;
                trace.words += u32::try_from(words.len() / 2).unwrap_or(u32::MAX);
                options.extend(words);
                trace.resumed += 1;
            } else {
                let _ = fs::remove_file(self.path("log"));
                let anew = "reply.txt --tools tools.toml --log log --yes";
                options.extend(anew.split(' ').map(str::to_owned));
            }
            let output = format!("output_{round}");
            let has_ended = self.run(&options, &output, kill.copied())?;
            self.check_acknowledged(&output)?;
            if has_ended {
                self.check_journal()?;
                return Ok(trace);
            }
            trace.kills += 1;
        }
        Err("the last round never ends".to_owned())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn read(&self, name: &str) -> String {
        let bytes = fs::read(self.path(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns whether anything was written to the log before the kill.
    fn has_begun(&self) -> bool {
        self.read("log").contains('\n')
    }

    /// Runs the command. Returns whether it ended before it was killed.
    fn run(
        &self,
        options: &[String],
        output: &str,
        kill: Option<Duration>,
    ) -> Result<bool, String> {
        let failed = |error: io::Error| error.to_string();
        let stdout = File::create(self.path(output)).map_err(failed)?;
        let stderr = File::create(self.path("errors")).map_err(failed)?;
        let mut child = Command::new(&self.plaincall)
            .arg("run")
            .args(options)
            .args(["--json", "--pace", "6000"])
            .current_dir(&self.directory)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .map_err(failed)?;
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                if status.code() != Some(0) {
                    return Err(format!("{status}, {options:?}: {}", self.read("errors")));
                }
                return Ok(true);
            }
            if begun.elapsed() > kill.unwrap_or(PATIENCE) {
                child.kill().map_err(failed)?;
                child.wait().map_err(failed)?;
                return match kill {
                    Some(_) => Ok(false),
                    None => Err("the run never came to its end".to_owned()),
                };
            }
            rest();
        }
    }

    /// Returns the answers about interrupted calls, which a user would find in the journal.
    fn words(&self) -> Result<Vec<String>, String> {
        let log = self.read("log");
        let mut open = BTreeSet::new();
        for line in log.lines().filter(|line| line.ends_with("\"}")) {
            let Some(id) = field(line, "id").filter(|id| id.starts_with("write_")) else {
                continue;
            };
            match field(line, "event") {
                Some("start") => {
                    open.insert(id);
                }
                Some("result" | "retry") => {
                    open.remove(id);
                }
                _ => {}
            }
        }
        let mut words = Vec::new();
        for id in open {
            let word = if self.was_done(id)? {
                "--done"
            } else {
                "--again"
            };
            words.extend([word.to_owned(), id.to_owned()]);
        }
        Ok(words)
    }

    /// Returns whether the tool of a call has completed. It continues when its run is killed.
    fn was_done(&self, id: &str) -> Result<bool, String> {
        let (start, end) = (format!("start {id}\n"), format!("end {id}\n"));
        let begun = Instant::now();
        loop {
            let journal = self.read("journal");
            if journal.contains(&end) {
                return Ok(true);
            }
            let is_started = journal.contains(&start);
            if !is_started && begun.elapsed() > BEGINNING {
                return Ok(false);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("{id} was started and never ended"));
            }
            rest();
        }
    }

    /// Checks that every line on standard output was in the log before.
    fn check_acknowledged(&mut self, output: &str) -> Result<(), String> {
        let text = self.read(output);
        // The last line may be truncated.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let lines = text.get(..whole).unwrap_or_default().lines();
        self.acknowledged.extend(lines.map(str::to_owned));
        let log = self.read("log");
        let lines: HashSet<&str> = log.lines().collect();
        let mut lines_of_output = self.acknowledged.iter();
        match lines_of_output.find(|line| !lines.contains(line.as_str())) {
            Some(line) => Err(format!(
                "{output} contains a line that the log does not: {line}"
            )),
            None => Ok(()),
        }
    }

    /// Checks that every call started once and ended, in the log too.
    fn check_journal(&self) -> Result<(), String> {
        let mut times: BTreeMap<String, u32> = BTreeMap::new();
        for line in self.read("journal").lines() {
            *times.entry(line.to_owned()).or_default() += 1;
        }
        if let Some((line, times)) = times.iter().find(|(_, times)| **times != 1) {
            return Err(format!("`{line}` happened {times} times"));
        }
        let log = self.read("log");
        let results = log
            .lines()
            .filter(|line| field(line, "event") == Some("result"))
            .filter_map(|line| field(line, "id"))
            .filter(|id| id.starts_with("write_"));
        let mut ended: Vec<String> = results.map(|id| format!("end {id}")).collect();
        ended.sort();
        let done: Vec<String> = times
            .into_keys()
            .filter(|line| line.starts_with("end"))
            .collect();
        if ended == done {
            Ok(())
        } else {
            Err(format!("the log has {ended:?}, the journal {done:?}"))
        }
    }
}

/// Returns a field of a line, if its value is a plain text.
fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let key = format!("\"{name}\":\"");
    let value = line.get(line.find(&key)? + key.len()..)?;
    value.get(..value.find('"')?)
}

#[allow(clippy::disallowed_methods, reason = "this thread waits for a process")]
fn rest() {
    thread::sleep(Duration::from_millis(1));
}
