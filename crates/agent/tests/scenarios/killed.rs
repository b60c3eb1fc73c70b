//! Processes that are killed while a subagent works, and resumed: completed work is not repeated, and the subagent
//! continues.

mod program;
mod random;
mod record;

use std::fs::{self, File, OpenOptions};
use std::future::pending;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::Agent;
use plaincall_agent::model::{Finish, Model, ModelRequest, Reply, Role};
use plaincall_agent::plaincall::{Dialect, Effect, Log, Tool, Toolbox};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use crate::scenarios::neutral::spelled;

const DIRECTORY: &str = "KILLED_DIRECTORY";
const SYNTAX: &str = "KILLED_SYNTAX";
/// The entry of the journal at which the process hangs; with `midway`, a model hangs when the calls of its reply have
/// ended.
const HANGS: &str = "KILLED_HANGS";
const PATIENCE: Duration = Duration::from_mins(5);

/// The replies of each agent. `main` has the tool `leader`, which has the tool `helper`.
const REPLIES: &[(&str, &[&str])] = &[
    ("main", &["@leader task=Lead.\n", "All done."]),
    (
        "leader",
        &["@note text=lead\n", "@helper task=Help.\n", "It found 3."],
    ),
    (
        "helper",
        &[
            "I note.\n@note text=1\n@note text=2\n",
            "@look text=3\nNow I have looked.\n",
            "@note text=4\n",
            "Found 3.",
        ],
    ),
];

/// The entries without a kill.
const ALL: &[&str] = &[
    "main 0",
    "leader 0",
    "note lead",
    "leader 1",
    "helper 0",
    "note 1",
    "note 2",
    "helper 1",
    "look 3",
    "helper 2",
    "note 4",
    "helper 3",
    "leader 2",
    "main 1",
];

/// The entries at which the process hangs until it is killed, and the differences from [`ALL`].
const CASES: &[(&[&str], &[&str])] = &[
    // A tool that reads runs again, a request is sent again.
    (&["look 3"], &["+look 3"]),
    (&["helper 2"], &["+helper 2"]),
    (&["leader 0"], &["+leader 0"]),
    (&["main 1"], &["+main 1"]),
    // A tool that writes does not run again.
    (&["note 2"], &[]),
    (&["note lead"], &[]),
    // The calls of a reply have run, so it is not requested again.
    (&["helper 1 midway"], &[]),
    (&["leader 1 midway"], &[]),
    (&["look 3", "helper 2", "note 4"], &["+look 3", "+helper 2"]),
    (
        &["helper 0", "helper 1 midway", "leader 2"],
        &["+helper 0", "+leader 2"],
    ),
];

/// The actions of the models and tools of a process.
struct Stage {
    directory: PathBuf,
    hangs: String,
}

impl Stage {
    /// Writes an entry, and hangs if it is the selected one.
    async fn happens(&self, what: &str) {
        let journal = self.directory.join("journal");
        let mut journal = OpenOptions::new().append(true).open(journal).unwrap();
        writeln!(journal, "{what}").unwrap();
        if self.hangs == what {
            if what.starts_with("look") {
                // A tool that reads does not wait for the log.
                self.logged(&["\"event\":\"start\"", "\"name\":\"look\""])
                    .await;
            }
            self.hang().await;
        }
    }

    /// Waits for a line of the log with these parts.
    async fn logged(&self, parts: &[&str]) {
        let log = self.directory.join("log");
        let is_there = |line: &str| parts.iter().all(|part| line.contains(part));
        while !fs::read_to_string(&log).unwrap().lines().any(is_there) {
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn hang(&self) {
        File::create(self.directory.join("hangs")).unwrap();
        pending::<()>().await;
    }
}

/// A model that returns one of its replies, selected by the number of the previous ones.
struct Numbered {
    name: &'static str,
    replies: Vec<String>,
    stage: Arc<Stage>,
}

impl Model for Numbered {
    fn name(&self) -> &str {
        self.name
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        let replies = request.messages.iter();
        let number = replies.filter(|one| one.role == Role::Assistant).count();
        let text = self.replies[number].clone();
        let what = format!("{} {number}", self.name);
        let stage = Arc::clone(&self.stage);
        Reply::new(move |out| async move {
            stage.happens(&what).await;
            out.text(text).await;
            if stage.hangs == format!("{what} midway") {
                // Until the results that the reply leads to are in the log.
                let tool = if what == "helper 1" { "look" } else { "helper" };
                stage
                    .logged(&[&format!("\"name\":\"{tool}\",\"status\":\"ok\"")])
                    .await;
                stage.hang().await;
            }
            Ok(Finish::stop())
        })
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Line {
    text: String,
}

fn agent(stage: &Arc<Stage>, dialect: &Dialect) -> Agent {
    let tool = |name: &'static str| {
        let stage = Arc::clone(stage);
        Tool::new(name, move |line: Line, _| {
            let stage = Arc::clone(&stage);
            async move {
                stage.happens(&format!("{name} {}", line.text)).await;
                Ok("it is done".to_owned())
            }
        })
    };
    let (note, look) = (tool("note"), tool("look").effect(Effect::Read));
    let mut below: Option<(&str, Agent)> = None;
    for &(name, replies) in REPLIES.iter().rev() {
        let tools = match name {
            "helper" => vec![note.clone(), look.clone()],
            "leader" => vec![note.clone()],
            _ => Vec::new(),
        };
        let build = |replies: Vec<String>| {
            let stage = Arc::clone(stage);
            let model = Numbered {
                name,
                replies,
                stage,
            };
            let agent = Agent::builder(model).dialect(dialect.clone()).allow_all();
            let agent = agent.tools(Toolbox::new(tools.clone()).unwrap());
            let agent = match &below {
                Some((name, own)) => agent.subagent(*name, "Works.", own.clone()),
                None => agent,
            };
            agent.build().unwrap()
        };
        // The definitions of its tools decide how its calls are written.
        let known = build(Vec::new()).tools().clone();
        let replies = replies.iter().map(|text| spelled(text, dialect, &known));
        let agent = build(replies.collect());
        below = Some((name, agent));
    }
    below.unwrap().1
}

/// The process that is killed.
#[test]
#[ignore = "runs in a process of its own"]
#[allow(clippy::disallowed_methods, reason = "the settings of the process")]
fn process() {
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    let dialect = match &*std::env::var(SYNTAX).unwrap() {
        "emoji" => Dialect::emoji(),
        _ => Dialect::block(),
    };
    let hangs = std::env::var(HANGS).unwrap();
    let log = directory.join("log");
    let answer = directory.join("answer");
    let stage = Arc::new(Stage { directory, hangs });
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let is_new = !log.exists();
        let log = Log::open(&log).unwrap();
        let agent = agent(&stage, &dialect);
        let mut talk = agent.session(log, serde_json::Value::Null).await.unwrap();
        let answered = if is_new {
            talk.ask("Go.").await.unwrap()
        } else {
            talk.resume().answer().await.unwrap()
        };
        talk.close().await.unwrap();
        fs::write(answer, answered.text).unwrap();
    });
}

/// Runs a test of this program as a process, and kills it `delay` after the file `hangs` appears. Returns whether it was
/// killed.
async fn run(test: &str, directory: &Path, settings: &[(&str, &str)], delay: Duration) -> bool {
    let hangs = directory.join("hangs");
    let _ = fs::remove_file(&hangs);
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored"])
        .env(DIRECTORY, directory)
        .envs(settings.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = async {
        while process.try_wait().unwrap().is_none() {
            if hangs.exists() {
                sleep(delay).await;
                process.kill().unwrap();
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    let is_over = timeout(PATIENCE, ended).await.is_ok();
    if !is_over {
        process.kill().unwrap();
    }
    let output = process.wait_with_output().unwrap();
    let is_killed = !output.status.success();
    let journal = fs::read_to_string(directory.join("journal")).unwrap();
    assert!(
        is_over && (!is_killed || hangs.exists() && output.status.code().is_none()),
        "{settings:?}: {}\n{}\n{journal}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    is_killed
}

#[tokio::test]
async fn killed_subagents_continue() {
    for syntax in ["block", "emoji"] {
        for (hangs, differs) in CASES {
            let directory = tempfile::tempdir().unwrap();
            let journal = directory.path().join("journal");
            File::create(&journal).unwrap();
            let run = async |hangs| {
                let settings = [(SYNTAX, syntax), (HANGS, hangs)];
                let test = "scenarios::killed::process";
                run(test, directory.path(), &settings, Duration::ZERO).await
            };
            for hangs in *hangs {
                assert!(run(hangs).await, "{syntax}: {hangs:?}");
            }
            assert!(!run("").await, "{syntax}: {hangs:?}");
            let happened = fs::read_to_string(&journal).unwrap();
            let mut happened: Vec<&str> = happened.lines().collect();
            happened.sort_unstable();
            let more = differs.iter().filter_map(|one| one.strip_prefix('+'));
            let mut expected: Vec<&str> = ALL.iter().copied().chain(more).collect();
            expected.sort_unstable();
            assert_eq!(happened, expected, "{syntax}: {hangs:?}");
            let answer = fs::read_to_string(directory.path().join("answer")).unwrap();
            assert_eq!(answer, "All done.", "{syntax}: {hangs:?}");
        }
    }
}
