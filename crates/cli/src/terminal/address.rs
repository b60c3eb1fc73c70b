//! URLs in the arguments of a call, with their hosts highlighted.

use plaincall::tool::Arguments;

use crate::terminal::line::{Line, indented};
use crate::terminal::palette::{BOLD, DIM, NOTICE, PLAIN};

/// The maximum number of URLs shown.
const MAX_URLS: usize = 8;

/// The maximum number of characters shown after the host.
const MAX_REST: usize = 200;

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
struct Address<'t> {
    /// The scheme with `://`.
    scheme: &'t str,
    /// The user information with its `@`.
    user: &'t str,
    host: &'t str,
    /// The port, path and query.
    rest: &'t str,
}

/// Returns a line for each URL, with its host highlighted.
pub(crate) fn lines(arguments: &Arguments) -> Vec<Line> {
    let mut found: Vec<Address<'_>> = Vec::new();
    for argument in arguments.iter() {
        for address in addresses(argument.text) {
            if !found.contains(&address) {
                found.push(address);
            }
        }
    }
    let mut lines: Vec<Line> = found.iter().take(MAX_URLS).map(line).collect();
    if let more @ 1.. = found.len().saturating_sub(MAX_URLS) {
        lines.push(indented(NOTICE, &format!("({more} more URLs)")));
    }
    lines
}

fn line(address: &Address<'_>) -> Line {
    let mut line = indented(DIM, "URL ");
    line.push(PLAIN, address.scheme);
    line.push(NOTICE, address.user);
    for c in address.host.chars() {
        if c.is_ascii() {
            line.push_character(BOLD, c);
        } else {
            // Many letters look like Latin letters.
            line.push(NOTICE, &c.escape_unicode().to_string());
        }
    }
    let rest: String = address.rest.chars().take(MAX_REST).collect();
    line.push(PLAIN, &rest);
    if rest.len() < address.rest.len() {
        line.push(NOTICE, " ...");
    }
    let mut warn = |applies: bool, text: &str| {
        if applies {
            line.push(NOTICE, &format!("  ({text})"));
        }
    };
    warn(
        !address.user.is_empty(),
        "the part before the @ is not the host",
    );
    warn(
        !address.host.is_ascii(),
        "the host contains non-ASCII characters",
    );
    let host = address.host.to_ascii_lowercase();
    warn(
        host.split('.').any(|label| label.starts_with("xn--")),
        "xn-- encodes non-ASCII letters, which may look like other letters",
    );
    line
}

fn addresses(text: &str) -> Vec<Address<'_>> {
    const SEPARATOR: &str = "://";
    let mut found = Vec::new();
    for (position, _) in text.match_indices(SEPARATOR) {
        let (before, after) = text.split_at(position);
        let is_scheme_char = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let name = before.trim_end_matches(is_scheme_char).len();
        let scheme = text
            .get(name..position + SEPARATOR.len())
            .unwrap_or_default();
        let after = after.get(SEPARATOR.len()..).unwrap_or_default();
        let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"'<>`".contains(c);
        let end = after.find(is_end).unwrap_or(after.len());
        let after = after.get(..end).unwrap_or_default();
        // Many programs treat a backslash as a slash.
        let authority = after.find(['/', '\\', '?', '#']).unwrap_or(after.len());
        let (authority, path) = after.split_at(authority);
        let host = authority.rfind('@').map_or(0, |position| position + 1);
        let (user, host_and_port) = authority.split_at(host);
        let port = match host_and_port.find(']') {
            // The host is an IPv6 address.
            Some(end) => end + 1,
            None => host_and_port.find(':').unwrap_or(host_and_port.len()),
        };
        let host = host_and_port.get(..port).unwrap_or_default();
        let rest_length = host_and_port.len() - host.len() + path.len();
        let rest = after.get(after.len() - rest_length..).unwrap_or_default();
        if scheme.len() > SEPARATOR.len() && !host.is_empty() {
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
