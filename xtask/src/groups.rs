//! The groups of checks: their jobs, what runs each time, and what runs in turn.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::pool::{self, Job, Skipping};
use crate::step::step;
use crate::workspace::{CHECKED, cargo, root, target};
use crate::{
    browser, clients, cross_builds, deny, deployment, dist, engines, fuzz, inspector, installed,
    interface, node, notices, npm, other_targets, python, python_package, repository_lints,
    restate, site, suites, wasm, windows,
};

/// The groups that a nightly run has. Each `.ci/run` has one of them, by the date.
const NIGHTLY: [&str; 14] = [
    "real-model",
    "engine-plugins",
    "other-pythons",
    "spark",
    "newest-clients",
    "bundlers",
    "other-coding-agents",
    "all-engine-texts",
    "tool-parsers",
    "all-splits",
    "long-soak",
    "fuzz",
    "windows",
    "cross-builds",
];

/// Returns the questions and arms of the nightly group: of the model, and of a client of the gateway.
fn real_model() -> Vec<Vec<String>> {
    let gateway = dist::command();
    let gateway = gateway.to_string_lossy();
    let own = ["--arms", "block both required", "emoji both required"];
    let through = ["--gateway", &*gateway, "--arms"];
    let through = [
        &through[..],
        &["native rules required", "native rules auto"],
    ]
    .concat();
    let with_count = |words: &[&str]| {
        let words = ["--count", "12"].iter().chain(words);
        words.map(|word| (*word).to_owned()).collect()
    };
    vec![with_count(&own), with_count(&through)]
}

/// Runs formatting, lints and the ordinary tests: what needs only Rust.
pub(crate) fn run_ordinary() -> Result<(), String> {
    let mut jobs = first();
    jobs.extend(suites::jobs(false));
    pool::run(pool::selected(jobs, &["lints", "tests"])?, None)
}

/// Runs these groups of `all`, or all but the nightly ones and the nightly one of today.
pub(crate) fn run(groups: &[&str], minutes: Option<u64>) -> Result<(), String> {
    let jobs = all(CHECKED);
    let mut wanted = groups.to_vec();
    if wanted.is_empty() {
        wanted = jobs.iter().map(|job| job.group).collect();
        wanted.retain(|group| !NIGHTLY.contains(group));
        wanted.push(of_today());
        println!("== the nightly group of today: {}", of_today());
    }
    let jobs = pool::selected(jobs, &wanted)?;
    let limit = minutes.map(|minutes| Duration::from_secs(60 * minutes));
    pool::run(jobs, limit)
}

/// Runs these groups, or all nightly ones.
pub(crate) fn run_nightly(groups: &[&str]) -> Result<(), String> {
    run(if groups.is_empty() { &NIGHTLY } else { groups }, None)
}

/// Runs a job with what it needs, built with a profile.
pub(crate) fn run_job(mut job: Job, profile: &'static str) -> Result<(), String> {
    let group = job.group;
    let mut jobs = all(profile);
    jobs.retain(|other| other.group != group);
    // Figures are for people, and `promises` reads them.
    job.shows_log = true;
    jobs.push(job);
    pool::run(pool::selected(jobs, &[group])?, None)
}

/// The nightly group of today.
fn of_today() -> &'static str {
    let days = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = days.map_or(0, |time| time.as_secs() / (24 * 60 * 60));
    NIGHTLY[usize::try_from(days).unwrap_or_default() % NIGHTLY.len()]
}

fn first() -> Vec<Job> {
    let format = || step("format", &mut cargo("fmt --all --check"));
    let lints = || repository_lints::check(&root());
    let notices = || notices::check(&root());
    vec![
        Job::new("lints", "format", 900, format),
        Job::new("lints", "repository lints", 900, lints),
        Job::new("lints", "notices", 900, notices),
    ]
}

fn all(profile: &'static str) -> Vec<Job> {
    let name = "examples of tables and Restate";
    let examples = Job::new("features", name, 30, suites::examples_of_rest);
    let decisions = Job::new("features", "decisions of tables", 30, || {
        let mut decisions = suites::program_of_rest("decisions")?;
        step("decisions of tables", &mut decisions)
    });
    let documents = || {
        let mut documents = cargo("doc --workspace --no-deps --all-features");
        documents.env("RUSTDOCFLAGS", "--deny warnings");
        step("documents", &mut documents)
    };
    let mut jobs = first();
    jobs.extend(suites::jobs(true));
    jobs.extend([
        python::job(),
        node::job(),
        wasm::job(),
        dist::job(profile),
        Job::new("documents", "documents", 60, documents).compiles(),
        interface::job(),
        Job::new("features", "features", 60, features).compiles(),
        examples.needs(&[suites::SECOND_BUILD]).compiles(),
        decisions.needs(&[suites::SECOND_BUILD]),
        deny::job(),
        site::job(),
        installed::job(),
        restate::job(),
        deployment::job(),
        soak("soak", "24".to_owned()),
        soak("long-soak", "300".to_owned()),
        fuzz::job(),
        windows::job(),
        cross_builds::job(),
        python_package::model("real-model", real_model),
    ]);
    let more = [
        inspector::jobs(),
        browser::jobs(),
        clients::jobs(),
        clients::coding_agents(),
        engines::jobs(),
        python_package::jobs(),
        npm::jobs(),
        other_targets::jobs(),
    ];
    jobs.extend(more.into_iter().flatten());
    for job in jobs.iter_mut().filter(|job| NIGHTLY.contains(&job.group)) {
        job.skipping = Skipping::Fails;
    }
    jobs
}

/// Returns the job that runs the gateway with a faulty model server for some seconds. Nothing may grow.
pub(crate) fn soak(group: &'static str, seconds: String) -> Job {
    let job = Job::new(group, group, 30, move || {
        let mut soak = std::process::Command::new(target().join(suites::BENCH));
        step(group, soak.arg("soak").arg(dist::command()).arg(seconds))
    });
    job.needs(&[dist::RELEASE, suites::BUILD])
}

/// Checks crates with each feature alone and with none.
fn features() -> Result<(), String> {
    let agent = ["", "http", "mcp", "builtin"].map(|feature| ("plaincall-agent", feature));
    let runs = ["", "tokio"].map(|feature| ("plaincall", feature));
    for (package, feature) in runs.into_iter().chain(agent) {
        let mut check = cargo("clippy --lib --no-default-features --package");
        check.args([package, "--features", feature]);
        check.args(["--", "--deny", "warnings"]);
        step(&format!("{package} with only `{feature}`"), &mut check)?;
    }
    Ok(())
}
