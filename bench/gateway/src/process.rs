//! The measured servers. Each is a separate process.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

/// The maximum time until a server listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server that is stopped when this value is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts a program on a free port, with arguments that are created from its address, and waits until it listens.
    pub(crate) fn start(
        program: impl Into<OsString>,
        arguments: impl FnOnce(SocketAddr) -> Vec<String>,
    ) -> Result<Self, String> {
        Self::start_at(program, free_address()?, arguments)
    }

    /// Starts a gateway in front of a model server, with a configuration.
    pub(crate) fn gateway(
        program: impl Into<OsString>,
        upstream: &str,
        configuration: &str,
    ) -> Result<Self, String> {
        let name = format!("plaincall-bench-{}.toml", std::process::id());
        let file = std::env::temp_dir().join(name);
        let written = fs::write(&file, configuration);
        written.map_err(|error| format!("{}: {error}", file.display()))?;
        let path = file.display().to_string();
        let gateway = Self::start(program, |address| {
            let address = address.to_string();
            let words = ["serve", "--upstream", upstream, "--listen", &address];
            let words = words.into_iter().chain(["--config", &path]);
            words.map(str::to_owned).collect()
        });
        // It was read before the gateway listened.
        let _ = fs::remove_file(&file);
        gateway
    }

    /// Starts a program on this address.
    #[allow(
        clippy::disallowed_methods,
        reason = "nothing that is measured runs while servers start"
    )]
    pub(crate) fn start_at(
        program: impl Into<OsString>,
        address: SocketAddr,
        arguments: impl FnOnce(SocketAddr) -> Vec<String>,
    ) -> Result<Self, String> {
        let program = program.into();
        let name = program.display().to_string();
        let child = Command::new(program)
            .args(arguments(address))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // The gateway writes a log line for each request; it is discarded.
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let mut server = Self { child, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("{name} has ended at once: {status}"));
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("{name} does not listen on {address}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Sends SIGTERM, and waits for the end.
    pub(crate) async fn terminate(&mut self, patience: Duration) -> Result<ExitStatus, String> {
        let failed = |error: &dyn Display| format!("{}: {error}", self.address);
        let sent = kill_process(Pid::from_child(&self.child), Signal::TERM);
        sent.map_err(|error| failed(&error))?;
        let begun = Instant::now();
        loop {
            let status = self.child.try_wait();
            if let Some(status) = status.map_err(|error| failed(&error))? {
                return Ok(status);
            }
            if begun.elapsed() > patience {
                return Err(failed(&"it does not end"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the current and the maximum resident memory, in bytes.
    pub(crate) fn memory(&self) -> (u64, u64) {
        (self.status("VmRSS:"), self.status("VmHWM:"))
    }

    /// Returns the part of the resident memory that is pages of files: mostly the program itself, whose size depends on how it was
    /// built.
    pub(crate) fn file_pages(&self) -> u64 {
        self.status("RssFile:")
    }

    /// Returns a number of bytes from the status of the process.
    fn status(&self, name: &str) -> u64 {
        let file = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        let kilobytes = number.and_then(|number| number.parse::<u64>().ok());
        kilobytes.unwrap_or_default() << 10
    }

    /// Returns the processor time of its threads.
    pub(crate) fn used(&self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let nanoseconds = threads.into_iter().flatten().flatten().map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let first = text.split_whitespace().next();
            first
                .and_then(|first| first.parse::<u64>().ok())
                .unwrap_or_default()
        });
        Duration::from_nanos(nanoseconds.sum())
    }

    /// Returns the number of open files, including connections.
    pub(crate) fn files(&self) -> usize {
        let files = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        files.map_or(0, Iterator::count)
    }
}

/// Returns an address of this machine that no server uses.
pub(crate) fn free_address() -> Result<SocketAddr, String> {
    let free = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    free.local_addr().map_err(|error| error.to_string())
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Raises the limit of open files of this process and its children as far as possible. Returns the limit.
pub(crate) fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
