//! The live view of the first example, while the model writes its last call.

use std::fs;
use std::time::{Duration, Instant};

use crate::pictures::{example, is_recording, repository, svg::svg};
use crate::run::pseudo_terminal::{Options, Terminal};
use crate::run::scene::pause;

const COMMAND: &str = "plaincall run reply.txt --tools tools.toml --pace 400";

/// The lines of the state in the picture.
const MOMENT: [&str; 3] = [
    "order  pilot_order  writing",
    "wind_morning  wind  from=7, to=11  running",
    "weight_ardea  weigh  ship=Ardea  running",
];

/// The maximum number of runs of the example until the state in the picture is seen. On a busy machine, calls end at
/// other times.
const RUNS: usize = 12;

/// The picture of a state with its times and its spinner masked.
fn masked(picture: &str) -> String {
    let mut masked = String::with_capacity(picture.len());
    let mut rest = picture;
    while let Some(at) = rest.find(" s") {
        let (front, back) = rest.split_at(at);
        let text = front.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        // A time, not a word that begins with an s.
        let is_time = text.len() < front.len() && !back[2..].starts_with(char::is_alphanumeric);
        masked.push_str(if is_time { text } else { front });
        masked.push_str(if is_time { "0.0 s" } else { " s" });
        rest = &back[2..];
    }
    masked.push_str(rest);
    masked.replace(['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'], "⠋")
}

/// Runs the example and returns the first picture for which `is_it` holds.
fn watch(is_it: impl Fn(&str, &str) -> bool) -> Option<String> {
    let scene = example();
    let arguments = ["reply.txt", "--tools", "tools.toml", "--pace", "400"];
    let options = Options {
        rows: 26,
        arguments: &arguments,
        ..Options::default()
    };
    let terminal = Terminal::start(&scene, options);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        let (text, picture) =
            terminal.with_screen(|screen| (screen.contents(), svg(screen, COMMAND)));
        if is_it(&text, &picture) {
            terminal.kill();
            return Some(picture);
        }
        if text.contains("10 calls: ") {
            break;
        }
        pause(Duration::from_millis(4));
    }
    terminal.kill();
    None
}

#[test]
fn the_live_view() {
    let file = repository("docs/pictures/live-view.svg");
    let is_moment = |text: &str| MOMENT.iter().all(|line| text.contains(line));
    if is_recording() {
        let picture = (0..RUNS).find_map(|_| watch(|text, _| is_moment(text)));
        fs::write(&file, picture.expect("the moment was never seen")).unwrap();
        return;
    }
    let expected = masked(&fs::read_to_string(&file).unwrap());
    let is_seen = (0..RUNS).any(|_| watch(|_, picture| masked(picture) == expected).is_some());
    let seen = || watch(|text, _| is_moment(text)).unwrap_or_default();
    assert!(
        is_seen,
        "docs/pictures/live-view.svg is out of date; `cargo xtask pictures` records it again. The moment today:\n{}",
        seen()
    );
}

#[test]
fn times_are_masked() {
    let text = ">⠹</tspan>running 2.9 s</tspan> order  ships · 13.4 s · as";
    let expected = ">⠋</tspan>running 0.0 s</tspan> order  ships · 0.0 s · as";
    assert_eq!(masked(text), expected);
}
