//! Durable runs on a real Restate server, unmodified: `integrations/restate`, which the build of the workspace skips.
//!
//! `integrations/restate/server` pins the version of the server. This needs Node and a network.

use std::path::PathBuf;

use crate::pool::Job;
use crate::step::step;
use crate::workspace::{cargo, entries};
use crate::{node, suites};

const SERVER: &str = "@restatedev";

pub(crate) fn job() -> Job {
    let job = Job::new("restate", "durable runs", 120, || {
        let mut tests = suites::program_of_rest("restate")?;
        tests.args(["--include-ignored", "--test-threads=2"]);
        tests.args(["--skip", "cost::", "--skip", "workers::"]);
        tests.env("PLAINCALL", suites::plaincall());
        step("tests with Restate", tests.env("RESTATE_SERVER", server()?))
    });
    let needs = [node::PACKAGES, suites::BUILD, suites::SECOND_BUILD];
    job.needs(&needs).gigabytes(3).least_tests(10)
}

/// Returns the job that runs tests which measure: `killed::` kills workers and servers under `RESTATE_CASES` conversations, `cost::`
/// measures what a call costs.
pub(crate) fn measured(name: &'static str, tests: &'static str) -> Job {
    let job = Job::new(name, name, 300, move || {
        let mut run = cargo("test --package plaincall-restate --test tests --release --");
        run.args([tests, "--ignored", "--nocapture"]);
        step(name, run.env("RESTATE_SERVER", server()?))
    });
    job.needs(&[node::PACKAGES]).compiles()
}

fn server() -> Result<PathBuf, String> {
    let packages = node::packages().join(SERVER);
    let programs = entries(&packages)?.into_iter();
    let mut programs = programs.map(|package| package.join("bin/restate-server"));
    let program = programs.find(|path| path.is_file());
    program.ok_or_else(|| format!("{}: no server for this machine", packages.display()))
}
