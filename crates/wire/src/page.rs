//! Web pages sent instead of a response, for example by a proxy whose server is down.

/// The longest returned part of a title, in bytes.
const TITLE: usize = 80;

/// Returns the beginning of the title of a web page, which may be empty, or `None` if the body is not a page. The
/// content type is that of the response, or empty.
pub fn page_title(content_type: &str, body: &[u8]) -> Option<String> {
    let begins = |text: &[u8], beginning: &str| {
        let begin = text.get(..beginning.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(beginning.as_bytes()))
    };
    let text = body.trim_ascii_start();
    // Some servers use this content type for other data.
    let is_page = (begins(content_type.as_bytes(), "text/html") && text.starts_with(b"<"))
        || begins(text, "<!doctype html")
        || begins(text, "<html");
    is_page.then(|| title(&String::from_utf8_lossy(body)))
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
        let end = (0..=TITLE).rev().find(|at| title.is_char_boundary(*at));
        title.truncate(end.unwrap_or_default());
        title.push('…');
    }
    title
}
