//! Jobs side by side. Each starts when the jobs that it needs have passed; those that most work waits for start first, within a
//! bound of memory. Only one job at a time compiles.
//!
//! Each job prints into a log of its own, which is shown if it fails. The minutes of a group are printed when its last job ends.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::step::{SKIPPED, logged};
use crate::workspace::{new_folder, no_problems, target};

/// The work of a job. It may return further jobs of its group.
type Work = Box<dyn FnOnce() -> Result<Vec<Job>, String> + Send>;

/// A closure that does the work of a job.
pub(crate) trait Task: FnOnce() -> Result<(), String> + Send + 'static {}
impl<T: FnOnce() -> Result<(), String> + Send + 'static> Task for T {}

/// One part of a group of checks.
pub(crate) struct Job {
    pub(crate) group: &'static str,
    name: String,
    needs: Vec<&'static str>,
    /// About how long it takes, for the order.
    seconds: u32,
    /// About how much memory it takes.
    gigabytes: u32,
    compiles: bool,
    /// It is run only because others need it.
    is_only_needed: bool,
    /// Its log is shown although it passes, for figures.
    pub(crate) shows_log: bool,
    /// Its end if it skips something.
    pub(crate) skipping: Skipping,
    /// The least number of tests that its log states: a filter that matches nothing is an error.
    least_tests: u64,
    /// `None` if it has begun.
    work: Option<Work>,
    /// `None` if it has not ended.
    outcome: Option<Outcome>,
}

/// The end of a job that skips something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Skipping {
    Passes,
    Fails,
}

/// The end of a job: why it failed, its seconds, those of its processes, the number of its tests, and its log.
#[derive(Default)]
struct Outcome {
    error: Option<String>,
    seconds: f64,
    processor: f64,
    tests: u64,
    text: String,
}

impl Job {
    /// Creates a job of a group that takes about this many seconds and 1 GB.
    pub(crate) fn new(group: &'static str, name: &str, seconds: u32, work: impl Task) -> Self {
        Self::with_more(group, name, seconds, || work().map(|()| Vec::new()))
    }

    /// Creates a job whose work returns further jobs.
    pub(crate) fn with_more(
        group: &'static str,
        name: &str,
        seconds: u32,
        work: impl FnOnce() -> Result<Vec<Self>, String> + Send + 'static,
    ) -> Self {
        Self {
            group,
            name: name.to_owned(),
            needs: Vec::new(),
            seconds,
            gigabytes: 1,
            compiles: false,
            is_only_needed: false,
            shows_log: false,
            skipping: Skipping::Passes,
            least_tests: 0,
            work: Some(Box::new(work)),
            outcome: None,
        }
    }

    /// Sets the names of the jobs that must pass before.
    pub(crate) fn needs(mut self, needs: &[&'static str]) -> Self {
        self.needs = needs.to_vec();
        self
    }

    pub(crate) fn gigabytes(mut self, gigabytes: u32) -> Self {
        self.gigabytes = gigabytes;
        self
    }

    /// Fails if its log states fewer passed tests.
    pub(crate) fn least_tests(mut self, least_tests: u64) -> Self {
        self.least_tests = least_tests;
        self
    }

    /// No other job compiles at the same time: cargo would wait for it, and both cores are busy.
    pub(crate) fn compiles(mut self) -> Self {
        self.compiles = true;
        self
    }

    fn is_running(&self) -> bool {
        self.work.is_none() && self.outcome.is_none()
    }

    /// Returns whether it has passed, if it has ended.
    fn has_passed(&self) -> Option<bool> {
        self.outcome.as_ref().map(|outcome| outcome.error.is_none())
    }
}

/// Returns the jobs of these groups, and those that they need.
pub(crate) fn selected(mut jobs: Vec<Job>, groups: &[&str]) -> Result<Vec<Job>, String> {
    let is_unknown = |group: &&&str| jobs.iter().all(|job| job.group != **group);
    if let Some(unknown) = groups.iter().find(is_unknown) {
        let known: BTreeSet<&str> = jobs.iter().map(|job| job.group).collect();
        let known = Vec::from_iter(known).join(", ");
        return Err(format!("there is no group `{unknown}`: {known}"));
    }
    for job in &mut jobs {
        job.is_only_needed = !groups.contains(&job.group);
    }
    let own = jobs.iter().filter(|job| !job.is_only_needed);
    let mut open: Vec<&str> = own.map(|job| job.name.as_str()).collect();
    let mut wanted = BTreeSet::new();
    while let Some(name) = open.pop() {
        let Some(job) = jobs.iter().find(|job| job.name == name) else {
            return Err(format!("there is no job `{name}`"));
        };
        open.extend(&job.needs);
        wanted.insert(name.to_owned());
    }
    jobs.retain(|job| wanted.contains(&job.name));
    Ok(jobs)
}

/// Does the work of a job, with a log in this file. Returns its end, and the further jobs that it returned.
fn perform(path: &Path, work: Work, least_tests: u64, skipping: Skipping) -> (Outcome, Vec<Job>) {
    let begun = Instant::now();
    // A panic of a job must not leave the others waiting for it.
    let (result, processor) = logged(path, || catch_unwind(AssertUnwindSafe(work)));
    let result = result.unwrap_or_else(|_| Err("it panicked".to_owned()));
    let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let tests = tests(&text);
    let (more, mut error) = match result {
        Ok(more) => (more, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let skipped = text.lines().find(|line| is_skipped(line));
    if error.is_none()
        && skipping == Skipping::Fails
        && let Some(skipped) = skipped
    {
        error = Some(format!("a nightly job skips nothing: {skipped}"));
    } else if error.is_none() && tests < least_tests && skipped.is_none() {
        error = Some(format!("{tests} tests passed, not {least_tests} or more"));
    }
    let outcome = Outcome {
        error,
        seconds: begun.elapsed().as_secs_f64(),
        processor,
        tests,
        text,
    };
    (outcome, more)
}

/// Returns whether a line of a log reports that something was skipped.
fn is_skipped(line: &str) -> bool {
    line.starts_with("== ") && line.contains(SKIPPED)
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    /// When each group began.
    begun: HashMap<&'static str, Instant>,
    table: Vec<String>,
}

impl State {
    /// Starts the next job that can start, and returns its place and work. Jobs that need a failed one fail. Not more than `most` run.
    fn next(&mut self, gigabytes: u32, most: usize) -> Option<(usize, Work)> {
        self.fail_dependents();
        let running = self.jobs.iter().filter(|job| job.is_running());
        let running: Vec<&Job> = running.collect();
        let used: u32 = running.iter().map(|job| job.gigabytes).sum();
        let compiles = running.iter().any(|job| job.compiles);
        let can_start = |job: &Job| {
            let is_ready = job.needs.iter().all(|need| self.passed(need) == Some(true));
            // A job that needs more than there is runs alone.
            let fits = used + job.gigabytes <= gigabytes || running.is_empty();
            job.work.is_some() && is_ready && fits && !(compiles && job.compiles)
        };
        let places = 0..self.jobs.len();
        let places = places.filter(|place| running.len() < most && can_start(&self.jobs[*place]));
        let place = places.max_by_key(|place| rank(&self.jobs, *place))?;
        let job = &mut self.jobs[place];
        self.begun.entry(job.group).or_insert_with(Instant::now);
        Some((place, job.work.take()?))
    }

    /// Returns whether a job has passed, if it has ended.
    fn passed(&self, name: &str) -> Option<bool> {
        let job = self.jobs.iter().find(|job| job.name == name);
        job.and_then(Job::has_passed)
    }

    fn fail_dependents(&mut self) {
        let failed = |need: &&&str| self.passed(need) == Some(false);
        let waiting = self
            .jobs
            .iter()
            .enumerate()
            .filter(|(_, job)| job.work.is_some());
        let mut needs =
            waiting.filter_map(|(place, job)| Some((place, job.needs.iter().find(failed)?)));
        if let Some((place, need)) = needs.next() {
            let outcome = Outcome {
                error: Some(format!("not run, because it needs {need}")),
                ..Outcome::default()
            };
            self.end(place, outcome, Vec::new());
            self.fail_dependents();
        }
    }

    /// Records and prints the end of a job, and the line of its group if that was its last.
    fn end(&mut self, place: usize, outcome: Outcome, more: Vec<Job>) {
        let job = &mut self.jobs[place];
        let (group, name, seconds) = (job.group, &job.name, outcome.seconds);
        let is_shown = |line: &&str| job.shows_log || is_skipped(line);
        match &outcome.error {
            None => {
                let shown = outcome.text.lines().filter(is_shown);
                shown.for_each(|line| println!("{line}"));
                let processor = outcome.processor;
                println!("{seconds:7.1} s {processor:7.1} of processors  {group}: {name}");
            }
            Some(error) => {
                println!(
                    "{}\n{seconds:7.1} s  {group}: {name} FAILED: {error}",
                    outcome.text
                );
            }
        }
        (job.work, job.outcome) = (None, Some(outcome));
        if !job.is_only_needed {
            self.jobs.extend(more);
        }
        let mut of_group = self.jobs.iter().filter(|job| job.group == group);
        if of_group.all(|job| job.outcome.is_some()) {
            let line = self.line(group);
            println!("== {line}");
            self.table.push(line);
        }
    }

    /// The line of a group in the table.
    fn line(&self, group: &'static str) -> String {
        let of_group = self.jobs.iter().filter(|job| job.group == group);
        let mut sum = Outcome::default();
        for outcome in of_group.clone().filter_map(|job| job.outcome.as_ref()) {
            sum.seconds += outcome.seconds;
            sum.processor += outcome.processor;
            sum.tests += outcome.tests;
        }
        let begun = self.begun.get(group).map(Instant::elapsed);
        let has_passed = of_group.clone().all(|job| job.has_passed() == Some(true));
        format!(
            "{group:<20}{:>6.1} min in{:>5.1} min, {:>5.1} min of processors, {:>5} tests, {}",
            sum.seconds / 60.0,
            begun.unwrap_or_default().as_secs_f64() / 60.0,
            sum.processor / 60.0,
            sum.tests,
            if has_passed { "passed" } else { "FAILED" }
        )
    }

    fn has_ended(&self) -> bool {
        self.jobs.iter().all(|job| job.outcome.is_some())
    }

    /// Prints the lines of the groups and the number of passed jobs, and returns the names of those that failed or still run.
    fn print_table(&self, begun: Instant) -> Vec<String> {
        self.table.iter().for_each(|line| println!("{line}"));
        println!("== all: {:.1} min", begun.elapsed().as_secs_f64() / 60.0);
        let failed = self.names(|job| job.work.is_none() && job.has_passed() != Some(true));
        let passed = self.names(|job| job.has_passed() == Some(true));
        println!("jobs: {} passed, {} failed", passed.len(), failed.len());
        failed
    }

    fn names(&self, are_wanted: impl Fn(&&Job) -> bool) -> Vec<String> {
        let wanted = self.jobs.iter().filter(are_wanted);
        wanted.map(|job| job.name.clone()).collect()
    }
}

/// Returns the seconds of a job and those of the longest chain of jobs that wait for it.
fn rank(jobs: &[Job], place: usize) -> u32 {
    let waits = |other: &usize| jobs[*other].needs.contains(&jobs[place].name.as_str());
    let dependents = (0..jobs.len()).filter(waits);
    let longest = dependents.map(|other| rank(jobs, other)).max();
    jobs[place].seconds + longest.unwrap_or(0)
}

/// Runs jobs side by side. After `limit`, it prints the table so far and ends this process and all of its group.
pub(crate) fn run(jobs: Vec<Job>, limit: Option<Duration>) -> Result<(), String> {
    let begun = Instant::now();
    let logs = new_folder(&target().join("logs"))?;
    let state = run_all(jobs, limit.unwrap_or(Duration::MAX), begun, &logs);
    println!(
        "== groups, in the order in which they ended: minutes of their jobs, from first to last, and of processors"
    );
    no_problems("failed:", &state.print_table(begun))
}

fn run_all(jobs: Vec<Job>, limit: Duration, begun: Instant, logs: &Path) -> State {
    let gigabytes = available_gigabytes();
    // Two more than there are cores, because many jobs wait.
    let most = std::thread::available_parallelism().map_or(1, usize::from) + 2;
    let mut state = State {
        jobs,
        ..State::default()
    };
    let (sender, ended) = mpsc::channel();
    while !state.has_ended() {
        if let Some((place, work)) = state.next(gigabytes, most) {
            let job = &state.jobs[place];
            let (sender, path) = (sender.clone(), log(logs, &job.name));
            let (least, complete) = (job.least_tests, job.skipping);
            std::thread::spawn(move || sender.send((place, perform(&path, work, least, complete))));
        } else if !state.has_ended() {
            match ended.recv_timeout(limit.saturating_sub(begun.elapsed())) {
                Ok((place, (outcome, more))) => state.end(place, outcome, more),
                Err(_) => stop(&state, begun, logs),
            }
        }
    }
    state
}

fn log(logs: &Path, name: &str) -> PathBuf {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
    let name = name.replace(|letter| !is_plain(letter), "-");
    logs.join(name).with_extension("log")
}

/// Prints what is known, and ends this process and its group.
fn stop(state: &State, begun: Instant, logs: &Path) {
    for name in state.names(|job| job.is_running()) {
        let text = fs::read_to_string(log(logs, &name)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n");
        println!("== still running: {name}\n{last}");
    }
    let waiting = state.names(|job| job.work.is_some()).join(", ");
    println!("== not begun: {waiting}\n== stopped; groups so far");
    state.print_table(begun);
    // Process 0 is every process of this group: `.ci/run` gives it a group of its own.
    let _ = Command::new("sh").args(["-c", "kill -KILL 0"]).status();
    std::process::exit(1);
}

/// Three quarters of the memory that is free now. Default, where the system does not state it: 8.
fn available_gigabytes() -> u32 {
    let known = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let mut lines = known.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let gigabytes = kilobytes.map(|kilobytes| u32::try_from(kilobytes * 3 / 4 / 1_000_000));
    gigabytes.and_then(Result::ok).unwrap_or(8)
}

/// The number of passed tests that a log of cargo, pytest or Node states.
fn tests(log: &str) -> u64 {
    let of_line = |line: &str| {
        let node = ["# pass ", "ℹ pass "].map(|start| line.strip_prefix(start));
        let text = match node[0].or(node[1]) {
            Some(number) => number.trim(),
            // The last line of pytest contains the time.
            None if line.starts_with("test result: ") || line.contains(" in ") => {
                line.split_once(" passed")?.0
            }
            None => return None,
        };
        let number = text.rsplit(|letter: char| !letter.is_ascii_digit()).next();
        number?.parse::<u64>().ok()
    };
    log.lines().filter_map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::skipped;

    fn job(group: &'static str, name: &str, seconds: u32) -> Job {
        Job::new(group, name, seconds, || Ok(()))
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
        let names = |groups: &[&str]| {
            let selected = selected(jobs(), groups).unwrap();
            let (needed, own): (Vec<_>, Vec<_>) =
                selected.into_iter().partition(|job| job.is_only_needed);
            let join = |jobs: Vec<Job>| {
                let names: Vec<String> = jobs.into_iter().map(|job| job.name).collect();
                names.join(" ")
            };
            [needed, own].map(join)
        };
        assert_eq!(names(&["b"]), ["build first", "second"]);
        assert_eq!(names(&["c"]), ["", "third"]);
        assert_eq!(
            names(&["a", "b", "builds", "c"]),
            ["", "build first second third"]
        );
        let unknown = selected(jobs(), &["d"]).err().unwrap();
        assert_eq!(unknown, "there is no group `d`: a, b, builds, c");
        let missing = selected(vec![job("a", "one", 1).needs(&["none"])], &["a"]);
        assert_eq!(missing.err().unwrap(), "there is no job `none`");
    }

    #[test]
    fn a_job_waits_for_others_for_memory_and_for_the_compiler() {
        let jobs = vec![
            job("a", "one", 3).gigabytes(3).compiles(),
            job("a", "two", 2).gigabytes(3),
            job("a", "three", 1).compiles(),
            job("a", "four", 9).needs(&["one"]),
            job("a", "alone", 0).gigabytes(99),
        ];
        assert_eq!([0, 1, 2, 3].map(|place| rank(&jobs, place)), [12, 2, 1, 9]);
        let mut state = State {
            jobs,
            ..State::default()
        };
        let mut next = |ended: &[&str]| {
            for name in ended {
                let place = state.jobs.iter().position(|job| job.name == *name);
                state.end(place.unwrap(), Outcome::default(), Vec::new());
            }
            let (place, _) = state.next(5, 9)?;
            Some(state.jobs[place].name.clone())
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
        let more = || Ok(vec![job("b", "more", 1)]);
        let skips = |name, skipping| Job {
            skipping,
            ..Job::new("a", name, 1, || skipped("it", "no network")).least_tests(1)
        };
        let jobs = vec![
            Job::new("a", "fails", 1, || Err("no".to_owned())),
            Job::new("a", "panics", 1, || panic!("at the disco")),
            job("a", "no tests", 1).least_tests(1),
            job("a", "after", 1).needs(&["fails"]),
            skips("skips", Skipping::Passes),
            skips("skips at night", Skipping::Fails),
            Job::with_more("b", "first", 1, more),
        ];
        let logs = new_folder(&target().join("tmp/pool")).unwrap();
        let mut state = run_all(jobs, Duration::MAX, Instant::now(), &logs);
        state.table.sort_unstable();
        let passed = state.names(|job| job.has_passed() == Some(true));
        assert_eq!(passed, ["skips", "first", "more"]);
        let failed = state.names(|job| job.has_passed() == Some(false));
        let expected = ["fails", "panics", "no tests", "after", "skips at night"];
        assert_eq!(failed, expected);
        assert!(state.table[0].ends_with("FAILED"), "{:?}", state.table);
        assert!(state.table[1].ends_with("passed"), "{:?}", state.table);
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
