//! Random conversations whose process is killed at random moments while subagents work, and resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plaincall_agent::plaincall::log::read_log;
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::cases::all_cases;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::program::{MAIN, Program, WRITES, is_agent};
use super::record::Record;
use super::{DIRECTORY, run};
use crate::scenarios::changed::Change;

const SEED: &str = "KILLED_SEED";
const MOMENT: &str = "KILLED_MOMENT";
const STALLS: &str = "KILLED_STALLS";
const CHANGES: &str = "KILLED_CHANGES";
const ROUND: &str = "KILLED_ROUND";
/// How tools change between the processes of a conversation. Changes that the model sees change what happens.
const KINDS: [&[Change]; 3] = [
    &[Change::Same],
    &[Change::Same, Change::Settings],
    &[Change::Same, Change::Settings, Change::Schema, Change::Gone],
];
const SEEN: usize = 2;
/// How many conversations there are at the same time.
const AT_ONCE: usize = 3;

/// The totals of all conversations.
#[derive(Debug, Default)]
struct Tally {
    conversations: usize,
    kills: usize,
    /// Kills while a subagent worked, by the log.
    within: usize,
    /// Calls of the killed processes that had ended.
    kept: usize,
    /// Conversations in which all is the same as without a kill.
    same: usize,
}

/// The process that is killed.
#[test]
#[ignore = "runs in a process of its own"]
#[allow(clippy::disallowed_methods, reason = "the settings of the process")]
fn process() {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let program = Program {
        seed: number(SEED).unwrap(),
        directory: PathBuf::from(std::env::var_os(DIRECTORY).unwrap()),
        killed_at: number(MOMENT).map(|moment| usize::try_from(moment).unwrap()),
        stalls: number(STALLS) == Some(1),
        moments: AtomicUsize::new(0),
        changes: KINDS[number(CHANGES).map_or(0, |kind| usize::try_from(kind).unwrap())],
        round: number(ROUND).unwrap_or_default(),
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Arc::new(program).converse());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_subagents_are_killed_and_continue() {
    let mut playing = JoinSet::new();
    let (mut tally, mut failed) = (Tally::default(), Vec::new());
    let mut cases = all_cases("KILL", 8);
    loop {
        while playing.len() < AT_ONCE
            && let Some(case) = cases.next()
        {
            playing.spawn(async move { (case, tokio::spawn(conversation(case)).await) });
        }
        let Some(played) = playing.join_next().await else {
            break;
        };
        match played.unwrap() {
            (_, Ok(one)) => {
                tally.conversations += 1;
                tally.kills += one.kills;
                tally.within += one.within;
                tally.kept += one.kept;
                tally.same += one.same;
            }
            (case, Err(_)) => failed.push(case),
        }
    }
    let Tally {
        conversations,
        kills,
        within,
        kept,
        same,
    } = tally;
    println!(
        "random kills: {conversations} conversations with subagents, {kills} kills, {within} of them while a subagent worked; {kept} calls had ended and did not run again; {same} conversations ended exactly as without a kill"
    );
    assert!(failed.is_empty(), "KILL_CASE: {failed:?}");
    let is_few = conversations < 8;
    assert!(
        is_few || within * 2 >= kills,
        "few kills are within subagents"
    );
    assert!(
        is_few || same * 6 >= conversations,
        "few conversations are comparable"
    );
}

/// A conversation, up to an end or a kill.
struct Part {
    /// The lines of the log that are whole.
    log: Vec<u8>,
    record: Record,
    journal: Vec<String>,
}

impl Part {
    fn read(directory: &Path) -> Self {
        let mut log = fs::read(directory.join("log")).unwrap();
        let read = read_log(&log).expect("the log is readable");
        let end = log.iter().rposition(|byte| *byte == b'\n');
        log.truncate(end.map_or(0, |end| end + 1));
        let place = directory.join("journal");
        let mut journal = fs::read_to_string(&place).unwrap();
        if !journal.is_empty() && !journal.ends_with('\n') {
            // The kill has torn the last line.
            journal.push('\n');
            fs::write(place, &journal).unwrap();
        }
        Self {
            log,
            record: Record::read(&read.events),
            journal: journal.lines().map(str::to_owned).collect(),
        }
    }

    /// Returns the results of each call, by its tag.
    fn results(&self) -> BTreeMap<&str, Vec<(&str, &str)>> {
        let mut results: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for call in self.record.calls.values() {
            let result = call.result.as_deref().expect("each call ends");
            results
                .entry(&call.tag)
                .or_default()
                .push((&*call.name, result));
        }
        for results in results.values_mut() {
            // What a crash has cancelled is submitted again.
            if results.len() > 1 {
                results.retain(|(_, result)| !result.starts_with("cancelled"));
            }
            results.sort_unstable();
        }
        results
    }

    /// Returns what the models read last before each reply, by the task and the number of the reply.
    fn requests(&self) -> BTreeMap<&str, &str> {
        let asks = self.journal.iter().filter_map(|line| {
            let asked = line.strip_prefix("ask ")?;
            let (task, rest) = asked.split_once(' ')?;
            let (number, read) = rest.split_once(' ')?;
            Some((&asked[..task.len() + 1 + number.len()], read))
        });
        asks.collect()
    }
}

async fn conversation(seed: u64) -> Tally {
    let directory = tempfile::tempdir().unwrap();
    File::create(directory.path().join("journal")).unwrap();
    let whole = Arc::new(Program {
        seed,
        directory: directory.path().to_owned(),
        killed_at: None,
        stalls: false,
        moments: AtomicUsize::new(0),
        changes: KINDS[0],
        round: 0,
    });
    whole.converse().await;
    let expected = Part::read(directory.path());
    let answer = fs::read_to_string(directory.path().join("answer")).unwrap();
    let moments = whole.moments.load(Ordering::Relaxed);

    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    File::create(directory.join("journal")).unwrap();
    let mut random = Random::new(!seed);
    let test = "scenarios::killed::random::process";
    let seed = seed.to_string();
    let kind = random.below(KINDS.len());
    let changes = kind.to_string();
    let mut killed = Vec::new();
    let mut has_answered = false;
    for round in 1..=1 + random.below(3) {
        let moment = random.below(moments.div_ceil(round) + 1).to_string();
        let stalls = random.below(2).to_string();
        let round = round.to_string();
        let settings = [
            (SEED, &*seed),
            (MOMENT, &*moment),
            (STALLS, &*stalls),
            (CHANGES, &*changes),
            (ROUND, &*round),
        ];
        let delay = Duration::from_millis(random.below(8) as u64);
        if !run(test, directory, &settings, delay).await {
            break;
        }
        killed.push(Part::read(directory));
        // Without a question, the model would continue.
        has_answered = killed.last().is_some_and(|part| part.record.has_answered);
        if has_answered {
            break;
        }
    }
    if !has_answered && !directory.join("answer").exists() {
        let settings = [(SEED, &*seed), (CHANGES, &*changes)];
        let is_killed = run(test, directory, &settings, Duration::ZERO).await;
        assert!(!is_killed);
    }
    let found = Part::read(directory);
    let within = killed.iter().filter(|part| part.record.is_within()).count();
    let mut tally = Tally {
        kills: killed.len(),
        within,
        ..Tally::default()
    };
    let mut disturbed = BTreeSet::new();
    for part in killed {
        tally.kept += check_nothing_again(&part, &found, &expected);
        disturbed.extend(part.record.disturbed());
    }
    if kind == SEEN {
        return tally;
    }
    check_results(&expected, &found, &disturbed);
    tally.same = usize::from(disturbed.is_empty());
    if !has_answered {
        let answered = fs::read_to_string(directory.join("answer")).unwrap();
        // If the last reply was cut, there is one more.
        let end = if disturbed.contains(MAIN) { 8.. } else { 0.. };
        assert_eq!(answered[end.clone()], answer[end]);
    }
    tally
}

/// Asserts that nothing in the log of a killed process is lost, and that what had ended there did not happen again. Returns the
/// number of calls that had ended.
fn check_nothing_again(part: &Part, found: &Part, expected: &Part) -> usize {
    assert!(found.log.starts_with(&part.log), "the log has lost lines");
    let later = &found.journal[part.journal.len()..];
    let mut ended: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for call in part.record.calls.values() {
        let result = call.result.as_deref();
        // What a crash has cancelled is submitted again.
        if result.is_some_and(|result| !result.starts_with("cancelled")) {
            *ended.entry((&call.name, &call.tag)).or_default() += 1;
        }
    }
    let written = |journal: &[String], what: &str| {
        let is_same = |line: &&String| **line == *what;
        journal.iter().filter(is_same).count()
    };
    for ((name, tag), count) in &ended {
        let start = format!("start {tag} {name}");
        let all = expected.record.calls.values();
        let all = all
            .filter(|call| call.name == *name && call.tag == *tag)
            .count();
        let started = written(later, &start);
        assert!(
            started + count <= all.max(*count),
            "{start}: {count} of {all} had ended, and {started} started again"
        );
        let asks = format!("ask {tag} ");
        let is_asked = later.iter().any(|line| line.starts_with(&asks));
        assert!(!is_agent(name) || !is_asked, "{tag} had ended");
    }
    for line in later {
        if let Some(asked) = line.strip_prefix("ask ") {
            let mut words = asked.split(' ');
            let (task, number) = (words.next().unwrap(), words.next().unwrap());
            let first = part.record.replies_to(task);
            assert!(
                number.parse::<usize>().unwrap() >= first,
                "reply {number} to {task} is requested again, but not reply {first}"
            );
        }
    }
    for line in &found.journal {
        if let Some(tag) = line
            .strip_suffix(WRITES)
            .and_then(|line| line.strip_prefix("start "))
        {
            let tag = tag.trim_end();
            let all = expected.record.calls.values();
            let all = all.filter(|call| call.name == WRITES && call.tag == tag);
            let started = written(&found.journal, line);
            assert!(started <= all.count().max(1), "{line}: {started} times");
        }
    }
    ended.values().sum()
}

/// Asserts that calls and messages are the same as without a kill, except for the tasks that a kill has disturbed and what
/// depends on them.
fn check_results(expected: &Part, found: &Part, disturbed: &BTreeSet<String>) {
    // The tasks of subagents begin with the task above.
    let is_below = |task: &str| disturbed.iter().any(|above| task.starts_with(&**above));
    let is_above = |task: &str| disturbed.iter().any(|below| below.starts_with(task));
    let (all, results) = (expected.results(), found.results());
    let task_of = |tag: &str| tag[..tag.len().saturating_sub(2)].to_owned();
    for (tag, result) in &results {
        let task = task_of(tag);
        if !disturbed.contains(&task) && !is_above(tag) {
            assert_eq!(
                Some(result),
                all.get(tag),
                "{tag}; disturbed: {disturbed:?}"
            );
        }
    }
    for tag in all.keys().filter(|tag| !is_below(&task_of(tag))) {
        assert!(results.contains_key(tag), "{tag} is lost");
    }
    let (all, read) = (expected.requests(), found.requests());
    for (request, read) in &read {
        let (task, _) = request.split_once(' ').unwrap();
        if !is_above(task) {
            let expected = all.get(request);
            let expected = expected.unwrap_or_else(|| {
                panic!("reply {request} was not requested before; disturbed: {disturbed:?}")
            });
            let same = read.bytes().zip(expected.bytes());
            let same = same.take_while(|(one, other)| one == other).count();
            let [read, expected] = [read, expected]
                .map(|text| String::from_utf8_lossy(&text.as_bytes()[same.saturating_sub(200)..]));
            assert_eq!(read, expected, "reply {request}");
        }
    }
    for request in all.keys() {
        let (task, _) = request.split_once(' ').unwrap();
        let is_there = is_below(task) || read.contains_key(request);
        assert!(is_there, "reply {request} was never requested");
    }
    assert!(read.keys().any(|request| request.starts_with(MAIN)));
}
