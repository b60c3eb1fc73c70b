//! Installs what [`dist`](crate::dist) builds as its users do, each in a clean environment, and uses it there.

mod readme;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use readme::check_commands;
pub(crate) use readme::check_example;

use crate::dist::{CHECKSUMS, Packages, RELEASE, SHA256, packages};
use crate::pool::Job;
use crate::python;
use crate::step::{Server, output, report, skipped, step};
use crate::workspace::{at, command, new_folder, read, target, write};

/// The folders of `PATH`. Cargo is in none of them; the tools of the example are.
const PATH: &str = "/usr/bin:/bin";
/// A program that uses the Python library.
pub(crate) const LIBRARY: &str = "import plaincall as pc
[call] = pc.parse('!!!GADGET_START:weather\\n!!!ARG:city\\nParis\\n!!!GADGET_END\\n').calls
assert (call.name, call.arguments) == ('weather', {'city': 'Paris'})";
/// The only model that the server offers.
const MODEL: &str = "tide-table";

/// A way to install the command. Returns the words that start it.
type Install = fn(&Packages, home: &Path) -> Result<Vec<String>, String>;

const WAYS: [(&str, Install); 4] = [
    ("archive", archive),
    ("pip", pip),
    ("uvx", uvx),
    ("pipx", pipx),
];

pub(crate) fn job() -> Job {
    Job::new("installed", "installed files", 80, test).needs(&[RELEASE])
}

fn test() -> Result<(), String> {
    let Some(packages) = packages() else {
        return skipped("installed", "it needs x86-64 Linux");
    };
    let mut check = command(SHA256);
    check.args(["--check", "--strict", CHECKSUMS]);
    check.current_dir(&packages.folder);
    step("checksums", &mut check)?;
    let installed = target().join("installed");
    for (name, install) in WAYS {
        report!("== installed: {name}");
        let begun = Instant::now();
        let home = new_folder(&installed.join(name))?;
        let start = install(packages, &home)?;
        let seconds = begun.elapsed().as_secs_f64();
        check_example(&start, &home)?;
        // `uvx` runs the command as its child, so a server would outlive it.
        if name != "uvx" {
            check_commands(&start, &home)?;
        }
        check_connection(&start, &home)?;
        report!("== installed: {name}: in {seconds:.0} s, the commands of the README run");
    }
    report!("== installed: the Python library with its command");
    library(packages, &new_folder(&installed.join("library"))?)
}

/// Installs the library with its command, and uses both.
fn library(packages: &Packages, home: &Path) -> Result<(), String> {
    let programs = pip_install("plaincall[cli]", packages, home)?;
    output(clean(programs.join("python"), home).args(["-c", LIBRARY]))?;
    check_example(&[word(&programs.join("plaincall"))], home)
}

/// Installs a package into a new environment of Python, and returns the folder of its programs.
fn pip_install(package: &str, packages: &Packages, home: &Path) -> Result<PathBuf, String> {
    let environment = home.join("environment");
    let mut make = clean(python::tools().join("python"), home);
    output(make.args(["-m", "venv"]).arg(&environment))?;
    let programs = environment.join("bin");
    let mut install = clean(programs.join("pip"), home);
    install.args(["install", "--no-index", "--find-links"]);
    output(install.arg(&packages.folder).arg(package))?;
    Ok(programs)
}

/// Returns a command that knows only this home and the programs of the system.
fn clean(program: impl AsRef<Path>, home: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env_clear().env("HOME", home).env("PATH", PATH);
    command.current_dir(home);
    command
}

fn started(start: &[String], home: &Path) -> Command {
    let mut command = clean(&start[0], home);
    command.args(&start[1..]);
    command
}

fn word(path: &Path) -> String {
    path.display().to_string()
}

/// The archive has everything, also the files of the example.
fn archive(packages: &Packages, home: &Path) -> Result<Vec<String>, String> {
    let mut unpack = clean("tar", home);
    unpack.args(["--extract", "--strip-components=1", "--file"]);
    output(unpack.arg(packages.folder.join(&packages.archive)))?;
    for file in ["man/man1/plaincall-serve.1", "THIRD-PARTY-NOTICES"] {
        read(&home.join(file))?;
    }
    output(clean("bash", home).args(["-n", "completions/plaincall.bash"]))?;
    Ok(vec![word(&home.join("plaincall"))])
}

fn pip(packages: &Packages, home: &Path) -> Result<Vec<String>, String> {
    pip_install("plaincall-cli", packages, home)
        .map(|programs| vec![word(&programs.join("plaincall"))])
}

/// `uvx` installs the wheel when it is first used.
fn uvx(packages: &Packages, home: &Path) -> Result<Vec<String>, String> {
    let options = "--quiet --offline --no-index --from plaincall-cli --find-links";
    let mut start = vec![word(&python::tools().join("uvx"))];
    start.extend(options.split(' ').map(str::to_owned));
    start.extend([word(&packages.folder), "--python".to_owned()]);
    let python = python::tools().join("python");
    start.extend([word(&python), "plaincall".to_owned()]);
    output(started(&start, home).arg("--version"))?;
    Ok(start)
}

fn pipx(packages: &Packages, home: &Path) -> Result<Vec<String>, String> {
    let source = format!("--no-index --find-links {}", word(&packages.folder));
    let mut install = clean(python::tools().join("pipx"), home);
    install.arg("install").arg(format!("--pip-args={source}"));
    output(install.arg("plaincall-cli"))?;
    Ok(vec![word(&home.join(".local/bin/plaincall"))])
}

/// Checks that the command finds `localhost` and trusts the certificates of the system, and only them: it asks an HTTPS server
/// of OpenSSL for its models.
fn check_connection(start: &[String], home: &Path) -> Result<(), String> {
    let folder = new_folder(&home.join("server"))?;
    let server = start_server(&folder)?;
    let configuration = home.join("models.toml");
    let port = &server.address;
    let model = format!("[models.local]\nurl = \"https://localhost:{port}/v1\"\n");
    write(&configuration, model)?;
    let (none, own) = (home.join("none.pem"), folder.join("certificate.pem"));
    write(&none, "")?;
    for (certificates, is_expected) in [(none, false), (own, true)] {
        let mut models = started(start, home);
        models.args(["models", "--json", "--config"]);
        models
            .arg(&configuration)
            .env("SSL_CERT_FILE", &certificates);
        let listed = models.output().map_err(at(home))?;
        let text = String::from_utf8_lossy(&listed.stdout);
        if text.contains(MODEL) != is_expected {
            let messages = String::from_utf8_lossy(&listed.stderr);
            return Err(format!("with {}: {text}{messages}", certificates.display()));
        }
    }
    Ok(())
}

/// Starts an HTTPS server with its own certificate for `localhost`, which offers one model. Its address is its port.
fn start_server(folder: &Path) -> Result<Server, String> {
    let words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
                 -addext basicConstraints=critical,CA:FALSE -keyout key.pem -out certificate.pem";
    output(command(words).current_dir(folder))?;
    let body = format!("{{\"object\":\"list\",\"data\":[{{\"id\":\"{MODEL}\"}}]}}");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    write(&folder.join("v1/models"), answer)?;
    let words = "openssl s_server -accept 0 -cert certificate.pem -key key.pem -HTTP";
    let mut server = command(words);
    server.current_dir(folder);
    Server::start(server, |line| {
        let port = line.strip_prefix("ACCEPT ")?.rsplit(':').next();
        port.filter(|port| port.parse::<u16>().is_ok())
    })
}
