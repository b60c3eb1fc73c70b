//! Workers as processes of their own, so that they can be killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plaincall::Policy;
use plaincall::durable::DurableSettings;
use plaincall_restate::Worker;
use tokio::net::TcpSocket;

use crate::server::dependent;
use crate::tools::{self, Change};

const PORT: &str = "WORKER_PORT";
const EFFECTS: &str = "WORKER_EFFECTS";
const CHANGE: &str = "WORKER_CHANGE";

/// By how many seconds the clocks of workers are wrong. Each delay takes longer by as much as the clock of its worker is ahead.
const OFFSETS: [i32; 3] = [0, 20, -200];
/// The time limit of a turn. A conversation that moves to another worker may have less, by the difference of their clocks.
const TURN: Duration = Duration::from_mins(10);

/// Adds `CLOCK_OFFSET` seconds to the time of day of a program.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int end = real(clock, now);
    const char *offset = getenv("CLOCK_OFFSET");
    if (clock == CLOCK_REALTIME && offset) now->tv_sec += atol(offset);
    return end;
}
"#;

/// Builds the shim in a directory, where it works.
pub(crate) fn shim(directory: &Path) -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let (source, library) = (directory.join("shim.c"), directory.join("shim.so"));
    std::fs::write(&source, SHIM).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source]);
    assert!(compiler.arg("-ldl").status().unwrap().success());
    Some(library)
}

/// The processes that share a port.
pub(crate) struct Workers {
    pub(crate) port: u16,
    /// Makes their clocks wrong.
    shim: Option<PathBuf>,
    directory: PathBuf,
    change: Change,
    processes: Vec<Option<Child>>,
}

impl Workers {
    pub(crate) fn start(count: usize, port: u16, directory: &Path, change: Change) -> Self {
        Self::with_shim(None, count, port, directory, change)
    }

    pub(crate) fn with_shim(
        shim: Option<PathBuf>,
        count: usize,
        port: u16,
        directory: &Path,
        change: Change,
    ) -> Self {
        let mut workers = Self {
            port,
            shim,
            directory: directory.to_owned(),
            change,
            processes: Vec::new(),
        };
        for _ in 0..count {
            workers.processes.push(None);
        }
        for number in 0..count {
            workers.start_again(number);
        }
        workers
    }

    pub(crate) fn start_again(&mut self, number: usize) {
        let log = crate::server::appended(&self.directory.join("workers.log"));
        let mut command = dependent(std::env::current_exe().unwrap());
        command.args(["workers::process", "--exact", "--ignored", "--nocapture"]);
        command.env(PORT, self.port.to_string());
        command.env(EFFECTS, &self.directory);
        command.env(CHANGE, format!("{:?}", self.change));
        if let Some(shim) = &self.shim {
            let offset = OFFSETS[number % OFFSETS.len()];
            command.env("LD_PRELOAD", shim);
            command.env("CLOCK_OFFSET", offset.to_string());
        }
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap());
        self.processes[number] = Some(command.stderr(log).spawn().unwrap());
    }

    /// Kills a worker with SIGKILL.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(mut process) = self.processes[number].take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.processes.len()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for number in 0..self.count() {
            self.kill(number);
        }
    }
}

/// Returns the settings of the workers, and of the runs that they are compared with.
pub(crate) fn settings(effects: &Path, change: Change) -> DurableSettings {
    let settings = DurableSettings::new(tools::toolbox(effects, change)).unwrap();
    let policy = Policy::default().turn_timeout(Some(TURN));
    settings.policy(policy).rules(tools::rules())
}

/// The process of a worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in a process of its own"]
async fn process() {
    let variable = |name| std::env::var(name).unwrap();
    let effects = PathBuf::from(variable(EFFECTS));
    let change = Change::from_name(&variable(CHANGE));
    let worker = Worker::new(settings(&effects, change)).unwrap();
    let mut worker = worker.model(crate::graphs::model()).unwrap();
    if change != Change::Settings {
        worker = worker.approve_all();
    }
    if change == Change::Version {
        worker = worker.release("next");
    }
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseport(true).unwrap();
    let address = format!("127.0.0.1:{}", variable(PORT));
    socket.bind(address.parse().unwrap()).unwrap();
    let listener = socket.listen(1024).unwrap();
    worker.serve(listener, std::future::pending()).await;
}
