//! Verdicts, records and results to share.

use plaincall_probe::{
    Arm, Attempt, Probe, Record, Reference, Report, Settings, SharedResult, Verdict, tasks,
};
use serde_json::Value;

use crate::references::run;

async fn report(name: &str, repeat: u32) -> Report {
    let model = Reference::named(name).expect("a model");
    let arms = ["block", "emoji"].map(|name| Arm::named(name).expect("an arm"));
    run(Probe::new(model).arms(arms).repeat(repeat))
        .await
        .report()
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    "reference".clone_into(&mut settings.api);
    settings.timeout_seconds = 600;
    settings
}

fn shared(report: &Report, repeat: u32) -> SharedResult {
    SharedResult::new(report, "m", None, settings(), repeat, true)
}

#[tokio::test(start_paused = true)]
async fn few_attempts_show_no_difference() {
    let model = Reference::named("block").expect("a model");
    let two = tasks()
        .into_iter()
        .filter(|task| ["types", "pattern"].contains(&task.name.as_str()));
    let report = run(Probe::new(model).tasks(two)).await.report();
    let (native, block) = (report.arm("native").unwrap(), report.arm("block").unwrap());
    assert_eq!((native.correct, block.correct), (1, 2));
    let arm = "block".to_owned();
    assert_eq!(report.verdict, Verdict::NoDifference { arm });
}

#[tokio::test(start_paused = true)]
async fn results_are_read_back_and_checked() {
    let result = shared(&report("emoji", 3).await, 3);
    let json = result.to_json();
    assert_eq!(SharedResult::read(&json).as_ref(), Ok(&result));
    assert!(result.is_complete);
    assert_eq!(result.default_arm().map(|(_, arm)| arm.name), Some("emoji"));
    for (from, to, expected) in [
        ("\"format\": 1", "\"format\": 2", "the format is 2, not 1"),
        (
            "\"same_as\": null",
            "\"same_as\": \"block\"",
            "the verdict does not follow from the figures",
        ),
        (
            "\"correct\": 192",
            "\"correct\": 191",
            "the figures of the arm `emoji` are inconsistent",
        ),
        (
            "\"model\": \"m\"",
            "\"model\": \"m\", \"key\": \"k\"",
            "unknown field `key`",
        ),
    ] {
        let changed = json.replacen(from, to, 1);
        assert_ne!(changed, json, "{from}");
        let error = SharedResult::read(&changed).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn defaults_need_enough_attempts_and_a_difference() {
    let once = report("block", 1).await;
    assert!(shared(&once, 1).default_arm().is_none());
    let mut result = shared(&report("block", 3).await, 3);
    assert_eq!(result.default_arm().map(|(_, arm)| arm.name), Some("block"));
    let mut partial = result.clone();
    partial.is_complete = false;
    assert!(partial.default_arm().is_none());
    // Not every server accepts a grammar.
    let mut best = result.arms[0].clone();
    best.arm = "block-grammar".to_owned();
    let mut constrained = result.clone();
    constrained.arms.push(best);
    assert_eq!(
        constrained.default_arm().map(|(_, arm)| arm.name),
        Some("block")
    );
    // Both syntaxes are as good.
    let mut other = result.arms[0].clone();
    other.arm = "emoji".to_owned();
    result.arms[1] = other;
    assert!(result.default_arm().is_none());
}

#[test]
fn records_continue_only_what_they_recorded() {
    let record = Record::new("m", settings());
    let mut attempt = Attempt::default();
    attempt.arm = "block".to_owned();
    attempt.why = Some("a \"quote\"\nand a line".to_owned());
    let text = record.line() + &Record::attempt_line(&attempt);
    let (attempts, length) = record.attempts(&text).unwrap();
    assert_eq!((attempts, length), (vec![attempt], text.len()));
    // An interrupted line does not count.
    let cut = text.len() - 3;
    let (attempts, length) = record.attempts(&text[..cut]).unwrap();
    assert_eq!((attempts.len(), length), (0, record.line().len()));
    assert_eq!(record.attempts("").unwrap(), (Vec::new(), 0));
    let mut seeded = settings();
    seeded.seed = Some(1);
    for (other, expected) in [
        (Record::new("n", settings()), "another model"),
        (Record::new("m", seeded), "other settings"),
    ] {
        let error = other.attempts(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = record.attempts("{}\n").unwrap_err().to_string();
    assert!(error.contains("line 1: not a probe record"), "{error}");
    let error = record
        .attempts(&(record.line() + "x\n"))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("line 2: "), "{error}");
}

/// A server's message may contain what must stay secret.
#[test]
fn results_have_no_texts() {
    let mut report = Probe::new(Reference::named("block").expect("a model"))
        .begin()
        .report();
    for arm in &mut report.arms {
        arm.unavailable = Some("http://host/v1?key=SECRET".to_owned());
    }
    let json = shared(&report, 1).to_json();
    assert!(!json.contains("SECRET"), "{json}");
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["arms"][0]["unavailable"], "refused by the server");
}
