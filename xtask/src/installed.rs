//! Installs what [`dist`](crate::dist) builds as its users do, each in a clean environment, and uses it there.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::dist::{CHECKSUMS, Packages, RELEASE, VERSION, packages};
use crate::pool::Job;
use crate::python;
use crate::step::{output, report, step};
use crate::workspace::{at, new_folder, read, root, target};

/// The folders of `PATH`. Cargo is in none of them; the tools of the example are.
const PATH: &str = "/usr/bin:/bin";
/// The start of the README's first example, and the end of its output.
const EXAMPLE: &str = "cargo run -- ";
const RESULTS: &str = "10 calls: 10 ok";
/// The files of the example.
const FILES: &str = "examples/harbour";
/// A program that uses the Python library.
const LIBRARY: &str = "import plaincall as pc
[call] = pc.parse('!!!GADGET_START:weather\\n!!!ARG:city\\nParis\\n!!!GADGET_END\\n').calls
assert (call.name, call.arguments) == ('weather', {'city': 'Paris'})";
/// The time limit for the start of a server.
const PATIENCE: Duration = Duration::from_secs(30);

/// A way to install the command. Returns the words that start it.
type Install = fn(&Packages, tools: &Path, home: &Path) -> Result<Vec<String>, String>;

const WAYS: [(&str, Install); 4] = [
    ("archive", archive),
    ("pip", pip),
    ("uvx", uvx),
    ("pipx", pipx),
];

/// Returns the job that installs each file, and runs the first example.
pub(crate) fn job() -> Job {
    let job = Job::new("installed", "installed files", 80, test);
    job.needs(&[RELEASE])
}

fn test() -> Result<(), String> {
    let Some(packages) = packages() else {
        report!("== installed: SKIPPED, it needs x86-64 Linux");
        return Ok(());
    };
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", CHECKSUMS]);
    step("checksums", check.current_dir(&packages.folder))?;
    let installed = target().join("installed");
    let tools = python::tools()?;
    for (name, install) in WAYS {
        report!("== installed: {name}");
        let begun = Instant::now();
        let home = new_folder(&installed.join(name))?;
        let start = install(packages, &tools, &home)?;
        let seconds = begun.elapsed().as_secs_f64();
        check_example(&start, &home)?;
        check_connection(&start, &home)?;
        report!("== installed: {name}: in {seconds:.0} s, the first example runs");
    }
    report!("== installed: the Python library with its command");
    library(packages, &tools, &new_folder(&installed.join("library"))?)
}

/// Installs the library with its command, and uses both.
fn library(packages: &Packages, tools: &Path, home: &Path) -> Result<(), String> {
    let environment = environment(tools, home)?;
    let mut install = clean(environment.join("bin/pip"), home);
    install.args(["install", "--no-index", "--find-links"]);
    output(install.arg(&packages.folder).arg("plaincall[cli]"))?;
    let mut python = clean(environment.join("bin/python"), home);
    output(python.args(["-c", LIBRARY]))?;
    check_example(&[word(&environment.join("bin/plaincall"))], home)
}

/// Creates an environment of Python, and returns its folder.
fn environment(tools: &Path, home: &Path) -> Result<PathBuf, String> {
    let environment = home.join("environment");
    let mut make = clean(tools.join("python"), home);
    output(make.args(["-m", "venv"]).arg(&environment))?;
    Ok(environment)
}

/// Returns a command that knows only this home and the programs of the system.
fn clean(program: impl AsRef<Path>, home: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    command
        .env_clear()
        .env("HOME", home)
        .env("PATH", PATH)
        .current_dir(home);
    command
}

/// Returns the command that `start` begins.
fn started(start: &[String], home: &Path) -> Result<Command, String> {
    let (program, words) = start.split_first().ok_or("no program")?;
    let mut command = clean(program, home);
    command.args(words);
    Ok(command)
}

fn word(path: &Path) -> String {
    path.display().to_string()
}

/// The archive has everything, also the files of the example.
fn archive(packages: &Packages, _: &Path, home: &Path) -> Result<Vec<String>, String> {
    let archive = packages.folder.join(&packages.archive);
    let mut unpack = clean("tar", home);
    unpack.args(["--extract", "--strip-components=1", "--file"]);
    output(unpack.arg(archive))?;
    for file in ["man/man1/plaincall-serve.1", "THIRD-PARTY-NOTICES"] {
        let path = home.join(file);
        fs::metadata(&path).map_err(at(&path))?;
    }
    let mut bash = clean("bash", home);
    output(bash.args(["-n", "completions/plaincall.bash"]))?;
    Ok(vec![word(&home.join("plaincall"))])
}

fn pip(packages: &Packages, tools: &Path, home: &Path) -> Result<Vec<String>, String> {
    let environment = environment(tools, home)?;
    let mut install = clean(environment.join("bin/pip"), home);
    install.args(["install", "--no-index", "--find-links"]);
    output(install.arg(&packages.folder).arg("plaincall-cli"))?;
    Ok(vec![word(&environment.join("bin/plaincall"))])
}

/// `uvx` installs the wheel when it is first used.
fn uvx(packages: &Packages, tools: &Path, home: &Path) -> Result<Vec<String>, String> {
    let options = "--quiet --offline --no-index --from plaincall-cli --find-links";
    let mut start = vec![word(&tools.join("uvx"))];
    start.extend(options.split(' ').map(str::to_owned));
    start.extend([word(&packages.folder), "--python".to_owned()]);
    start.extend([word(&tools.join("python")), "plaincall".to_owned()]);
    output(started(&start, home)?.arg("--version"))?;
    Ok(start)
}

fn pipx(packages: &Packages, tools: &Path, home: &Path) -> Result<Vec<String>, String> {
    let source = format!("--no-index --find-links {}", word(&packages.folder));
    let mut install = clean(tools.join("pipx"), home);
    install.arg("install").arg(format!("--pip-args={source}"));
    output(install.arg("plaincall-cli"))?;
    Ok(vec![word(&home.join(".local/bin/plaincall"))])
}

/// Runs the first example of the README.
fn check_example(start: &[String], home: &Path) -> Result<(), String> {
    let version = output(started(start, home)?.arg("--version"))?;
    if version.trim() != format!("plaincall {VERSION}") {
        return Err(format!("the version is {version}"));
    }
    let files = home.join(FILES);
    if !files.exists() {
        let parent = files.parent().unwrap_or(home);
        fs::create_dir_all(parent).map_err(at(parent))?;
        let mut copy = Command::new("cp");
        copy.arg("--recursive").arg(root().join(FILES));
        output(copy.arg(parent))?;
    }
    let readme = read(&root().join("README.md"))?;
    let example = readme.lines().find_map(|line| line.strip_prefix(EXAMPLE));
    let example = example.ok_or("README.md has no first example")?;
    let results = output(started(start, home)?.args(example.split(' ')))?;
    if results.contains(RESULTS) {
        return Ok(());
    }
    Err(format!("the first example printed: {results}"))
}

/// Checks that the command finds `localhost` and trusts the certificates of the system, and only them: it asks an HTTPS server
/// of OpenSSL for its models.
fn check_connection(start: &[String], home: &Path) -> Result<(), String> {
    let server = Server::start(&new_folder(&home.join("server"))?)?;
    let configuration = home.join("models.toml");
    let model = format!(
        "[models.local]\nurl = \"https://localhost:{}/v1\"\n",
        server.port
    );
    fs::write(&configuration, model).map_err(at(&configuration))?;
    for (certificates, is_expected) in
        [(home.join("none.pem"), false), (server.certificate(), true)]
    {
        fs::write(home.join("none.pem"), "").map_err(at(home))?;
        let mut models = started(start, home)?;
        models
            .args(["models", "--json", "--config"])
            .arg(&configuration);
        let listed = models.env("SSL_CERT_FILE", &certificates).output();
        let listed = listed.map_err(at(home))?;
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        if text.contains(Server::MODEL) != is_expected {
            let messages = String::from_utf8_lossy(&listed.stderr);
            return Err(format!("with {}: {text}{messages}", certificates.display()));
        }
    }
    Ok(())
}

/// An HTTPS server with its own certificate for `localhost`. Dropping it ends it.
struct Server {
    folder: PathBuf,
    process: Child,
    port: u16,
}

impl Server {
    /// The only model that it offers.
    const MODEL: &str = "tide-table";

    fn start(folder: &Path) -> Result<Self, String> {
        let words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
                     -addext basicConstraints=critical,CA:FALSE -keyout key.pem -out certificate.pem";
        output(
            Command::new("openssl")
                .args(words.split_whitespace())
                .current_dir(folder),
        )?;
        let body = format!(
            "{{\"object\":\"list\",\"data\":[{{\"id\":\"{}\"}}]}}",
            Self::MODEL
        );
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let pages = new_folder(&folder.join("v1"))?;
        fs::write(pages.join("models"), answer).map_err(at(&pages))?;
        let words = "s_server -accept 0 -cert certificate.pem -key key.pem -HTTP";
        let mut process = Command::new("openssl")
            .args(words.split(' '))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("openssl: {error}"))?;
        let messages = process.stdout.take().ok_or("no messages")?;
        let mut server = Self {
            folder: folder.to_owned(),
            process,
            port: 0,
        };
        let (sender, port) = mpsc::channel();
        std::thread::spawn(move || {
            let mut messages = BufReader::new(messages);
            let lines = messages.by_ref().lines().map_while(Result::ok);
            let mut ports = lines.filter_map(|line| {
                line.strip_prefix("ACCEPT ")?
                    .rsplit(':')
                    .next()?
                    .parse()
                    .ok()
            });
            let _ = sender.send(ports.next());
            // Read to the end, so that the server can always write.
            let _ = messages.read_to_end(&mut Vec::new());
        });
        let port = port.recv_timeout(PATIENCE).ok().flatten();
        server.port = port.ok_or("openssl s_server does not start")?;
        Ok(server)
    }

    fn certificate(&self) -> PathBuf {
        self.folder.join("certificate.pem")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
