//! Web pages instead of an answer.

use plaincall_wire::page_title;

#[test]
fn page_titles() {
    let long = format!("<title>{}</title>", "é".repeat(50));
    let cut = format!("{}…", "é".repeat(40));
    for (content_type, body, expected) in [
        ("text/html; charset=utf-8", "<p>Closed", Some("")),
        (
            "",
            "\n<!DOCTYPE html><head><TITLE lang=en>502\n Bad  Gateway</TITLE>",
            Some("502 Bad Gateway"),
        ),
        ("", "<html><title>half", Some("half")),
        ("Text/HTML", "<title", Some("")),
        ("text/html", &long, Some(&cut)),
        ("text/html", r#"{"error":"no"}"#, None),
        ("text/html", "Bad Gateway", None),
        ("application/json", r#"{"error":"<html>"}"#, None),
        ("", "", None),
    ] {
        let title = page_title(content_type, body.as_bytes());
        assert_eq!(title.as_deref(), expected, "{body}");
    }
}
