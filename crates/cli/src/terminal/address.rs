//! The URLs in a call's arguments, so that a person sees which host each of them means.

use plaincall::call::Arguments;

use crate::terminal::line::{Line, indented};
use crate::terminal::palette::{ASKING, BOLD, DIM, PLAIN};

/// How many are shown.
const SHOWN: usize = 8;

/// How many characters after the host are shown.
const CHARACTERS: usize = 200;

/// A URL in its parts.
#[derive(Debug, PartialEq, Eq)]
struct Address<'t> {
    /// With `://`.
    scheme: &'t str,
    /// The part before the host, with its `@`.
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
        lines.push(indented(ASKING, &format!("({more} more URLs)")));
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
    let mut remark = |applies: bool, remark: &str| {
        if applies {
            line.push(ASKING, &format!("  ({remark})"));
        }
    };
    remark(
        !address.user.is_empty(),
        "the part before the @ is not the host",
    );
    remark(
        !address.host.is_ascii(),
        "the host contains non-ASCII characters",
    );
    let host = address.host.to_ascii_lowercase();
    remark(
        host.split('.').any(|label| label.starts_with("xn--")),
        "xn-- encodes non-ASCII letters, which may look like other letters",
    );
    line
}

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
