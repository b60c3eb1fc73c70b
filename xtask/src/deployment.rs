//! The example deployment: its files are valid, and gateways behind nginx restart under load without a failed request.
//!
//! The compose file is checked without a container runtime: against the schema of the format, and what it names must exist.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::pool::Job;
use crate::step::{output, skipped, step};
use crate::workspace::{no_problems, read, root, target};
use crate::{browser, debian, dist, python, suites};

const EXAMPLE: &str = "examples/gateway";
const COMPOSE: &str = "compose.yaml";
const GATEWAYS: [&str; 2] = ["gateway-1", "gateway-2"];
/// Converts YAML to JSON.
const CONVERT: &str = "import json, sys; from ruamel.yaml import YAML; json.dump(YAML(typ='safe').load(open(sys.argv[1])), sys.stdout)";

/// Returns the job that checks the files, and restarts gateways under load.
pub(crate) fn job() -> Job {
    let job = Job::new("deployment", "deployment", 40, check);
    // Both install Debian's packages.
    job.needs(&[dist::RELEASE, suites::BUILD, python::UV, browser::CHROMIUM])
}

fn check() -> Result<(), String> {
    let root = root();
    let example = root.join(EXAMPLE);
    let program = dist::command();
    check_compose(&root, &example, &program)?;
    let missing = "it is not installed and Debian's packages cannot be reached";
    match debian::program("prometheus", "promtool") {
        Some(promtool) => {
            let mut check = Command::new(promtool);
            check.args(["check", "config"]);
            step("promtool", check.arg(example.join("prometheus.yml")))?;
        }
        None => skipped("promtool", missing)?,
    }
    let Some(nginx) = debian::program("nginx", "nginx") else {
        return skipped("drain", missing);
    };
    let mut drain = Command::new(target().join(suites::BENCH));
    drain.arg("drain").arg(program).arg(nginx).arg(example);
    step("drain", &mut drain)
}

fn check_compose(root: &Path, example: &Path, program: &Path) -> Result<(), String> {
    let requirements = root.join("xtask/deployment/requirements.txt");
    let tools = python::install(&requirements, &target().join("deployment"))?;
    let file = example.join(COMPOSE);
    let mut schema = Command::new(tools.join("check-jsonschema"));
    schema.args(["--builtin-schema", "vendor.compose-spec"]);
    step("compose file", schema.arg(&file))?;
    let mut convert = Command::new(tools.join("python"));
    let compose = output(convert.args(["-c", CONVERT]).arg(&file))?;
    let compose: Value = serde_json::from_str(&compose).map_err(|error| error.to_string())?;
    let help = output(Command::new(program).args(["serve", "--help"]))?;
    let manifest = read(&root.join("Cargo.toml"))?;
    let mut lines = manifest.lines();
    let rust = lines.find_map(|line| line.strip_prefix("rust-version = "));
    let rust = rust.unwrap_or_default().trim_matches('"');
    let mut problems = Vec::new();
    for name in GATEWAYS {
        let gateway = &compose["services"][name];
        let build = |key| gateway["build"][key].as_str().unwrap_or_default();
        let docker = example.join(build("context")).join(build("dockerfile"));
        let image = fs::read_to_string(&docker).unwrap_or_default();
        if !image.contains(&format!("FROM rust:{rust}-")) {
            problems.push(format!("{} does not use Rust {rust}", docker.display()));
        }
        for option in texts(&gateway["command"]).filter(|word| word.starts_with("--")) {
            let name = option.split('=').next().unwrap_or_default();
            let is_known = help.split(|letter: char| letter != '-' && !letter.is_ascii_lowercase());
            if !is_known.into_iter().any(|word| word == name) {
                problems.push(format!("{COMPOSE}: `plaincall serve` has no option {name}"));
            }
        }
        for file in texts(&gateway["command"]).filter_map(|word| word.split_once("/run/secrets/")) {
            if compose["secrets"][file.1]["file"].is_null() {
                problems.push(format!("{COMPOSE}: there is no secret {}", file.1));
            }
        }
    }
    let services = compose["services"].as_object().into_iter().flatten();
    for (name, service) in services {
        for volume in texts(&service["volumes"]) {
            let source = volume.split(':').next().unwrap_or_default();
            let is_known = if source.starts_with('.') {
                example.join(source).is_file()
            } else {
                compose["volumes"].get(source).is_some()
            };
            if !is_known {
                problems.push(format!("{COMPOSE}: {name}: there is no {source}"));
            }
        }
    }
    // The addresses of one machine become those of the containers.
    let nginx = texts(&compose["services"]["nginx"]["command"]).collect::<String>();
    let example = read(&example.join("nginx.conf"))?;
    let lines = example.lines();
    let lines = lines.filter(|line| !line.trim_start().starts_with('#'));
    let words = lines.flat_map(|line| line.split([' ', ';']));
    for address in words.filter(|word| word.starts_with("127.0.0.1:")) {
        if !nginx.contains(&format!("{address}/")) {
            let problem = "of nginx.conf is not replaced";
            problems.push(format!("{COMPOSE}: {address} {problem}"));
        }
    }
    no_problems("the example of a deployment is wrong:", &problems)
}

fn texts(values: &Value) -> impl Iterator<Item = &str> {
    let values = values.as_array().into_iter().flatten();
    values.filter_map(Value::as_str)
}
