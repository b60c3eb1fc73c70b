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
use crate::{browser, dist, python, suites, tools};

const EXAMPLE: &str = "examples/gateway";
const COMPOSE: &str = "compose.yaml";
const GATEWAYS: [&str; 2] = ["gateway-1", "gateway-2"];
/// Converts YAML to JSON.
const CONVERT: &str = "import json, sys; from ruamel.yaml import YAML; json.dump(YAML(typ='safe').load(open(sys.argv[1])), sys.stdout)";

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
    match tools::of_debian("prometheus", "promtool") {
        Some(promtool) => {
            let mut check = Command::new(promtool);
            check.args(["check", "config"]);
            step("promtool", check.arg(example.join("prometheus.yml")))?;
        }
        None => skipped("promtool", missing)?,
    }
    let Some(nginx) = tools::of_debian("nginx", "nginx") else {
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
    let rust = manifest.split("\nrust-version = \"").nth(1);
    let rust = rust.unwrap_or_default().split('"').next();
    let rust = rust.unwrap_or_default();
    let file = example.join("gateway.toml");
    let mut shown = Command::new(program);
    shown.args(["config", "--no-project", "--config"]);
    step("configuration", shown.arg(&file))?;
    let configuration = read(&file)?;
    let mut problems = Vec::new();
    let mut check = |is_right: bool, problem: String| {
        problems.extend((!is_right).then(|| format!("{COMPOSE}: {problem}")));
    };
    for secret in configuration.split("/run/secrets/").skip(1) {
        let secret = secret.split('"').next().unwrap_or_default();
        let is_known = !compose["secrets"][secret]["file"].is_null();
        check(is_known, format!("there is no secret {secret}"));
    }
    for name in GATEWAYS {
        let gateway = &compose["services"][name];
        let build = |key| gateway["build"][key].as_str().unwrap_or_default();
        let docker = example.join(build("context")).join(build("dockerfile"));
        let image = fs::read_to_string(&docker).unwrap_or_default();
        let uses_rust = image.contains(&format!("FROM rust:{rust}-"));
        let docker = docker.display();
        check(uses_rust, format!("{docker} does not use Rust {rust}"));
        for word in texts(&gateway["command"]) {
            let option = word.split('=').next().unwrap_or_default();
            let mut known =
                help.split(|letter: char| letter != '-' && !letter.is_ascii_lowercase());
            let is_known = !option.starts_with("--") || known.any(|word| word == option);
            check(is_known, format!("`serve` has no option {option}"));
        }
    }
    for (name, service) in compose["services"].as_object().into_iter().flatten() {
        for volume in texts(&service["volumes"]) {
            let source = volume.split(':').next().unwrap_or_default();
            let is_file = source.starts_with('.') && example.join(source).is_file();
            let is_known = is_file || compose["volumes"].get(source).is_some();
            check(is_known, format!("{name}: there is no {source}"));
        }
    }
    // The addresses of one machine become those of the containers.
    let nginx = texts(&compose["services"]["nginx"]["command"]).collect::<String>();
    let example = read(&example.join("nginx.conf"))?;
    let lines = example.lines();
    let lines = lines.filter(|line| !line.trim_start().starts_with('#'));
    let words = lines.flat_map(|line| line.split([' ', ';']));
    for address in words.filter(|word| word.starts_with("127.0.0.1:")) {
        let is_replaced = nginx.contains(&format!("{address}/"));
        check(is_replaced, format!("{address} is not replaced"));
    }
    no_problems("the example of a deployment is wrong:", &problems)
}

fn texts(values: &Value) -> impl Iterator<Item = &str> {
    let values = values.as_array().into_iter().flatten();
    values.filter_map(Value::as_str)
}
