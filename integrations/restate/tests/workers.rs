//! Workers as processes of their own, so that they can be killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use plaincall::durable::DurableSettings;
use plaincall_restate::Worker;
use tokio::net::TcpSocket;

use crate::server::dependent;
use crate::tools::{self, Change};

const PORT: &str = "WORKER_PORT";
const EFFECTS: &str = "WORKER_EFFECTS";
const CHANGE: &str = "WORKER_CHANGE";

/// The processes that share a port.
pub(crate) struct Workers {
    pub(crate) port: u16,
    directory: PathBuf,
    change: Change,
    processes: Vec<Option<Child>>,
}

impl Workers {
    pub(crate) fn start(count: usize, port: u16, directory: &Path, change: Change) -> Self {
        let mut workers = Self {
            port,
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
    settings.rules(tools::rules())
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
