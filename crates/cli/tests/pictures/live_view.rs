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

/// How many times as slow the model and the tools are in each run of the example, until the state in the picture is seen. On a busy
/// machine, calls end at other times; the slower they are, the less it matters. With 3, times would have a digit more.
const SLOWER: [u32; 12] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2];

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

/// Runs the example so many times as slowly, and returns the first picture for which `is_it` holds.
fn watch(slower: u32, is_it: impl Fn(&str, &str) -> bool) -> Option<String> {
    let scene = example();
    let file = scene.path("tools.toml");
    let mut tools = fs::read_to_string(&file).unwrap();
    // The longest first, so that none is replaced again.
    for seconds in (1..=3).rev() {
        let pause = format!("sleep {}\n", seconds * slower);
        tools = tools.replace(&format!("sleep {seconds}\n"), &pause);
    }
    tools = tools.replace("\"10s\"", &format!("\"{}s\"", 10 * slower));
    fs::write(&file, tools).unwrap();
    let pace = (400 / slower).to_string();
    let arguments = ["reply.txt", "--tools", "tools.toml", "--pace", &pace];
    let options = Options {
        rows: 26,
        arguments: &arguments,
        ..Options::default()
    };
    let terminal = Terminal::start(&scene, options);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) * slower {
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
        let picture = (0..SLOWER.len()).find_map(|_| watch(1, |text, _| is_moment(text)));
        fs::write(&file, picture.expect("the moment was never seen")).unwrap();
        return;
    }
    let expected = masked(&fs::read_to_string(&file).unwrap());
    let is_it = |_: &str, picture: &str| masked(picture) == expected;
    let is_seen = SLOWER.iter().any(|slower| watch(*slower, is_it).is_some());
    let seen = || watch(2, |text, _| is_moment(text)).unwrap_or_default();
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
