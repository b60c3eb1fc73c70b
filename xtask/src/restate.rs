//! Durable runs on a real Restate server, unmodified: `integrations/restate`, which the build of the workspace skips.
//!
//! `integrations/restate/server` pins the version of the server. This needs Node and a network.

use std::path::PathBuf;

use crate::pool::Job;
use crate::step::step;
use crate::workspace::{at, cargo};
use crate::{node, suites};

const PACKAGE: &str = "plaincall-restate";
const SERVER: &str = "@restatedev";
/// The tests that other commands run: a measurement, and the process of a worker.
const SKIPPED: [&str; 4] = ["--skip", "cost::", "--skip", "workers::"];

/// Returns the job that runs the tests.
pub(crate) fn job() -> Job {
    let job = Job::new("restate", "durable runs", 120, || {
        let mut tests = suites::program_of_rest("restate")?;
        tests
            .args(["--include-ignored", "--test-threads=2"])
            .args(SKIPPED);
        tests.env("PLAINCALL", suites::plaincall()?);
        step("tests with Restate", tests.env("RESTATE_SERVER", server()?))
    });
    let needs = [node::PACKAGES, suites::BUILD, suites::SECOND_BUILD];
    job.needs(&needs).gigabytes(3).least_tests(10)
}

/// Returns the job that kills workers and servers. `RESTATE_CASES` is the number of conversations.
pub(crate) fn kills() -> Job {
    measured("kills", "killed::")
}

/// Returns the job that measures what a call costs.
pub(crate) fn costs() -> Job {
    measured("costs", "cost::")
}

fn measured(name: &'static str, tests: &'static str) -> Job {
    let job = Job::new(name, name, 300, move || {
        let run = ["test", "--package", PACKAGE, "--test", "tests", "--release"];
        let mut run = cargo(&run);
        run.args(["--", tests, "--ignored", "--nocapture"]);
        step(name, run.env("RESTATE_SERVER", server()?))
    });
    job.needs(&[node::PACKAGES]).compiles()
}

/// Returns the program in the package for this machine.
fn server() -> Result<PathBuf, String> {
    let packages = node::packages()?.join(SERVER);
    let found = std::fs::read_dir(&packages).map_err(at(&packages))?;
    let programs = found
        .flatten()
        .map(|entry| entry.path().join("bin/restate-server"));
    let mut programs = programs.filter(|path| path.is_file());
    programs.next().ok_or_else(|| {
        format!(
            "no Restate server for this machine in {}",
            packages.display()
        )
    })
}
