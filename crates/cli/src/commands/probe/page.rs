//! A comparison as one page for a browser: the tables, and each transcript. It has no scripts and loads nothing.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use plaincall_probe::{Attempt, Author, Report, SharedResult, Task};
use plaincall_report::page::COLORS;
use tempfile::Builder;

use crate::commands::probe::table::{FIGURES, cell, duration, task_cell};
use crate::replacement::{file_for, replace};
use crate::status::{Failure, cannot_write};
use crate::terminal::human;

const STYLE: &str = include_str!("page.css");

/// Checks that the page can be written, so that this is known before a long comparison.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(cannot_write(path, &io::ErrorKind::IsADirectory.into()));
    }
    let created = file_for(path, &Builder::new());
    created
        .map(drop)
        .map_err(|error| cannot_write(path, &error))
}

/// Replaces the file by the page.
pub(super) fn write(path: &Path, page: &str) -> Result<(), Failure> {
    replace(path, page.as_bytes()).map_err(|error| cannot_write(path, &error))
}

/// Returns the page.
pub(super) fn page(
    report: &Report,
    result: &SharedResult,
    tasks: &[Task],
    recommendation: &str,
) -> String {
    let mut page = String::new();
    let model = escaped(&result.model);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{model}: ways to call tools</title>\n<style>\n{COLORS}{STYLE}</style>\n</head>\n<body>\n\
         <h1>{model}: ways to call tools</h1>\n"
    );
    let _ = writeln!(
        page,
        "<pre class=\"verdict\">{}</pre>",
        escaped(recommendation)
    );
    figures(&mut page, report);
    matrix(&mut page, report, tasks);
    settings(&mut page, result);
    page.push_str("<h2>Transcripts</h2>\n");
    for task in tasks {
        transcripts(&mut page, report, task);
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn head(page: &mut String, report: &Report) {
    page.push_str("<div class=\"scroll\"><table>\n<thead><tr><th></th>");
    for arm in &report.arms {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escaped(&arm.arm));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
}

fn figures(page: &mut String, report: &Report) {
    page.push_str("<h2>Figures</h2>\n");
    head(page, report);
    for (name, figure) in FIGURES {
        let _ = write!(page, "<tr><th scope=\"row\">{name}</th>");
        for arm in &report.arms {
            let _ = write!(page, "<td>{}</td>", escaped(&cell(arm, figure)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
    for arm in &report.arms {
        if let Some(reason) = &arm.unavailable {
            let (arm, reason) = (escaped(&arm.arm), escaped(reason));
            let _ = writeln!(page, "<p>{arm} could not be tried: {reason}</p>");
        }
    }
}

fn matrix(page: &mut String, report: &Report, tasks: &[Task]) {
    page.push_str("<h2>Correct attempts by task</h2>\n");
    head(page, report);
    let mut kind = "";
    for task in tasks.iter().filter(|task| is_tried(report, task)) {
        if task.kind != kind {
            kind = &task.kind;
            let columns = report.arms.len() + 1;
            let kind = escaped(kind);
            let _ = writeln!(
                page,
                "<tr><th class=\"kind\" colspan=\"{columns}\">{kind}</th></tr>"
            );
        }
        let name = escaped(&task.name);
        let _ = write!(
            page,
            "<tr><th scope=\"row\"><a href=\"#{name}\" title=\"{}\">{name}</a></th>",
            escaped(&task.about)
        );
        for arm in &report.arms {
            let of_task = arm.tasks.iter().find(|report| report.task == task.name);
            let class = match of_task {
                Some(report) if report.correct == report.attempts => "good",
                Some(report) if report.correct == 0 => "bad",
                _ => "",
            };
            let _ = write!(
                page,
                "<td class=\"{class}\">{}</td>",
                escaped(&task_cell(arm, task))
            );
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn is_tried(report: &Report, task: &Task) -> bool {
    report
        .attempts
        .iter()
        .any(|attempt| attempt.task == task.name)
}

fn settings(page: &mut String, result: &SharedResult) {
    let settings = serde_json::to_string(&result.settings).unwrap_or_default();
    let note = result.note.as_deref().unwrap_or("none");
    let _ = writeln!(
        page,
        "<p class=\"faint\">Plaincall {}, tasks {}, {}{}, settings {}, note: {}. The intervals are Wilson's, at 95 %. \
         Two arms differ only if their intervals do not overlap.</p>",
        escaped(&result.plaincall),
        escaped(&result.tasks),
        human::count(result.repetitions as usize, "repetition"),
        if result.is_complete {
            ""
        } else {
            ", not complete"
        },
        escaped(&settings),
        escaped(note)
    );
}

fn transcripts(page: &mut String, report: &Report, task: &Task) {
    if !is_tried(report, task) {
        return;
    }
    let (name, about) = (escaped(&task.name), escaped(&task.about));
    let _ = writeln!(page, "<h3 id=\"{name}\">{name}: {about}</h3>");
    for attempt in report
        .attempts
        .iter()
        .filter(|attempt| attempt.task == task.name)
    {
        transcript(page, attempt);
    }
}

fn transcript(page: &mut String, attempt: &Attempt) {
    let (class, outcome) = match &attempt.why {
        None => ("good", "correct".to_owned()),
        Some(why) => ("bad", format!("wrong: {}", escaped(why))),
    };
    let time = std::time::Duration::from_millis(attempt.milliseconds);
    let _ = writeln!(
        page,
        "<details><summary><b>{}</b> {} <span class=\"{class}\">{outcome}</span> \
         <span class=\"faint\">{}, {} well-formed, {}, {}</span></summary>",
        escaped(&attempt.arm),
        attempt.repetition,
        human::count(attempt.calls as usize, "call"),
        attempt.well_formed,
        human::count(attempt.replies as usize, "turn"),
        duration(time)
    );
    for entry in &attempt.transcript {
        let (class, author) = match entry.author {
            Author::System => ("system", "system prompt"),
            Author::Program => ("program", "to the model"),
            Author::Model => ("model", "model"),
            Author::Reasoning => ("reasoning", "reasoning"),
            Author::NativeCall => ("model", "native call"),
            Author::Error => ("bad", "error"),
            _ => ("program", "other"),
        };
        if entry.text.is_empty() {
            continue;
        }
        let text = escaped(&entry.text);
        let _ = writeln!(
            page,
            "<p class=\"author\">{author}</p><pre class=\"{class}\">{text}</pre>"
        );
    }
    page.push_str("</details>\n");
}

/// Text for HTML. Characters that would change the order or the display of others are shown as their numbers.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() || crate::sanitize::is_invisible(c) => {
                let _ = write!(safe, "\u{27e8}U+{:04X}\u{27e9}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn no_text_becomes_markup() {
        let text = "</pre><script>alert('1')</script> \"&\u{202e}\u{1b}[0m\n";
        assert_eq!(
            escaped(text),
            "&lt;/pre&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &quot;&amp;⟨U+202E⟩⟨U+001B⟩[0m\n"
        );
    }
}
