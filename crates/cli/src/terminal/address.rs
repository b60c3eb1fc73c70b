//! The URLs in a call's arguments, so that a person sees which host each of them means.

use plaincall::Arguments;

use crate::terminal::line::{Line, indented};
use crate::terminal::palette::{ASKING, BOLD, DIM, PLAIN};

/// How many are shown.
const SHOWN: usize = 8;

/// How many characters of what stands behind the host are shown.
const CHARACTERS: usize = 200;

/// A URL in its parts.
#[derive(Debug, PartialEq, Eq)]
struct Address<'t> {
    /// With `://`.
    scheme: &'t str,
    /// What stands before the host, with its `@`.
    user: &'t str,
    host: &'t str,
    /// The port and all behind it.
    rest: &'t str,
}

/// A line for each URL, with its host made prominent.
pub(crate) fn lines(arguments: &Arguments) -> Vec<Line> {
    let mut found: Vec<Address<'_>> = Vec::new();
    for argument in arguments.iter() {
        for address in addresses(argument.text) {
            if !found.contains(&address) {
                found.push(address);
            }
        }
    }
    let mut lines: Vec<Line> = found.iter().take(SHOWN).map(line).collect();
    if let more @ 1.. = found.len().saturating_sub(SHOWN) {
        lines.push(indented(ASKING, &format!("({more} URLs more)")));
    }
    lines
}

fn line(address: &Address<'_>) -> Line {
    let mut line = indented(DIM, "URL ");
    line.push(PLAIN, address.scheme);
    line.push(ASKING, address.user);
    for c in address.host.chars() {
        if c.is_ascii() {
            line.push_character(BOLD, c);
        } else {
            // Many letters look like those of the Latin alphabet.
            line.push(ASKING, &c.escape_unicode().to_string());
        }
    }
    let rest: String = address.rest.chars().take(CHARACTERS).collect();
    line.push(PLAIN, &rest);
    if rest.len() < address.rest.len() {
        line.push(ASKING, " ...");
    }
    let labels = address.host.split('.');
    let is_encoded = labels
        .into_iter()
        .any(|label| label.to_ascii_lowercase().starts_with("xn--"));
    for (applies, remark) in [
        (
            !address.user.is_empty(),
            "what stands before the @ is no part of the host",
        ),
        (!address.host.is_ascii(), "the host is not written in ASCII"),
        (
            is_encoded,
            "xn-- stands for letters that are not ASCII, which may look like others",
        ),
    ] {
        if applies {
            line.push(ASKING, &format!("  ({remark})"));
        }
    }
    line
}

/// The URLs in a text.
fn addresses(text: &str) -> Vec<Address<'_>> {
    const SIGN: &str = "://";
    let mut found = Vec::new();
    for (place, _) in text.match_indices(SIGN) {
        let (before, behind) = text.split_at(place);
        let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let name = before.trim_end_matches(is_of_scheme).len();
        let scheme = text.get(name..place + SIGN.len()).unwrap_or_default();
        let behind = behind.get(SIGN.len()..).unwrap_or_default();
        let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"'<>`".contains(c);
        let end = behind.find(is_end).unwrap_or(behind.len());
        let behind = behind.get(..end).unwrap_or_default();
        // A backslash is a slash to many programs.
        let authority = behind.find(['/', '\\', '?', '#']).unwrap_or(behind.len());
        let (authority, path) = behind.split_at(authority);
        let host = authority.rfind('@').map_or(0, |place| place + 1);
        let (user, host_and_port) = authority.split_at(host);
        let port = match host_and_port.find(']') {
            // The host is an address of IPv6.
            Some(end) => end + 1,
            None => host_and_port.find(':').unwrap_or(host_and_port.len()),
        };
        let host = host_and_port.get(..port).unwrap_or_default();
        let rest_length = host_and_port.len() - host.len() + path.len();
        let rest = behind.get(behind.len() - rest_length..).unwrap_or_default();
        if scheme.len() > SIGN.len() && !host.is_empty() {
            found.push(Address {
                scheme,
                user,
                host,
                rest,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use plaincall::Arguments;

    use crate::terminal::line::Line;

    fn check(text: &str, expected: &[&str]) {
        let arguments = Arguments::from_pairs([("url", text)]).unwrap();
        let lines: Vec<String> = super::lines(&arguments)
            .iter()
            .map(|line: &Line| line.to_plain().trim_start().to_owned())
            .collect();
        assert_eq!(lines, expected, "{text}");
    }

    #[test]
    fn what_is_shown() {
        check("no address: //x, a:b, ://c", &[]);
        check(
            "https://example.org/a?b#c",
            &["URL https://example.org/a?b#c"],
        );
        check(
            "see (ftp://a.b:21/x) and <http://c>",
            &["URL ftp://a.b:21/x)", "URL http://c"],
        );
        check("http://[::1]:80/", &["URL http://[::1]:80/"]);
        check(
            "https://bank.example@evil.example/",
            &[
                "URL https://bank.example@evil.example/  (what stands before the @ is no part of the host)",
            ],
        );
        check(
            "https://evil.example\\@bank.example/",
            &["URL https://evil.example\\@bank.example/"],
        );
        check(
            "https://b\u{430}nk.example/",
            &["URL https://b\\u{430}nk.example/  (the host is not written in ASCII)"],
        );
        check(
            "https://XN--bnk-7cd.example",
            &[
                "URL https://XN--bnk-7cd.example  (xn-- stands for letters that are not ASCII, which may look like others)",
            ],
        );
    }

    #[test]
    fn the_host_is_what_programs_take_for_it() {
        for (text, host) in [
            ("https://a@b@c/d@e", "c"),
            ("https://a\\@b/", "a"),
            ("https://a?@b", "a"),
            ("https://a:b@c:1/", "c"),
            ("https://u@[::1]:80/", "[::1]"),
        ] {
            let hosts: Vec<&str> = super::addresses(text).iter().map(|one| one.host).collect();
            assert_eq!(hosts, [host], "{text}");
        }
    }
}
