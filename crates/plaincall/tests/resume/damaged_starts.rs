//! A last line that may be the start of a call of a tool that writes counts as one: nothing is started twice.

use std::fs;
use std::path::Path;

use plaincall::{Log, RunEvent, log::read_log};

use crate::resume::play::{edges, folder, play, reference, words};
use crate::resume::scene::{Reply, Scene};

/// The logs to resume: a name and the bytes of each.
type Found = (String, Vec<u8>);

/// The log up to its last line, truncated and damaged at every byte of that line.
fn found(before: &[u8], line: &[u8]) -> Vec<Found> {
    let with = |line: &[u8]| [before, line].concat();
    let mut all = Vec::new();
    for place in 0..line.len() {
        if place > 0 {
            all.push((format!("cut at {place}"), with(&line[..place])));
        }
        for bit in [0, 3, 6] {
            let mut changed = line.to_vec();
            changed[place] ^= 1 << bit;
            all.push((format!("bit {bit} of byte {place}"), with(&changed)));
        }
    }
    let zeros = vec![0; line.len()];
    let crlf = [&line[..line.len() - 1], b"\r\n"].concat();
    for (name, line) in [("zeros", &zeros), ("CR LF", &crlf)] {
        all.push((name.to_owned(), with(line)));
    }
    let halves = [&line[..20], b"\n", &line[20..]].concat();
    all.push(("two lines".to_owned(), with(&halves)));
    all
}

/// Another file with the same name: a starting process may still hold the lock of the previous one.
fn write_anew(path: &Path, log: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, log).unwrap();
}

/// Resumes the run. Returns whether the gate was asked about the call.
async fn is_asked(scene: &Scene, path: &Path, call: u32, at: &str) -> bool {
    let (seen, ends) = play(scene, Log::resume(path).unwrap(), words()[0].clone()).await;
    let is_asked = seen.settled().contains(&call);
    if is_asked {
        assert_eq!(seen.starts(call), 0, "{at}");
        assert!(ends[&call].contains(" ok found "), "{at}: {ends:?}");
    }
    is_asked
}

/// Checks every start of a call of `send` in the scene.
async fn check(scene: Scene) {
    let folder = folder();
    let (whole, _) = reference(&scene, &folder.path().join("whole")).await;
    let events = read_log(&whole).unwrap().events;
    let edges = edges(&whole);
    let path = folder.path().join("found");
    let mut count = 0;
    for (number, event) in events.iter().enumerate() {
        let RunEvent::Start(start) = event else {
            continue;
        };
        if &*start.name != "send" {
            continue;
        }
        count += 1;
        let (before, line) = whole[..edges[number]].split_at(edges[number - 1]);
        for (name, log) in found(before, line) {
            let at = format!("{name} of line {number}");
            write_anew(&path, &log);
            // The run that resumes it is killed before anyone can answer.
            drop(Log::resume(&path).unwrap());
            let log = fs::read(&path).unwrap();
            assert!(read_log(&log).unwrap().torn.is_none());
            write_anew(&path, &log);
            assert!(is_asked(&scene, &path, start.call, &at).await, "{at}");
        }
    }
    assert!(count > 0);
}

#[tokio::test(start_paused = true)]
async fn the_only_start() {
    check(Scene::new([Reply::of("a=send b=look<a")])).await;
}

#[tokio::test(start_paused = true)]
async fn starts_beside_each_other() {
    check(Scene::new([Reply::of("a=look b=send c=send<a")])).await;
}

/// A second start of the same call, after the gate decided to run it again.
#[tokio::test(start_paused = true)]
async fn a_start_again() {
    let scene = Scene::new([Reply::of("a=send")]);
    let folder = folder();
    let path = folder.path().join("log");
    let (whole, _) = reference(&scene, &folder.path().join("whole")).await;
    let start = |event: &RunEvent| matches!(event, RunEvent::Start(_));
    let events = read_log(&whole).unwrap().events;
    let first = events.iter().position(start).unwrap();
    fs::write(&path, &whole[..edges(&whole)[first]]).unwrap();
    let again = words()[2].clone();
    play(&scene, Log::resume(&path).unwrap(), again).await;
    let whole = fs::read(&path).unwrap();
    let events = read_log(&whole).unwrap().events;
    let second = events.iter().rposition(start).unwrap();
    assert!(second > first);
    let edges = edges(&whole);
    let (before, line) = whole[..edges[second]].split_at(edges[second - 1]);
    for (name, log) in found(before, line) {
        write_anew(&path, &log);
        assert!(is_asked(&scene, &path, 0, &name).await, "{name}");
    }
}

/// A line that is recognizable as another one is a torn end, and so is the start of a call that can be repeated.
#[tokio::test(start_paused = true)]
async fn other_lines_are_torn_ends() {
    let scene = Scene::new([Reply::of("a=send b=look<a c=send")]);
    let folder = folder();
    let (whole, _) = reference(&scene, &folder.path().join("whole")).await;
    let events = read_log(&whole).unwrap().events;
    let edges = edges(&whole);
    for (number, event) in events.iter().enumerate().skip(1) {
        let is_start = matches!(event, RunEvent::Start(_));
        let (before, line) = whole[..edges[number]].split_at(edges[number - 1]);
        for cut in 1..line.len() {
            let record = read_log(&[before, &line[..cut]].concat()).unwrap();
            let torn = record.torn.unwrap();
            let beginning = format!("{{\"n\":{number},\"event\":\"");
            // No other kind has the first letters of `start`.
            let is_known = cut > beginning.len();
            assert_eq!(torn.may_be_start, is_start || !is_known, "{event:?} {cut}");
        }
    }
    let reads = Scene::new([Reply::of("a=look")]);
    let mut log = reference(&reads, &folder.path().join("reads")).await.0;
    log.pop();
    assert!(!read_log(&log).unwrap().torn.unwrap().may_be_start);
}

/// If the line before a start is damaged too, the call is unknown, and the log is an error.
#[tokio::test(start_paused = true)]
async fn a_start_behind_a_damaged_line_is_damage() {
    let scene = Scene::new([Reply::of("a=send")]);
    let folder = folder();
    let (whole, _) = reference(&scene, &folder.path().join("whole")).await;
    let events = read_log(&whole).unwrap().events;
    let is_start = |event: &RunEvent| matches!(event, RunEvent::Start(_));
    let start = events.iter().position(is_start).unwrap();
    let edges = edges(&whole);
    let log = &whole[..edges[start] - 1];
    for (line, edge) in edges.iter().enumerate().take(start).skip(1) {
        for place in [edge - 1, edge - 5] {
            let mut log = log.to_vec();
            log[place] ^= 1;
            let error = read_log(&log).unwrap_err().to_string();
            assert!(error.contains("is damaged"), "{line} {place}: {error}");
        }
    }
}
