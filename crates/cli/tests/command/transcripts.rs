//! `examples/transcripts/`: hand-written replies, with the output of `parse` and `check` for each.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use snapbox::{Data, assert_data_eq};

use crate::command::process::run;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/transcripts")
}

/// The names of the transcripts, and the option for the dialect of each.
fn transcripts() -> Vec<(String, Vec<String>)> {
    let mut names: Vec<String> = fs::read_dir(directory())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".txt").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 20, "the transcripts were not found");
    names
        .into_iter()
        .map(|name| {
            let dialect = fs::read_to_string(directory().join(format!("{name}.dialect")));
            let dialect = dialect.unwrap_or_default();
            (name, vec!["--dialect".to_owned(), dialect])
        })
        .collect()
}

fn parsed(name: &str, options: &[String], more: &[&str]) -> Value {
    let file = format!("{name}.txt");
    let mut arguments = vec!["parse", &file];
    arguments.extend(options.iter().map(String::as_str));
    arguments.extend(more);
    let ran = run(&directory(), &arguments, b"");
    assert_eq!((ran.status, ran.stderr().as_str()), (Some(0), ""), "{name}");
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// JSON with a line for each key, and for each span.
fn pretty(document: &Value) -> String {
    let mut text = String::new();
    let mut in_span = false;
    for line in serde_json::to_string_pretty(document).unwrap().lines() {
        in_span |= line.ends_with("\"span\": [");
        let is_inside = in_span && !line.ends_with('[');
        text.push_str(if is_inside { line.trim_start() } else { line });
        in_span &= !line.trim_start().starts_with(']');
        text.push_str(match (in_span, line.ends_with(',')) {
            (true, true) => " ",
            (true, false) => "",
            (false, _) => "\n",
        });
    }
    text
}

#[test]
fn results_are_as_expected() {
    for (name, options) in transcripts() {
        let document = parsed(&name, &options, &[]);
        let pretty = pretty(&document);
        let expected = directory().join(format!("expected/{name}.json"));
        assert_data_eq!(pretty, Data::read_from(&expected, None).raw());

        let file = format!("{name}.txt");
        let mut arguments = vec!["check", &file];
        arguments.extend(options.iter().map(String::as_str));
        let ran = run(&directory(), &arguments, b"");
        assert_eq!(ran.stderr(), "", "{name}");
        let report = format!("{}exit status: {}\n", ran.stdout(), ran.status.unwrap());
        let expected = directory().join(format!("expected/{name}.check.txt"));
        assert_data_eq!(report, Data::read_from(&expected, None).raw());
    }
}

#[test]
fn chunks_make_no_difference() {
    for (name, options) in transcripts() {
        let whole = parsed(&name, &options, &[]);
        for size in ["1", "2", "3", "7", "64"] {
            assert_eq!(
                parsed(&name, &options, &["--chunk", size]),
                whole,
                "{name} {size}"
            );
        }
    }
}

#[test]
fn segments_tile_the_text() {
    for (name, options) in transcripts() {
        let length = fs::metadata(directory().join(format!("{name}.txt")))
            .unwrap()
            .len();
        let document = parsed(&name, &options, &[]);
        let mut place = 0;
        for segment in document["segments"].as_array().unwrap() {
            assert_eq!(segment["span"][0], place, "{name}");
            place = segment["span"][1].as_u64().unwrap();
        }
        assert_eq!(place, length, "{name}");
    }
}

/// The page about reading shows the output of the command.
#[test]
fn explanations_on_the_page_are_those_of_the_command() {
    let page = directory().join("../../docs/troubleshooting-replies.md");
    let page = fs::read_to_string(page).unwrap();
    let name = "quotes-the-syntax-and-is-misread.txt";
    assert!(page.contains(name));
    let output = run(&directory(), &["check", "--explain", name], b"").stdout();
    let mut shown = 0;
    for fence in page.split("```text\n").skip(1) {
        let fence = fence.split("\n```\n").next().unwrap();
        assert!(output.contains(&format!("{fence}\n")), "{fence}");
        shown += 1;
    }
    assert_eq!(shown, 2);
}

/// Each transcript has a row in the table, and the folder contains no other files.
#[test]
fn table_names_every_transcript() {
    let table = fs::read_to_string(directory().join("README.md")).unwrap();
    let names: Vec<String> = transcripts().into_iter().map(|(name, _)| name).collect();
    for name in &names {
        assert!(
            table.contains(&format!("| [{name}]({name}.txt) |")),
            "{name} has no row"
        );
    }
    let rows = table.lines().filter(|line| line.starts_with("| [")).count();
    assert_eq!(rows, names.len());
    for entry in fs::read_dir(directory().join("expected")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let name = file
            .strip_suffix(".json")
            .or(file.strip_suffix(".check.txt"));
        assert!(
            name.is_some_and(|name| names.iter().any(|known| known == name)),
            "{file}"
        );
    }
}
