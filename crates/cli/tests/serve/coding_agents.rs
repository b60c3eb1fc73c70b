//! Published coding agents, unmodified, change a file through the gateway. `cargo xtask coding-agents` installs them and runs
//! these tests, in a network that contains only this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plaincall_testkit::model_server::{Asked, ModelServer, Script};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::Serving;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coding-agents.md");
/// The address of the gateway in the guide, and the variable of `serve -- COMMAND` that a configuration may have instead.
const ADDRESS: &str = "127.0.0.1:8080";
const VARIABLE: &str = "OPENAI_BASE_URL";
const TASK: &str = "Correct the spelling in greeting.txt.";
const ANSWER: &str = "The greeting is spelled correctly.";
/// The time limit for one agent, in seconds.
const DEADLINE: &str = "120";

/// A coding agent, and the replies of a model to it. `WORK` is its working directory.
struct CodingAgent {
    /// Its heading in the guide.
    heading: &'static str,
    /// The file below the home directory that gets the text of the guide. Without one, the text is a shell script.
    file: Option<&'static str>,
    /// The words that start it, after the folder of the packages.
    start: &'static [&'static str],
    /// A valid call that reads the file, an invalid call, and the repaired call. The last call changes the file.
    replies: &'static [&'static str],
}

/// Returns the text of the first code block below a heading of the guide.
fn configuration(heading: &str, address: &str) -> String {
    let guide = fs::read_to_string(GUIDE).unwrap();
    let section = guide.split_once(&format!("\n## {heading}\n")).unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let block = section.split("\n```").nth(1).unwrap();
    let text = block.split_once('\n').unwrap().1;
    let names_gateway = text.contains(ADDRESS) || text.contains(VARIABLE);
    assert!(names_gateway, "{heading}: {text}");
    text.replace(ADDRESS, address)
}

/// Answers requests that are not part of the conversation: the list of models, and titles.
fn aside(asked: &Asked) -> Option<Script> {
    if asked.head.starts_with("get ") {
        return Some(Script::json(200, &json!({"object": "list", "data": []})));
    }
    let has_tools = asked.json()["messages"]
        .to_string()
        .contains("# Your tools");
    (!has_tools).then(|| Script::stream(&["A greeting"], "stop"))
}

fn empty_folder(path: &Path) {
    let _ = fs::remove_dir_all(path);
    fs::create_dir_all(path).unwrap();
}

impl CodingAgent {
    #[allow(clippy::disallowed_methods, reason = "a test")]
    fn run(&self, program: &Path) {
        let name = self.heading.replace(' ', "-");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("coding-agents");
        let folder = folder.join(name);
        let (home, work) = (folder.join("home"), folder.join("work"));
        empty_folder(&home);
        empty_folder(&work);
        // Its own repository, so that no agent reads files of this one.
        let git = Command::new("git")
            .args(["init", "--quiet"])
            .arg(&work)
            .status();
        assert!(git.unwrap().success());
        let greeting = work.join("greeting.txt");
        fs::write(&greeting, "Helo world\n").unwrap();

        let work_path = work.to_str().unwrap();
        let mut scripts: Vec<Script> = self
            .replies
            .iter()
            .map(|text| Script::stream(&[&text.replace("WORK", work_path)], "stop"))
            .collect();
        // Some agents ask again after the answer, for example for notes to remember.
        scripts.extend([(); 2].map(|()| Script::stream(&[ANSWER], "stop")));
        let runtime = Runtime::new().unwrap();
        let model = runtime.block_on(ModelServer::start_with(scripts, aside));
        let serving = Serving::start(&model.url(), &[], &[]);

        let text = configuration(self.heading, &serving.address);
        let script = match self.file {
            Some(file) => {
                let file = home.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
                String::new()
            }
            None => text,
        };
        let mut agent = Command::new("timeout");
        agent.args(["--kill-after=5", DEADLINE, "sh", "-ec"]);
        agent.arg(script + "\nexec \"$@\"").arg("sh").arg(program);
        agent.args(self.start).arg(TASK).current_dir(&work);
        agent.env_clear().env("HOME", &home);
        agent.env(VARIABLE, format!("http://{}/v1", serving.address));
        agent.env("PATH", std::env::var_os("PATH").unwrap());
        let output = agent.stdin(Stdio::null()).output().unwrap();
        let output = format!(
            "{}: {}\n{}{}",
            self.heading,
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );

        let seen = model.seen();
        // All messages after the last reply of the model: Claude Code adds one after the task.
        let last = |position: usize| {
            let request = seen.requests.get(position).expect(&output).json();
            let messages = request["messages"].as_array().unwrap().iter().rev();
            let last = messages.take_while(|message| message["role"] != "assistant");
            last.map(|message| message["content"].to_string())
                .collect::<String>()
        };
        assert_eq!(
            fs::read_to_string(&greeting).unwrap(),
            "Hello world\n",
            "{output}"
        );
        assert!(output.contains(ANSWER), "{output}");
        assert!(last(0).contains(TASK), "{}", last(0));
        assert!(last(1).contains("Helo world"), "{}", last(1));
        assert!(last(2).contains("This call was not run"), "{}", last(2));
        assert!(last(3).contains("Result 1 of 1"), "{}", last(3));
        let rounds = serving.end().into_iter().filter_map(|line| {
            let line: Value = serde_json::from_str(&line).unwrap();
            line["repair_rounds"].as_u64()
        });
        assert_eq!(rounds.sum::<u64>(), 1);
    }
}

/// Returns the path of a program in the folder of the packages.
#[allow(clippy::disallowed_methods, reason = "a test")]
fn installed(program: &str) -> PathBuf {
    let folder = std::env::var_os("CODING_AGENTS").expect("run `cargo xtask coding-agents`");
    Path::new(&folder).join(program)
}

#[test]
#[ignore = "needs a published coding agent: `cargo xtask coding-agents`"]
fn opencode() {
    CodingAgent {
        heading: "opencode",
        file: Some(".config/opencode/opencode.json"),
        start: &["run"],
        replies: &[
            "I look.\n!!!GADGET_START:read\n!!!ARG:filePath\nWORK/greeting.txt\n!!!GADGET_END\n",
            "!!!GADGET_START:edit\n!!!ARG:filePath\nWORK/greeting.txt\n!!!ARG:oldString\nHelo\n!!!ARG:newText\nHello\n!!!GADGET_END\n",
            "!!!GADGET_START:edit\n!!!ARG:filePath\nWORK/greeting.txt\n!!!ARG:oldString\nHelo\n!!!ARG:newString\nHello\n!!!GADGET_END\n",
        ],
    }
    .run(&installed("opencode-linux-x64-baseline/bin/opencode"));
}

#[test]
#[ignore = "needs a published coding agent: `cargo xtask coding-agents`"]
fn qwen_code() {
    CodingAgent {
        heading: "qwen-code",
        file: None,
        start: &["--yolo", "--prompt"],
        replies: &[
            "I look.\n!!!GADGET_START:read_file\n!!!ARG:file_path\nWORK/greeting.txt\n!!!GADGET_END\n",
            // Its prompt shows a call of this tool, with other values.
            "!!!GADGET_START:edit\n!!!ARG:file_path\nWORK/greeting.txt\n!!!ARG:old_string\nHelo\n!!!ARG:new_text\nHello\n!!!GADGET_END\n",
            "!!!GADGET_START:edit\n!!!ARG:file_path\nWORK/greeting.txt\n!!!ARG:old_string\nHelo\n!!!ARG:new_string\nHello\n!!!GADGET_END\n",
        ],
    }
    .run(&installed(".bin/qwen"));
}

#[test]
#[ignore = "needs a published coding agent: `cargo xtask coding-agents`"]
fn codex_cli() {
    CodingAgent {
        heading: "Codex CLI",
        file: Some(".codex/config.toml"),
        start: &["exec", "--dangerously-bypass-approvals-and-sandbox"],
        replies: &[
            "I look.\n!!!GADGET_START:exec_command\n!!!ARG:cmd\ncat greeting.txt\n!!!GADGET_END\n",
            "!!!GADGET_START:exec_command\n!!!ARG:command\napply_patch\n!!!GADGET_END\n",
            "!!!GADGET_START:exec_command\n!!!ARG:cmd\napply_patch <<'EOF'\n*** Begin Patch\n*** Update File: greeting.txt\n@@\n-Helo world\n+Hello world\n*** End Patch\nEOF\n!!!GADGET_END\n",
        ],
    }
    .run(&installed(".bin/codex"));
}

#[test]
#[ignore = "only with the program that you name: `cargo xtask coding-agents --claude-code PROGRAM`"]
#[allow(clippy::disallowed_methods, reason = "a test")]
fn claude_code() {
    CodingAgent {
        heading: "Claude Code",
        file: None,
        start: &["--permission-mode", "acceptEdits", "--print"],
        replies: &[
            "I look.\n!!!GADGET_START:Read\n!!!ARG:file_path\nWORK/greeting.txt\n!!!GADGET_END\n",
            "!!!GADGET_START:Edit\n!!!ARG:file_path\nWORK/greeting.txt\n!!!ARG:old_string\nHelo\n!!!ARG:new_text\nHello\n!!!GADGET_END\n",
            "!!!GADGET_START:Edit\n!!!ARG:file_path\nWORK/greeting.txt\n!!!ARG:old_string\nHelo\n!!!ARG:new_string\nHello\n!!!GADGET_END\n",
        ],
    }
    .run(Path::new(&std::env::var_os("CLAUDE_CODE").unwrap()));
}
