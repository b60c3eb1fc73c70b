//! Jobs side by side. Each starts when the jobs that it needs have passed; those that most work waits for start first, within a
//! bound of memory. Only one job at a time compiles.
//!
//! Each job prints into a log of its own, which is shown if it fails. The minutes of a group are printed when its last job ends.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::step::logged;
use crate::workspace::{new_folder, target};

/// The work of a job. It may return further jobs of its group.
type Work = Box<dyn FnOnce() -> Result<Vec<Job>, String> + Send>;

/// One part of a group of checks.
pub(crate) struct Job {
    group: &'static str,
    name: String,
    needs: Vec<&'static str>,
    /// About how long it takes, for the order.
    seconds: u32,
    /// About how much memory it takes.
    gigabytes: u32,
    compiles: bool,
    /// It is run only because others need it.
    is_only_needed: bool,
    work: Work,
}

impl Job {
    /// Creates a job of a group that takes about this many seconds and 1 GB.
    pub(crate) fn new(
        group: &'static str,
        name: impl Into<String>,
        seconds: u32,
        work: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Self {
        Self::with_more(group, name, seconds, || work().map(|()| Vec::new()))
    }

    /// Creates a job whose work returns further jobs.
    pub(crate) fn with_more(
        group: &'static str,
        name: impl Into<String>,
        seconds: u32,
        work: impl FnOnce() -> Result<Vec<Self>, String> + Send + 'static,
    ) -> Self {
        Self {
            group,
            name: name.into(),
            needs: Vec::new(),
            seconds,
            gigabytes: 1,
            compiles: false,
            is_only_needed: false,
            work: Box::new(work),
        }
    }

    pub(crate) fn group(&self) -> &'static str {
        self.group
    }

    /// Sets the names of the jobs that must pass before.
    pub(crate) fn needs(self, needs: &[&'static str]) -> Self {
        Self {
            needs: needs.to_vec(),
            ..self
        }
    }

    pub(crate) fn gigabytes(self, gigabytes: u32) -> Self {
        Self { gigabytes, ..self }
    }

    /// No other job compiles at the same time: cargo would wait for it, and both cores are busy.
    pub(crate) fn compiles(self) -> Self {
        Self {
            compiles: true,
            ..self
        }
    }
}

/// Returns the jobs of these groups, and those that they need.
///
/// # Errors
/// Returns an error if a group or a needed job does not exist.
pub(crate) fn selected(jobs: Vec<Job>, groups: &[&str]) -> Result<Vec<Job>, String> {
    let has_jobs = |name: &&&str| jobs.iter().any(|job| job.group == **name);
    if let Some(unknown) = groups.iter().find(|name| !has_jobs(name)) {
        let mut names: Vec<&str> = jobs.iter().map(|job| job.group).collect();
        names.sort_unstable();
        names.dedup();
        let names = names.join(", ");
        return Err(format!("there is no group `{unknown}`: {names}"));
    }
    let of_groups = jobs.iter().filter(|job| groups.contains(&job.group));
    let names: Vec<String> = of_groups.map(|job| job.name.clone()).collect();
    let mut selected = with_needs(jobs, &names)?;
    for job in &mut selected {
        job.is_only_needed = !groups.contains(&job.group);
    }
    Ok(selected)
}

/// Returns the jobs with these names, and those that they need.
///
/// # Errors
/// Returns an error if a needed job does not exist.
pub(crate) fn with_needs(jobs: Vec<Job>, names: &[impl AsRef<str>]) -> Result<Vec<Job>, String> {
    let mut open: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let mut wanted = HashSet::new();
    while let Some(name) = open.pop() {
        let Some(job) = jobs.iter().find(|job| job.name == name) else {
            return Err(format!("there is no job `{name}`"));
        };
        open.extend(&job.needs);
        wanted.insert(name.to_owned());
    }
    let is_wanted = |job: &Job| wanted.contains(&job.name);
    Ok(jobs.into_iter().filter(is_wanted).collect())
}

/// The result of a job.
struct Done {
    group: &'static str,
    name: String,
    seconds: f64,
    processor: f64,
    tests: u64,
    has_passed: bool,
}

/// A job that runs.
struct Running {
    group: &'static str,
    name: String,
    gigabytes: u32,
    compiles: bool,
}

#[derive(Default)]
struct State {
    waiting: Vec<Job>,
    running: Vec<Running>,
    done: Vec<Done>,
    /// When each group began.
    begun: HashMap<&'static str, Instant>,
    table: Vec<String>,
}

impl State {
    /// Removes the next job that can start. Jobs that need a failed one fail.
    fn next(&mut self, gigabytes: u32) -> Option<Job> {
        self.fail_dependents();
        let used: u32 = self.running.iter().map(|job| job.gigabytes).sum();
        let compiles = self.running.iter().any(|job| job.compiles);
        let ranks = ranks(&self.waiting);
        let can_start = |job: &Job| {
            let is_ready = job.needs.iter().all(|need| self.ended(need) == Some(true));
            // A job that needs more than there is runs alone.
            let fits = used + job.gigabytes <= gigabytes || self.running.is_empty();
            is_ready && fits && !(compiles && job.compiles)
        };
        let candidates = self.waiting.iter().enumerate();
        let candidates = candidates.filter(|(_, job)| can_start(job));
        let (place, _) = candidates.max_by_key(|(place, _)| ranks[*place])?;
        let job = self.waiting.remove(place);
        self.running.push(Running {
            group: job.group,
            name: job.name.clone(),
            gigabytes: job.gigabytes,
            compiles: job.compiles,
        });
        self.begun.entry(job.group).or_insert_with(Instant::now);
        Some(job)
    }

    /// Returns whether a job has passed, if it has ended.
    fn ended(&self, name: &str) -> Option<bool> {
        let done = self.done.iter().find(|done| done.name == name);
        done.map(|done| done.has_passed)
    }

    fn fail_dependents(&mut self) {
        while let Some((place, need)) = self.waiting.iter().enumerate().find_map(|(place, job)| {
            let failed = |need: &&&str| self.ended(need) == Some(false);
            Some((place, *job.needs.iter().find(failed)?))
        }) {
            let Job { group, name, .. } = self.waiting.remove(place);
            println!("   {group}: {name} NOT RUN: it needs {need}");
            self.end(Done {
                group,
                name,
                seconds: 0.0,
                processor: 0.0,
                tests: 0,
                has_passed: false,
            });
        }
    }

    /// Records the end of a job, and prints the line of its group if that was its last.
    fn end(&mut self, done: Done) {
        let group = done.group;
        self.running.retain(|job| job.name != done.name);
        self.done.push(done);
        let is_open = self.waiting.iter().any(|job| job.group == group)
            || self.running.iter().any(|job| job.group == group);
        if !is_open {
            let line = self.line(group);
            println!("== {line}");
            self.table.push(line);
        }
    }

    /// The line of a group in the table.
    fn line(&self, group: &'static str) -> String {
        let of_group = || self.done.iter().filter(|done| done.group == group);
        let processor: f64 = of_group().map(|done| done.processor).sum();
        let alone: f64 = of_group().map(|done| done.seconds).sum();
        let tests: u64 = of_group().map(|done| done.tests).sum();
        let begun = self.begun.get(group).map(Instant::elapsed);
        let has_passed = of_group().all(|done| done.has_passed);
        format!(
            "{group:<20}{:>6.1} min in{:>5.1} min, {:>5.1} min of processors, {tests:>5} tests, {}",
            alone / 60.0,
            begun.unwrap_or_default().as_secs_f64() / 60.0,
            processor / 60.0,
            if has_passed { "passed" } else { "FAILED" }
        )
    }

    /// Returns the number of passed jobs, and the names of the failed ones.
    fn outcome(&self) -> (usize, Vec<&str>) {
        let failed = self.done.iter().filter(|done| !done.has_passed);
        let failed: Vec<&str> = failed.map(|done| done.name.as_str()).collect();
        (self.done.len() - failed.len(), failed)
    }
}

/// For each job, its seconds and those of the longest chain of jobs that wait for it.
fn ranks(jobs: &[Job]) -> Vec<u32> {
    fn rank(jobs: &[Job], place: usize) -> u32 {
        let waits = |job: &&Job| job.needs.contains(&jobs[place].name.as_str());
        let dependents = jobs.iter().filter(waits);
        let places =
            dependents.filter_map(|job| jobs.iter().position(|other| std::ptr::eq(other, job)));
        let longest = places.map(|place| rank(jobs, place)).max();
        jobs[place].seconds + longest.unwrap_or(0)
    }
    (0..jobs.len()).map(|place| rank(jobs, place)).collect()
}

/// Runs jobs side by side. After `limit`, it prints the table so far and ends this process and all of its group.
///
/// # Errors
/// Lists the failed jobs, after all have ended.
pub(crate) fn run(jobs: Vec<Job>, limit: Option<Duration>) -> Result<(), String> {
    let begun = Instant::now();
    let logs = new_folder(&target().join("logs"))?;
    let gigabytes = available_gigabytes();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let state = Mutex::new(State {
        waiting: jobs,
        ..State::default()
    });
    let changed = Condvar::new();
    std::thread::scope(|scope| {
        // Two more than there are cores, because many jobs wait.
        for _ in 0..cores + 2 {
            scope.spawn(|| work(&state, &changed, gigabytes, &logs));
        }
        if let Some(limit) = limit {
            watch(&state, &changed, limit, &logs);
        }
    });
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "== groups, in the order in which they ended: minutes of their jobs, from first to last, and of processors"
    );
    state.table.iter().for_each(|line| println!("{line}"));
    println!("== all: {:.1} min", begun.elapsed().as_secs_f64() / 60.0);
    let (passed, failed) = state.outcome();
    println!("jobs: {passed} passed, {} failed", failed.len());
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs jobs until none is left.
fn work(state: &Mutex<State>, changed: &Condvar, gigabytes: u32, logs: &Path) {
    loop {
        let mut locked = lock(state);
        let job = loop {
            if let Some(job) = locked.next(gigabytes) {
                break job;
            }
            if locked.waiting.is_empty() && locked.running.is_empty() {
                changed.notify_all();
                return;
            }
            locked = changed.wait(locked).unwrap_or_else(PoisonError::into_inner);
        };
        drop(locked);
        let Job {
            group,
            name,
            is_only_needed,
            work,
            ..
        } = job;
        let path = log(logs, &name);
        let begun = Instant::now();
        // A panic of a job must not leave the others waiting for it.
        let work = std::panic::AssertUnwindSafe(work);
        let ran = logged(&path, || {
            std::panic::catch_unwind(|| {
                let work = work;
                (work.0)()
            })
        });
        let (result, processor) = match ran {
            Ok((Ok(result), processor)) => (result, processor),
            Ok((Err(_), processor)) => (Err("it panicked".to_owned()), processor),
            Err(error) => (Err(error), 0.0),
        };
        let seconds = begun.elapsed().as_secs_f64();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut locked = lock(state);
        let has_passed = result.is_ok();
        match result {
            Ok(more) => {
                for line in text.lines().filter(|line| line.contains("SKIPPED")) {
                    println!("{line}");
                }
                println!("{seconds:7.1} s {processor:7.1} of processors  {group}: {name}");
                locked
                    .waiting
                    .extend(more.into_iter().filter(|_| !is_only_needed));
            }
            Err(error) => println!("{text}\n{seconds:7.1} s  {group}: {name} FAILED: {error}"),
        }
        locked.end(Done {
            group,
            name,
            seconds,
            processor,
            tests: tests(&text),
            has_passed,
        });
        drop(locked);
        changed.notify_all();
    }
}

fn log(logs: &Path, name: &str) -> PathBuf {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
    let name = name.replace(|letter| !is_plain(letter), "-");
    logs.join(name).with_extension("log")
}

/// Waits until all jobs have ended, or until the limit: then it prints what is known, and ends this process and its group.
fn watch(state: &Mutex<State>, changed: &Condvar, limit: Duration, logs: &Path) {
    let end = Instant::now() + limit;
    let mut locked = lock(state);
    while !(locked.waiting.is_empty() && locked.running.is_empty()) {
        let left = end.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            let waited = changed.wait_timeout(locked, left);
            locked = waited.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        println!(
            "== stopped after {} min; groups so far",
            limit.as_secs() / 60
        );
        locked.table.iter().for_each(|line| println!("{line}"));
        for Running { group, name, .. } in &locked.running {
            let text = fs::read_to_string(log(logs, name)).unwrap_or_default();
            let last: Vec<&str> = text.lines().rev().take(5).collect();
            println!("== still running: {group}: {name}");
            last.iter().rev().for_each(|line| println!("{line}"));
        }
        let waiting: Vec<&str> = locked.waiting.iter().map(|job| job.name.as_str()).collect();
        println!("== not begun: {}", waiting.join(", "));
        let (passed, failed) = locked.outcome();
        println!(
            "jobs: {passed} passed, {} failed",
            failed.len() + locked.running.len()
        );
        // Process 0 is every process of this group: `.ci/run` gives it a group of its own.
        let _ = Command::new("sh").args(["-c", "kill -KILL 0"]).status();
        std::process::exit(1);
    }
}

/// Three quarters of the memory that is free now. Default, where the system does not state it: 8.
fn available_gigabytes() -> u32 {
    let known = fs::read_to_string("/proc/meminfo").ok();
    let kilobytes = known.as_deref().and_then(|known| {
        let line = known
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    });
    kilobytes.map_or(8, |kilobytes| {
        u32::try_from(kilobytes * 3 / 4 / 1_000_000).unwrap_or(8)
    })
}

/// The number of passed tests that a log of cargo, pytest or Node states.
fn tests(log: &str) -> u64 {
    let before = |line: &str, end: &str| -> Option<u64> {
        let (text, _) = line.split_once(end)?;
        text.rsplit(|letter: char| !letter.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let of_line = |line: &str| {
        if line.starts_with("test result: ") {
            return before(line, " passed;");
        }
        for start in ["# pass ", "ℹ pass "] {
            if let Some(number) = line.strip_prefix(start) {
                return number.trim().parse().ok();
            }
        }
        // The last line of pytest.
        line.contains(" in ")
            .then(|| before(line, " passed"))
            .flatten()
    };
    log.lines().filter_map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn job(group: &'static str, name: &str, seconds: u32) -> Job {
        Job::new(group, name, seconds, || Ok(()))
    }

    #[test]
    fn what_most_work_waits_for_is_first() {
        let jobs = [
            job("a", "long", 50),
            job("b", "build", 10),
            job("b", "test", 60).needs(&["build"]),
        ];
        assert_eq!(ranks(&jobs), [50, 70, 60]);
    }

    #[test]
    fn groups_bring_what_they_need() {
        let jobs = || {
            vec![
                job("builds", "build", 1),
                job("a", "first", 1).needs(&["build"]),
                job("b", "second", 1).needs(&["first"]),
                job("c", "third", 1),
            ]
        };
        let names = |groups: &[&str]| -> Vec<(String, bool)> {
            let selected = selected(jobs(), groups).unwrap();
            let parts = selected
                .into_iter()
                .map(|job| (job.name, job.is_only_needed));
            parts.collect()
        };
        let name = |name: &str, is_only_needed| (name.to_owned(), is_only_needed);
        let expected = [
            name("build", true),
            name("first", true),
            name("second", false),
        ];
        assert_eq!(names(&["b"]), expected);
        assert_eq!(names(&["c"]), [name("third", false)]);
        assert_eq!(names(&["a", "b", "builds", "c"]).len(), 4);
        let unknown = selected(jobs(), &["d"]).err().unwrap();
        assert_eq!(unknown, "there is no group `d`: a, b, builds, c");
        let missing = selected(vec![job("a", "one", 1).needs(&["none"])], &["a"]);
        assert_eq!(missing.err().unwrap(), "there is no job `none`");
    }

    #[test]
    fn a_job_waits_for_others_for_memory_and_for_the_compiler() {
        let mut state = State {
            waiting: vec![
                job("a", "one", 3).gigabytes(3).compiles(),
                job("a", "two", 2).gigabytes(3),
                job("a", "three", 1).compiles(),
                job("a", "four", 9).needs(&["one"]),
                job("a", "alone", 0).gigabytes(99),
            ],
            ..State::default()
        };
        let mut next = |ended: &[&str]| {
            for name in ended {
                state.end(Done {
                    group: "a",
                    name: (*name).to_owned(),
                    seconds: 0.0,
                    processor: 0.0,
                    tests: 0,
                    has_passed: true,
                });
            }
            state.next(5).map(|job| job.name)
        };
        assert_eq!(next(&[]).as_deref(), Some("one"));
        assert_eq!(next(&[]), None, "memory, the compiler, and a need");
        assert_eq!(next(&["one"]).as_deref(), Some("four"));
        assert_eq!(next(&[]).as_deref(), Some("two"));
        assert_eq!(next(&[]).as_deref(), Some("three"));
        assert_eq!(next(&["two", "three"]), None);
        assert_eq!(next(&["four"]).as_deref(), Some("alone"));
    }

    #[test]
    fn failures_and_panics_reach_the_result_and_the_others_run() {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let note = |name: &'static str| {
            let ran = Arc::clone(&ran);
            move || {
                ran.lock().unwrap().push(name);
                Ok(())
            }
        };
        let more = note("more");
        let jobs = vec![
            Job::new("a", "fails", 1, || Err("no".to_owned())),
            Job::new("a", "panics", 1, || panic!("at the disco")),
            Job::new("a", "after", 1, note("after")).needs(&["fails"]),
            Job::with_more("b", "first", 1, move || {
                Ok(vec![Job::new("b", "more", 1, more)])
            }),
        ];
        let logs = tempdir();
        let state = Mutex::new(State {
            waiting: jobs,
            ..State::default()
        });
        work(&state, &Condvar::new(), 9, &logs);
        let mut state = state.into_inner().unwrap();
        state.table.sort_unstable();
        let (passed, mut failed) = state.outcome();
        failed.sort_unstable();
        assert_eq!((passed, failed), (2, vec!["after", "fails", "panics"]));
        assert_eq!(*ran.lock().unwrap(), ["more"]);
        assert!(state.table[0].ends_with("FAILED"), "{:?}", state.table);
        assert!(state.table[1].ends_with("passed"), "{:?}", state.table);
        fs::remove_dir_all(logs).unwrap();
    }

    fn tempdir() -> PathBuf {
        new_folder(&std::env::temp_dir().join(format!("pool-{}", std::process::id()))).unwrap()
    }

    #[test]
    fn logs_state_their_tests() {
        let table = [
            (
                "test result: ok. 12 passed; 0 failed; 3 ignored\n\ntest result: ok. 3 passed; 0 failed",
                15,
            ),
            ("====== 1230 passed, 2 skipped in 12.30s ======", 1230),
            ("7 passed in 1.2s", 7),
            ("# tests 9\n# pass 8\n", 8),
            ("ℹ pass 80", 80),
            ("nothing passed", 0),
        ];
        for (log, expected) in table {
            assert_eq!(tests(log), expected, "{log}");
        }
    }
}
