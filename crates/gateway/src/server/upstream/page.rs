//! Pages for people that come in the place of an answer: a proxy says so that the model's server is not there.

use axum::http::HeaderValue;

/// The longest part of a title that is told, in bytes.
const TITLE: usize = 80;

/// Whether this is such a page.
pub(super) fn is_page(content_type: Option<&HeaderValue>, body: &[u8]) -> bool {
    let begins = |text: &[u8], beginning: &str| {
        let begin = text.get(..beginning.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(beginning.as_bytes()))
    };
    let is_named = content_type.is_some_and(|kind| begins(kind.as_bytes(), "text/html"));
    let body = body.trim_ascii_start();
    // Some servers name what is no page so.
    (is_named && body.starts_with(b"<")) || begins(body, "<!doctype html") || begins(body, "<html")
}

/// What is told of it: its status, and the first words of its title.
pub(super) fn message(status: u16, body: &[u8]) -> String {
    let title = title(&String::from_utf8_lossy(body));
    let colon = if title.is_empty() { "" } else { ": " };
    format!("the model's server answered with a page, status {status}{colon}{title}")
}

fn title(page: &str) -> String {
    let small = page.to_ascii_lowercase();
    let begin = small.find("<title").and_then(|tag| {
        let rest = small.get(tag..)?;
        Some(tag + rest.find('>')? + 1)
    });
    let text = begin
        .and_then(|begin| page.get(begin..))
        .unwrap_or_default();
    let text = text.split('<').next().unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut title = words.join(" ");
    if title.len() > TITLE {
        title.truncate(title.floor_char_boundary(TITLE));
        title.push('…');
    }
    title
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::{is_page, message};

    #[test]
    fn what_is_told_of_a_page() {
        let long = format!("<title>{}</title>", "é".repeat(50));
        let cut = format!(": {}…", "é".repeat(40));
        for (content_type, body, expected) in [
            ("text/html; charset=utf-8", "<p>Closed", Some("")),
            (
                "",
                "\n<!DOCTYPE html><head><TITLE lang=en>502\n Bad  Gateway</TITLE>",
                Some(": 502 Bad Gateway"),
            ),
            ("", "<html><title>half", Some(": half")),
            ("Text/HTML", "<title", Some("")),
            ("text/html", &long, Some(&cut)),
            ("text/html", r#"{"error":"no"}"#, None),
            ("text/html", "Bad Gateway", None),
            ("application/json", r#"{"error":"<html>"}"#, None),
            ("", "", None),
        ] {
            let content_type = HeaderValue::from_static(content_type);
            let is_page = is_page(Some(&content_type), body.as_bytes());
            let told = is_page.then(|| message(502, body.as_bytes()));
            let expected = expected
                .map(|title| format!("the model's server answered with a page, status 502{title}"));
            assert_eq!(told, expected, "{body}");
        }
    }
}
