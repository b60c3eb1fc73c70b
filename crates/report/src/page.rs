//! The report as an HTML page. The page loads nothing from the network, and text of the log cannot become markup or
//! script.

use crate::trace::Trace;

const FRAME: &str = include_str!("page/page.html");
/// The colours and fonts of pages, as a style sheet.
const COLORS: &str = include_str!("page/colors.css");
const STYLE: &str = include_str!("page/style.css");
/// The content security policy, which allows only these scripts and styles by their hashes.
const POLICY: &str = include_str!("page/policy.txt");
/// The sections that the inspector has too: timeline, graph and details.
const SECTIONS: &str = include_str!("page/sections.html");
/// The script, in parts. The inspector has all but the last one too.
const SCRIPT: &str = concat!(
    include_str!("page/elements.js"),
    include_str!("page/calls.js"),
    include_str!("page/filters.js"),
    include_str!("page/head.js"),
    include_str!("page/transcript.js"),
    include_str!("page/details.js"),
    include_str!("page/views.js"),
    include_str!("page/timeline.js"),
    include_str!("page/graph.js"),
    include_str!("page/show.js"),
);

/// Returns the page for a trace.
pub fn page(trace: &Trace) -> String {
    let data = escape_for_script(&serde_json::to_string(trace).unwrap_or_default());
    let parts = [
        ("@POLICY@", POLICY.trim_end()),
        ("@COLORS@", COLORS),
        ("@STYLE@", STYLE),
        ("@SECTIONS@", SECTIONS),
        ("@DATA@", &data),
        ("@SCRIPT@", SCRIPT),
    ];
    let mut page = String::with_capacity(data.len() + 64 * 1024);
    let mut rest = FRAME;
    // Placeholders are searched only in the frame, because the data may contain their names.
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

/// The element of the inspector's page with the input that it shows at first.
const GIVEN: &str = r#"<script type="application/json" id="given">null"#;

/// Returns the inspector's page with this input: an object with `text` or `bytes`, `tools` and `settings`. Returns `None` if the
/// page is not one of the inspector.
pub fn with_given(page: &str, given: &serde_json::Value) -> Option<String> {
    let (before, after) = page.split_once(GIVEN)?;
    let element = GIVEN.strip_suffix("null")?;
    let given = escape_for_script(&given.to_string());
    Some([before, element, &given, after].concat())
}

/// Escapes JSON for a `script` element, so that it contains no `<` and no line ends that JavaScript does not allow.
/// These characters occur only in strings, where the escape has the same meaning.
fn escape_for_script(json: &str) -> String {
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
