//! The environment of a random conversation: random numbers, and a journal of events.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plaincall_agent::model::Message;
use plaincall_agent::plaincall::Dialect;
use plaincall_testkit::arbitrary_texts::Random;
use tokio::time::sleep;

use crate::scenarios::live::Live;

/// The state that all parts of one conversation share.
#[derive(Debug)]
pub(super) struct World {
    random: Mutex<Random>,
    dialect: Mutex<Dialect>,
    tags: Mutex<u32>,
    /// Whether nothing may take long, because real time passes.
    is_hurried: bool,
    /// Whether the model mostly delegates, with mostly wide limits, because random models seldom get that far.
    pub(super) delegates: bool,
    /// How often each call was written, by its tag.
    written: Mutex<BTreeMap<String, u32>>,
    /// How often each call was started, by its tool and its tag.
    started: Mutex<BTreeMap<(String, String), u32>>,
    /// The requests to the models by conversation: first that with the user, then those of subagents.
    asked: Mutex<Vec<Vec<Asked>>>,
    /// The number of replies of subagents that have begun.
    begun: AtomicUsize,
    /// Running tools, unfinished replies, pending gates and users.
    pub(super) tools: Live,
    pub(super) replies: Live,
    pub(super) people: Live,
}

/// The numbers of a conversation and of a request in it.
pub(super) type Place = (usize, usize);

/// A request, and the reply to it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) messages: Arc<[Message]>,
    /// The text written so far. The agent loop may have read less, if it did not read to the end.
    pub(super) text: String,
    /// Whether the question was ended from outside during the reply, so that a part of it was not read.
    pub(super) is_interrupted: bool,
    is_known: bool,
}

impl World {
    pub(super) fn new(seed: u64, is_hurried: bool) -> Arc<Self> {
        let mut random = Random::new(seed);
        let delegates = random.below(2) == 0;
        Arc::new(Self {
            random: Mutex::new(random),
            delegates,
            dialect: Mutex::new(Dialect::block()),
            tags: Mutex::default(),
            is_hurried,
            written: Mutex::default(),
            started: Mutex::default(),
            asked: Mutex::new(vec![Vec::new()]),
            begun: AtomicUsize::new(0),
            tools: Live::default(),
            replies: Live::default(),
            people: Live::default(),
        })
    }

    /// Returns the generator of later random numbers.
    pub(super) fn random(&self) -> Random {
        self.random.lock().unwrap().clone()
    }

    /// Does something with the numbers of this generator.
    pub(super) fn with<T>(&self, random: Random, work: impl FnOnce() -> T) -> T {
        let later = std::mem::replace(&mut *self.random.lock().unwrap(), random);
        let done = work();
        *self.random.lock().unwrap() = later;
        done
    }

    pub(super) fn below(&self, limit: usize) -> usize {
        self.random.lock().unwrap().below(limit)
    }

    pub(super) fn one_in(&self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A delay: mostly none, seldom a long one.
    pub(super) fn pause(&self) -> Duration {
        if self.is_hurried {
            return Duration::from_millis(self.below(3) as u64);
        }
        Duration::from_millis(match self.below(8) {
            0..4 => 0,
            4..7 => self.below(20) as u64,
            _ => self.below(2000) as u64,
        })
    }

    /// Never completes; with little time, completes after a while.
    pub(super) async fn hang(&self) {
        if self.is_hurried {
            sleep(Duration::from_millis(10)).await;
        } else {
            pending::<()>().await;
        }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect.lock().unwrap().clone()
    }

    /// The dialect of the model.
    pub(super) fn set_dialect(&self, dialect: &Dialect) {
        *self.dialect.lock().unwrap() = dialect.clone();
    }

    /// Returns a unique word.
    pub(super) fn tag(&self) -> String {
        let mut tags = self.tags.lock().unwrap();
        *tags += 1;
        format!("t{tags}")
    }

    pub(super) fn wrote(&self, tag: &str) {
        *self
            .written
            .lock()
            .unwrap()
            .entry(tag.to_owned())
            .or_default() += 1;
    }

    /// Returns the number of starts of the call, including this one.
    pub(super) fn starts(&self, name: &str, tag: &str) -> u32 {
        let mut started = self.started.lock().unwrap();
        let count = started
            .entry((name.to_owned(), tag.to_owned()))
            .or_default();
        *count += 1;
        *count
    }

    /// Asserts that no call has run more often than it was written and may be retried.
    pub(super) fn check_starts(&self, attempts: u32) {
        let written = self.written.lock().unwrap();
        for ((name, tag), count) in &*self.started.lock().unwrap() {
            // An unclosed call may swallow the text after it, and have another tag.
            let Some(&written) = written.get(tag) else {
                continue;
            };
            let most = match &**name {
                "retried" => written * attempts,
                _ => written,
            };
            assert!(
                *count <= most,
                "{name} {tag} was written {written} times and ran {count} times"
            );
        }
    }

    /// How often each call was started, by its tool and its tag.
    pub(super) fn started(&self) -> BTreeMap<(String, String), u32> {
        self.started.lock().unwrap().clone()
    }

    /// Returns the number of starts.
    pub(super) fn all_starts(&self) -> usize {
        self.started
            .lock()
            .unwrap()
            .values()
            .map(|count| *count as usize)
            .sum()
    }

    /// Records a request. The requests of a subagent's conversation share their first message, in memory too.
    pub(super) fn ask(&self, messages: Arc<[Message]>, is_nested: bool) -> Place {
        let mut asked = self.asked.lock().unwrap();
        let first = &messages[0].text;
        let is_same = |known: &Vec<Asked>| Arc::ptr_eq(&known[0].messages[0].text, first);
        let conversation = if is_nested {
            let known = asked.iter().skip(1).position(is_same);
            known.map_or(asked.len(), |place| place + 1)
        } else {
            0
        };
        if conversation == asked.len() {
            asked.push(Vec::new());
        }
        asked[conversation].push(Asked {
            messages,
            text: String::new(),
            is_interrupted: false,
            is_known: false,
        });
        (conversation, asked[conversation].len() - 1)
    }

    /// Records a further part of the reply.
    pub(super) fn write(&self, (conversation, request): Place, text: &str) {
        self.asked.lock().unwrap()[conversation][request]
            .text
            .push_str(text);
    }

    /// Records that a reply of a subagent begins.
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of replies of subagents that have begun.
    pub(super) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Records the end of a question: only the last reply can have been interrupted.
    pub(super) fn mark(&self, is_interrupted: bool) {
        let asked = &mut self.asked.lock().unwrap()[0];
        if let Some(last) = asked.last_mut().filter(|last| !last.is_known) {
            last.is_interrupted = is_interrupted;
        }
        for asked in asked {
            asked.is_known = true;
        }
    }

    /// Returns the requests of the conversation with the user.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap()[0].clone()
    }

    /// Returns the requests of each conversation of a subagent.
    pub(super) fn nested(&self) -> Vec<Vec<Asked>> {
        self.asked.lock().unwrap()[1..].to_vec()
    }
}
