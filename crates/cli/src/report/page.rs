//! A trace as one page for a browser: nothing in it is loaded from anywhere, and no text of the record can become markup
//! or script.

use crate::report::trace::Trace;

const FRAME: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
/// Which scripts and styles the browser may heed: these alone, named by their hashes.
const POLICY: &str = include_str!("page/policy.txt");
const SCRIPTS: [(&str, &str); 3] = [
    ("@SCRIPT@", include_str!("page/script.js")),
    ("@TIMELINE@", include_str!("page/timeline.js")),
    ("@GRAPH@", include_str!("page/graph.js")),
];

pub(crate) fn page(trace: &Trace) -> String {
    let data = embedded(&serde_json::to_string(trace).unwrap_or_default());
    let mut parts = vec![
        ("@POLICY@", POLICY.trim_end()),
        ("@STYLE@", STYLE),
        ("@DATA@", &data),
    ];
    parts.extend(SCRIPTS);
    let mut page = String::with_capacity(data.len() + 64 * 1024);
    let mut rest = FRAME;
    // Each part is looked for in the frame alone, so that the texts of the record may hold the names of parts.
    while let Some((at, (name, part))) = parts
        .iter()
        .filter_map(|part| Some((rest.find(part.0)?, *part)))
        .min_by_key(|(at, _)| *at)
    {
        let (before, after) = rest.split_at(at);
        page.push_str(before);
        page.push_str(part);
        rest = after.strip_prefix(name).unwrap_or_default();
    }
    page.push_str(rest);
    page
}

/// JSON that can stand in an element `script`: no `<` that could end it, and no line end that only JSON knows. All of
/// these can stand in texts of JSON alone, where an escape means the same.
fn embedded(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + json.len() / 32);
    for c in json.chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            c => text.push(c),
        }
    }
    text
}
