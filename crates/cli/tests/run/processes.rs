//! The processes of a tool are gone.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::run::scene::{Ended, PATIENCE, Scene, call, pause, wait_until};

/// A script that starts a process which starts another; all of them ignore the request to end. The file `processes`
/// in the directory of the tools file gets their numbers.
const STUBBORN: &str = r#"
trap '' TERM INT HUP
(
  trap '' TERM INT HUP
  (trap '' TERM INT HUP; sleep 1000; sleep 1000) &
  echo $! >> "{directory:tools}/processes"
  sleep 1000
  sleep 1000
) &
echo $$ $! >> "{directory:tools}/processes"
sleep 0.05
echo end >> "{directory:tools}/processes"
sleep 1000
sleep 1000
"#;

const LEAVER: &str = r#"
(trap '' TERM INT HUP; sleep 1000; sleep 1000) > /dev/null 2>&1 &
echo $! end >> "{directory:tools}/processes"
"#;

fn tools() -> String {
    let tool = |(name, timeout, script): (&str, &str, &str)| {
        format!(
            "[tools.{name}]\neffect = \"read\"\ntimeout = \"{timeout}\"\nshell = '''{script}'''\n"
        )
    };
    [
        ("stubborn", "300ms", STUBBORN),
        ("patient", "1000s", STUBBORN),
        ("leaver", "60s", LEAVER),
        ("flood", "60s", "seq 1 20000"),
    ]
    .map(tool)
    .concat()
        + &tool(("stubborn_for_long", "1000s", STUBBORN))
            .replace("timeout", "grace = \"1000s\"\ntimeout")
}

fn scene(tool: &str) -> Scene {
    Scene::with_tools(call(&format!("{tool}:t"), &[]), tools())
}

/// Returns the processes of the tool, once it has started all of them.
fn processes(scene: &Scene) -> Vec<Pid> {
    let file = scene.path("processes");
    wait_until("the tool has started its processes", || {
        fs::read_to_string(&file).is_ok_and(|text| text.contains("end"))
    });
    let text = fs::read_to_string(&file).unwrap();
    let numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    numbers
        .map(|number| Pid::from_raw(number).unwrap())
        .collect()
}

/// Returns whether the process runs. A zombie does not.
fn is_alive(process: Pid) -> bool {
    if test_kill_process(process).is_err() {
        return false;
    }
    let number = process.as_raw_nonzero().to_string();
    let output = Command::new("ps")
        .args(["-o", "stat=", "-p", &number])
        .output()
        .unwrap();
    let state = String::from_utf8(output.stdout).unwrap();
    !state.trim().is_empty() && !state.trim_start().starts_with('Z')
}

fn assert_all_gone(processes: &[Pid], at_least: usize) {
    assert!(processes.len() >= at_least, "{processes:?}");
    for &process in processes {
        wait_until("the process is gone", || !is_alive(process));
    }
}

fn send(child: &Child, signal: Signal) {
    let process = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(process, signal).unwrap();
}

fn start(scene: &Scene, options: &[&str]) -> Child {
    let all = [&["reply.txt", "--tools", "tools.toml"], options].concat();
    scene.command(&all).spawn().unwrap()
}

#[test]
fn nothing_is_left_after_a_timeout() {
    let scene = scene("stubborn");
    let ended = scene.run(&[]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(
        ended.stdout.contains("timed out after 300 ms"),
        "{}",
        ended.stdout
    );
    assert_all_gone(&processes(&scene), 3);
    assert!(scene.is_clean());
}

#[test]
fn nothing_is_left_of_what_a_tool_leaves_behind() {
    let scene = scene("leaver");
    let ended = scene.run(&[]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_all_gone(&processes(&scene), 1);
}

#[test]
fn signals_cancel_the_run() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        if signal == Signal::HUP && is_hangup_ignored() {
            continue;
        }
        let scene = scene("patient");
        let child = start(&scene, &[]);
        let processes = processes(&scene);
        assert!(processes.iter().all(|&process| is_alive(process)));
        send(&child, signal);
        let ended: Ended = child.wait_with_output().unwrap().into();
        assert_eq!(ended.status, Some(status), "{ended:?}");
        assert!(
            ended.stdout.contains("1 call: 1 cancelled"),
            "{}",
            ended.stdout
        );
        assert_all_gone(&processes, 3);
        assert!(scene.is_clean());
    }
}

/// Whether these tests run under `nohup` or the like.
fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1)
}

#[test]
fn a_closed_terminal_is_nothing_under_nohup() {
    if !std::path::Path::new("/proc/self/status").exists() {
        return;
    }
    let scene = Scene::with_tools(
        call("nap:n", &[]),
        "[tools.nap]\neffect = \"read\"\nshell = 'echo > \"{directory:tools}/begun\"; sleep 0.5'\n",
    );
    let script = format!(
        "trap '' HUP; exec {} run reply.txt --tools tools.toml",
        crate::run::scene::PLAINCALL
    );
    let mut command = Command::new("sh");
    let command = command.args(["-c", &script]).current_dir(scene.path(""));
    let child = command
        .env_clear()
        .envs(scene.environment())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the tool has begun", || scene.path("begun").exists());
    send(&child, Signal::HUP);
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (first, second) in [(Some(Signal::INT), Signal::INT), (None, Signal::QUIT)] {
        let scene = scene("stubborn_for_long");
        let child = start(&scene, &[]);
        let processes = processes(&scene);
        if let Some(first) = first {
            send(&child, first);
            // Two concurrent signals would count as one.
            pause(std::time::Duration::from_millis(500));
        }
        let begun = Instant::now();
        send(&child, second);
        let ended: Ended = child.wait_with_output().unwrap().into();
        // The tool would have a thousand seconds to end.
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
        let status = if first.is_some() { 130 } else { 131 };
        assert_eq!(ended.status, Some(status), "{ended:?}");
        assert_all_gone(&processes, 3);
        assert!(scene.is_clean());
    }
}

#[test]
fn a_signal_ends_the_reading_of_a_pipe() {
    let scene = scene("patient");
    let options = ["-", "--tools", "tools.toml", "--json"];
    let mut child = scene
        .command(&options)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(call("patient:t", &[]).as_bytes()).unwrap();
    let processes = processes(&scene);
    let begun = Instant::now();
    send(&child, Signal::INT);
    let ended: Ended = child.wait_with_output().unwrap().into();
    drop(stdin);
    assert!(begun.elapsed() < PATIENCE);
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(
        ended.stdout.contains(r#""status":"cancelled""#),
        "{}",
        ended.stdout
    );
    assert_all_gone(&processes, 3);
}

#[test]
fn one_signal_ends_it_while_the_output_is_not_read() {
    let scene = Scene::new(call("count:c", &[("to", "20000")]));
    let mut child = start(&scene, &["--full"]);
    let mut first = [0; 10];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    assert_one_signal_ends(child);
}

#[test]
fn one_signal_ends_a_running_call_while_the_output_is_not_read() {
    let reply = [call("flood:f", &[]), call("patient:t", &[])].concat();
    let scene = Scene::with_tools(reply, tools());
    let child = start(&scene, &["--json"]);
    let processes = processes(&scene);
    assert_one_signal_ends(child);
    assert_all_gone(&processes, 3);
}

/// Interrupts a command whose standard output is a full pipe.
fn assert_one_signal_ends(mut child: Child) {
    // The pipe is full by now, and the command blocks.
    pause(std::time::Duration::from_millis(700));
    send(&child, Signal::INT);
    wait_until("the command has ended", || {
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
