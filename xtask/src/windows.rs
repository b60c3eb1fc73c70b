//! The command for Windows, built here and run with Wine: what it prints, what it refuses, and which processes it ends.
//!
//! It needs mingw's compiler and Wine, which root installs from Debian's packages. `docs/installing.md` states what Wine does not show.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::cross_builds::wheel;
use crate::dist::maturin;
use crate::other_targets::{WINDOWS, is_installed};
use crate::pool::Job;
use crate::step::{copy, report, run, skipped, step};
use crate::workspace::{at, command, linting_cargo, new_folder, no_problems, root, target, write};
use crate::{clients, python, tools};

/// The first bytes of a program or a library of Windows.
const PROGRAM: &str = "4d5a";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";
const WINE: &str = "wine";
const PACKAGES: &str = "gcc-mingw-w64-x86-64 wine wine64";

const HARBOUR: &str = "examples/harbour";
const RUN: &str = "run examples/harbour/reply.txt --tools examples/harbour/windows.toml";
/// The reply of calls of `xtask/windows/tools.toml`.
const REPLY: &str = "reply.txt";
const RUN_TOOLS: &str = "run reply.txt --tools tools.toml --yes";
/// The time in which a tool has started its process, and that after which a process that was not ended has written its file.
const SOON: Duration = Duration::from_secs(2);
const LATER: Duration = Duration::from_secs(5);
/// The file and the input of a conversation, and what it prints.
const ANSWERS: &str = "\"It is warm.\"\n\"It is cold.\"\n";
const CHAT: &str = "chat --model replay:answers.jsonl";
const ASKED: &str = "First?\nSecond?\n";
const ANSWERED: &str = "It is warm.\nIt is cold.\n";
/// A page with the place for the input of `inspect`.
const PAGE: &str = "<script type=\"application/json\" id=\"given\">null</script>";
/// The longest line in a terminal of 80 columns.
const COLUMNS: usize = 80;

/// The output of commands. An argument has no blanks; `status` is the exit status.
const PRINTED: [(&str, i32, &[&str]); 16] = [
    ("--version", 0, &["plaincall 0."]),
    (
        "run examples/harbour/reply.txt --tools examples/harbour/windows.toml --log run.log",
        0,
        &[
            "10 calls: 10 ok",
            "08:00  Ardea   draws 3.74 m in 5.85 m of water: 2.11 m under the keel",
            "10:00  Sterna  draws 3.15 m in 3.71 m of water: 0.56 m under the keel",
        ],
    ),
    ("show run.log", 0, &["pilot_order", "10 calls: 10 ok"]),
    ("show run.log --html run.html", 0, &[]),
    (
        "parse examples/harbour/reply.txt",
        0,
        &["\"gadgetName\":\"pilot_order\""],
    ),
    (
        "check examples/harbour/reply.txt",
        0,
        &["10 calls, no errors"],
    ),
    (
        "inspect examples/harbour/reply.txt --page page.html --html -",
        0,
        &["<script type", "\"text\":\"Good morning."],
    ),
    (
        "inspect --page page.html",
        0,
        &[r"AppData\Local\plaincall\inspector.html"],
    ),
    ("models", 0, &[]),
    ("probe reference:block --quick", 0, &["block"]),
    ("config", 0, &[r"AppData\Roaming\plaincall\config.toml"]),
    (
        "ask --model replay:examples/gateway/replies.jsonl --session harbour First?",
        0,
        &["It is warm in Paris"],
    ),
    (
        "ask --model replay:examples/gateway/replies.jsonl --continue Second?",
        0,
        &["1 turn"],
    ),
    ("show harbour", 0, &["First?", "Second?"]),
    (
        "run examples/harbour/reply.txt --tools examples/harbour/tools.toml",
        1,
        &["scripts for `sh -c` need Unix", "tools.toml has 6 errors"],
    ),
    (
        "ask --model replay:examples/gateway/replies.jsonl --builtin . What?",
        2,
        &["the built-in tools (`--builtin`, `builtin.directory`) need Unix"],
    ),
];

/// Folders of Python packages, the tags of their wheels, and a file of each that is a program or a library of Windows.
const WHEELS: [(&str, &str, &str); 2] = [
    (".", "py3-none-win_amd64", ".data/scripts/plaincall.exe"),
    ("python", "cp310-abi3-win_amd64", "plaincall/_plaincall.pyd"),
];

pub(crate) fn job() -> Job {
    Job::new("windows", "Windows with Wine", 300, test)
        .needs(&[python::UV])
        .gigabytes(3)
        .compiles()
}

fn test() -> Result<(), String> {
    let has_tools = || {
        [COMPILER, WINE]
            .iter()
            .all(|name| tools::of_system(name).is_some())
    };
    if !has_tools() {
        let _ = tools::install(PACKAGES);
    }
    if !has_tools() {
        return skipped("Windows", "apt-get cannot install mingw and Wine");
    }
    if !is_installed(WINDOWS) {
        return Ok(());
    }
    let windows = Windows::build()?;
    windows.check_printed()?;
    windows.check_processes()?;
    windows.check_interrupts()?;
    windows.check_terminal()?;
    windows.check_chat()?;
    clients::with_openai(&|| windows.program())?;
    for (package, tag, content) in WHEELS {
        wheel(&mut maturin(WINDOWS)?, package, tag, content, PROGRAM)?;
    }
    Ok(())
}

/// A folder with the command, the example, and Wine's files.
struct Windows {
    folder: PathBuf,
}

impl Windows {
    fn build() -> Result<Self, String> {
        let folder = new_folder(&target().join("windows"))?;
        let mut build = linting_cargo("build --package plaincall-cli --target");
        build.arg(WINDOWS).env("CARGO_PROFILE_DEV_DEBUG", "false");
        step("build for Windows", &mut build)?;
        copy(&target().join(WINDOWS).join("debug/plaincall.exe"), &folder)?;
        copy(&root().join("examples"), &folder)?;
        copy(&root().join("xtask/windows/tools.toml"), &folder)?;
        write(&folder.join("answers.jsonl"), ANSWERS)?;
        write(&folder.join("page.html"), PAGE)?;
        let harbour = folder.join(HARBOUR);
        let mut rustc = command("rustc --edition=2024 -o harbour.exe harbour.rs --target");
        step("tools", rustc.arg(WINDOWS).current_dir(&harbour))?;
        let library = "bcryptprimitives.dll";
        let mut compile = command(COMPILER);
        compile.args(["-shared", "-s", "-o", library]);
        compile.arg(root().join("xtask/windows/bcryptprimitives.c"));
        step(library, compile.arg("-ladvapi32").current_dir(&folder))?;
        copy(&folder.join(library), &harbour)?;
        Ok(Self { folder })
    }

    /// Returns the command, which runs in the folder.
    fn program(&self) -> Command {
        let mut wine = command(WINE);
        wine.arg(self.folder.join("plaincall.exe"));
        self.configure(&mut wine);
        wine
    }

    fn configure(&self, command: &mut Command) {
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.env("WINEPREFIX", self.folder.join("wine"));
        // No messages of Wine, no colours, because its console does not interpret escape sequences, and no browser.
        command.envs([("WINEDEBUG", "-all"), ("NO_COLOR", "1"), ("TERM", "dumb")]);
        command.env("BROWSER", "none");
    }

    /// Returns the exit status and what was printed.
    fn printed(&self, arguments: &str) -> Result<(Option<i32>, String), String> {
        let mut program = self.program();
        let output = program.args(arguments.split(' ')).output();
        let output = output.map_err(at(Path::new(WINE)))?;
        let text = [output.stdout, output.stderr].concat();
        Ok((
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        ))
    }

    fn check_printed(&self) -> Result<(), String> {
        let mut problems = Vec::new();
        for (arguments, status, words) in PRINTED {
            report!("== plaincall {arguments}");
            let (found, text) = self.printed(arguments)?;
            let missing = words.iter().find(|words| !text.contains(**words));
            if found != Some(status) || missing.is_some() {
                problems.push(format!(
                    "`{arguments}`: status {found:?}, without {missing:?}:\n{text}"
                ));
            }
        }
        no_problems("Under Wine, the command differs:", &problems)
    }

    /// Writes a reply with one call of these tools for each ship.
    fn call(&self, calls: &[(&str, &str)]) -> Result<(), String> {
        let calls = calls.iter().map(|(tool, ship)| {
            format!("!!!GADGET_START:{tool}\n!!!ARG:ship\n{ship}\n!!!GADGET_END\n")
        });
        write(&self.folder.join(REPLY), calls.collect::<String>())
    }

    /// Returns whether a tool has written its file.
    fn has_written(&self, ship: &str) -> bool {
        self.folder.join(format!("{ship}.manifest")).exists()
    }

    /// A tool that is stopped, or that exits, ends with the processes that it has started.
    fn check_processes(&self) -> Result<(), String> {
        self.call(&[
            ("whole", "Whole"),
            ("late", "Late"),
            ("left", "Left"),
            ("long", "0"),
        ])?;
        let (status, text) = self.printed(RUN_TOOLS)?;
        sleep(LATER);
        let written = ["Whole", "Late", "Left"].map(|ship| self.has_written(ship));
        let is_reported = text.contains("timed out after 2 s");
        if status == Some(1) && is_reported && written == [true, false, false] {
            return Ok(());
        }
        Err(format!(
            "a tool was not ended: status {status:?}, written {written:?}:\n{text}"
        ))
    }

    /// The tools end with the command, whether Ctrl-C or the system ends it.
    fn check_interrupts(&self) -> Result<(), String> {
        for (signal, status) in [("INT", Some(130)), ("KILL", None)] {
            self.call(&[("slow", "Slow")])?;
            let mut running = self.until_started()?;
            sleep(SOON);
            let id = running.id().to_string();
            run(command(&format!("kill -{signal}")).arg(id), false)?;
            let ended = running.wait().map_err(at(Path::new(WINE)))?;
            sleep(LATER);
            if ended.code() != status || self.has_written("Slow") {
                return Err(format!("after SIG{signal}: {ended}, or its tool still ran"));
            }
            report!("== after SIG{signal}: {ended}");
        }
        Ok(())
    }

    /// Starts the tools of the reply.
    fn until_started(&self) -> Result<Child, String> {
        let mut program = self.program();
        program.args(RUN_TOOLS.split(' ')).stderr(Stdio::piped());
        let mut running = program.spawn().map_err(at(Path::new(WINE)))?;
        let lines = running.stderr.take().map(BufReader::new);
        let mut lines = lines
            .into_iter()
            .flat_map(|lines| lines.lines().map_while(Result::ok));
        let is_started = lines.any(|line| line.contains("started"));
        // Read to the end, so that the command can always write.
        std::thread::spawn(move || lines.count());
        if is_started {
            return Ok(running);
        }
        Err("the tool was not started".to_owned())
    }

    /// Returns the command in a terminal of 80 columns.
    fn in_terminal(&self, arguments: &str) -> Command {
        let command_line =
            format!("stty columns {COLUMNS} rows 24; exec wine plaincall.exe {arguments}");
        let mut script = command("timeout 60 script --quiet --return --command");
        script.arg(command_line).arg("/dev/null");
        self.configure(&mut script);
        script
    }

    /// Lines fit into a terminal, and are wrapped between words.
    fn check_terminal(&self) -> Result<(), String> {
        report!("== a terminal");
        let text = run(&mut self.in_terminal(RUN), true)?.stdout;
        let text = without_escapes(&String::from_utf8_lossy(&text));
        let words = [
            "started before the reply was complete - sequential\n",
            "\ntime: ",
        ];
        let longest = text.lines().map(|line| line.chars().count()).max();
        if words.iter().all(|words| text.contains(words)) && longest <= Some(COLUMNS) {
            return Ok(());
        }
        Err(format!(
            "in {COLUMNS} columns, {longest:?} were used:\n{text}"
        ))
    }

    /// In a pipe, only answers are printed. In a terminal, each question is typed after a prompt, and Ctrl-D ends the conversation.
    fn check_chat(&self) -> Result<(), String> {
        report!("== a conversation");
        let failed = |error| format!("chat: {error}");
        let start = |command: &mut Command| {
            let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut chat = piped.spawn().map_err(failed)?;
            let stdin = chat.stdin.take().ok_or("chat has no input")?;
            Ok::<_, String>((chat, stdin))
        };
        let (chat, mut stdin) = start(self.program().args(CHAT.split(' ')))?;
        stdin.write_all(ASKED.as_bytes()).map_err(failed)?;
        drop(stdin);
        let answers = chat.wait_with_output().map_err(failed)?;
        if !answers.status.success() || answers.stdout != ANSWERED.as_bytes() {
            return Err(format!("in a pipe, chat printed {answers:?}"));
        }
        let (mut chat, mut stdin) = start(self.in_terminal(CHAT).env_remove("TERM"))?;
        let mut stdout = chat.stdout.take().ok_or("chat has no output")?;
        let mut text = String::new();
        for typed in ASKED.lines().chain(["\u{4}"]) {
            let before = text.len();
            while !text[before..].contains('>') {
                let mut bytes = [0; 256];
                let count = stdout.read(&mut bytes).map_err(failed)?;
                if count == 0 {
                    return Err(format!("in a terminal, chat ended:\n{text}"));
                }
                text.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
            // It reads keys soon after it has shown a prompt.
            sleep(SOON);
            write!(stdin, "{typed}\r").map_err(failed)?;
        }
        let status = chat.wait().map_err(failed)?;
        let is_shown = |answer| without_escapes(&text).contains(answer);
        if status.success() && ANSWERED.lines().all(is_shown) {
            return Ok(());
        }
        Err(format!("in a terminal, chat ended with {status}:\n{text}"))
    }
}

/// Returns a text without escape sequences and carriage returns.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| letter.is_ascii_alphabetic());
        plain.push_str(end.and_then(|end| part.get(end + 1..)).unwrap_or_default());
    }
    plain.replace('\r', "")
}
