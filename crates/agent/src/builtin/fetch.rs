//! `fetch_url`: a page of the web as text.

mod address;
mod entities;
mod page;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use plaincall::{Context, Effect, Failure, Tool, ToolResult};
use reqwest::header::{ACCEPT, HeaderMap, LOCATION, USER_AGENT};
use reqwest::{Client, StatusCode, Url};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::builtin::fetch::address::{REFUSED, Resolver, refused};
use crate::builtin::spelling::{count, named};
use crate::http::{Answer, HttpError, HttpSettings, Waits, send};

/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// How much of a page is read, in bytes.
const LONGEST: usize = 4 << 20;
/// How much of the page of an error is told, in bytes.
const OF_AN_ERROR: usize = 2_000;
/// What the tool calls itself.
const AGENT: &str = concat!("plaincall/", env!("CARGO_PKG_VERSION"));
/// What it likes to read.
const ACCEPTED: &str = "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1";

/// What may be fetched.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The hosts; any if `None`.
    pub(super) hosts: Option<Vec<String>>,
    /// Also from the own machine and from private networks.
    pub(super) private: bool,
    pub(super) time: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hosts: None,
            private: false,
            time: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// An address can carry to anybody what a model has read. So without a list of hosts the tool counts as one that
    /// writes.
    pub(super) fn effect(&self) -> Effect {
        if self.hosts.is_some() {
            Effect::Read
        } else {
            Effect::Write
        }
    }
}

/// Fetches a page of the web by GET and returns it as text.
#[derive(Deserialize, JsonSchema)]
struct FetchUrl {
    /// The address, with http:// or https://.
    #[schemars(example = &"https://example.org/page")]
    url: String,
}

pub(super) fn tool(settings: &Settings) -> Result<Tool, HttpError> {
    // A proxy would resolve names by itself, and nobody could look at the addresses.
    let client = HttpSettings::default()
        .builder()?
        .dns_resolver(Arc::new(Resolver {
            private: settings.private,
        }))
        .build();
    let fetcher = Fetcher {
        client: client.map_err(|error| HttpError::settings(&error))?,
        settings: settings.clone(),
    };
    let name = BuiltinTool::FetchUrl.name();
    let tool = Tool::new(name, move |fetch: FetchUrl, _: Context| {
        let fetcher = fetcher.clone();
        async move { fetcher.fetch(fetch.url.trim()).await }
    });
    let about = settings.hosts.as_ref().map_or(String::new(), |hosts| {
        format!(" Only from: {}.", hosts.join(", "))
    });
    let description = format!("{}{about}", tool.spec().description);
    Ok(tool
        .describe(description)
        .effect(settings.effect())
        .positional(["url"])
        .timeout(settings.time + Duration::from_secs(5)))
}

#[derive(Clone, Debug)]
struct Fetcher {
    client: Client,
    settings: Settings,
}

impl Fetcher {
    async fn fetch(&self, written: &str) -> ToolResult {
        let mut url = self.url(written)?;
        let deadline = tokio::time::Instant::now() + self.settings.time;
        for _ in 0..=REDIRECTS {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            let request = self
                .client
                .get(url.clone())
                .header(USER_AGENT, AGENT)
                .header(ACCEPT, ACCEPTED);
            let answer = send(request, Waits::all(left)).await;
            let answer = answer.map_err(|error| told(&error, &url))?;
            let Some(next) = redirect(&answer, &url)? else {
                return read(answer).await;
            };
            self.check(&next)?;
            if !is_same_place(&url, &next) {
                return Err(format!(
                    "{} leads on to another server: {}; fetch that address if you want to go there",
                    named(url.as_str()),
                    named(next.as_str())
                )
                .into());
            }
            url = next;
        }
        Err(format!(
            "{} leads on from page to page, more than {REDIRECTS} times; fetch another address",
            named(written)
        )
        .into())
    }

    /// # Errors
    /// The address is none, or not one of those that may be fetched.
    fn url(&self, written: &str) -> Result<Url, String> {
        let url = Url::parse(written).map_err(|error| {
            format!(
                "{} is no address ({error}); write one such as https://example.org/page",
                named(written)
            )
        })?;
        self.check(&url)?;
        Ok(url)
    }

    fn check(&self, url: &Url) -> Result<(), String> {
        let name = named(url.as_str());
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "{name} cannot be fetched: only addresses with http:// and https:// can"
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!(
                "{name} cannot be fetched: it holds a user name or a password; leave that out"
            ));
        }
        let host = url.host_str().unwrap_or_default();
        if let Some(hosts) = &self.settings.hosts
            && !hosts.iter().any(|known| is_host(known, host))
        {
            return Err(format!(
                "{name} cannot be fetched: only pages from {} can; fetch one of these",
                hosts.join(", ")
            ));
        }
        // What is written as an address is never resolved, so the resolver does not see it.
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        match literal.parse::<IpAddr>() {
            Ok(address) if !self.settings.private && !address::is_public(address) => {
                Err(refused(host))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a host is the one that is meant; `*.example.org` means all below `example.org`.
fn is_host(known: &str, host: &str) -> bool {
    let host = host.trim_end_matches('.');
    match known.strip_prefix('*') {
        Some(end) if end.starts_with('.') => {
            host.len() > end.len()
                && host
                    .get(host.len() - end.len()..)
                    .is_some_and(|tail| tail.eq_ignore_ascii_case(end))
        }
        _ => known.eq_ignore_ascii_case(host),
    }
}

/// Whether a redirect stays on a server, or only goes from `http` to `https` there. Elsewhere somebody may have to be
/// asked first, and rules about addresses count.
fn is_same_place(from: &Url, to: &Url) -> bool {
    let is_same_server =
        from.scheme() == to.scheme() && from.port_or_known_default() == to.port_or_known_default();
    let is_secured = (from.scheme(), to.scheme()) == ("http", "https")
        && from.port().is_none()
        && to.port().is_none();
    from.host_str() == to.host_str() && (is_same_server || is_secured)
}

fn redirect(answer: &Answer, url: &Url) -> Result<Option<Url>, String> {
    if !matches!(answer.status(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = answer.headers().get(LOCATION) else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let next = url.join(&location).map_err(|_| {
        format!(
            "{} leads on to {}, which is no address; fetch another page",
            named(url.as_str()),
            named(location.as_ref())
        )
    })?;
    Ok(Some(next))
}

/// What a model hears when no answer came.
fn told(error: &HttpError, url: &Url) -> String {
    let text = error.told(&format!("the server of {}", named(url.as_str())));
    match text.find(REFUSED) {
        Some(_) => refused(url.host_str().unwrap_or_default()),
        None => format!("{text}; try another page, or the same later"),
    }
}

async fn read(mut answer: Answer) -> ToolResult {
    let url = answer.url().clone();
    let kind = Kind::of(answer.headers());
    let status = answer.status();
    let is_good = (200..300).contains(&status);
    if is_good && !kind.is_text() {
        return Err(format!(
            "{} is {}, which is no text; fetch a page with text",
            named(url.as_str()),
            named(&kind.essence)
        )
        .into());
    }
    let mut body = Vec::new();
    let mut is_cut = false;
    while let Some(piece) = answer.piece().await.map_err(|error| told(&error, &url))? {
        let room = LONGEST - body.len();
        body.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if piece.len() > room {
            is_cut = true;
            break;
        }
    }
    let text = if kind.is_text() {
        kind.text(&body, &url)
    } else {
        String::new()
    };
    if !is_good {
        let reason = StatusCode::from_u16(status).ok();
        let reason = reason
            .and_then(|status| status.canonical_reason())
            .map_or(String::new(), |reason| format!(" ({reason})"));
        let begin = text
            .get(..text.floor_char_boundary(OF_AN_ERROR))
            .unwrap_or_default();
        return Err(Box::new(Failure {
            message: format!(
                "{} was answered with the status {status}{reason}; try another page",
                named(url.as_str())
            ),
            output: Some(begin.to_owned()).filter(|begin| !begin.trim().is_empty()),
        }));
    }
    let mut note = format!("{}, {}", named(url.as_str()), kind.essence);
    // Writing to a text cannot fail.
    let _ = write!(note, ", {}", count(body.len() as u64, "byte"));
    if is_cut {
        note.push_str(", cut: the page is longer");
    }
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Ok(format!("[{note}]\n{text}{end}"))
}

/// What kind of page it is.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    /// Without parameters, in small letters.
    essence: String,
    charset: Option<String>,
}

impl Kind {
    fn of(headers: &HeaderMap) -> Self {
        let value = headers.get(reqwest::header::CONTENT_TYPE);
        let value = value
            .and_then(|value| value.to_str().ok())
            .unwrap_or("text/plain");
        let value = value.to_ascii_lowercase();
        let mut parts = value.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default().to_owned();
        let charset = parts.find_map(|part| part.strip_prefix("charset="));
        let charset = charset.map(|charset| charset.trim_matches('"').to_owned());
        Self { essence, charset }
    }

    fn is_html(&self) -> bool {
        matches!(self.essence.as_str(), "text/html" | "application/xhtml+xml")
    }

    fn is_text(&self) -> bool {
        let essence = self.essence.as_str();
        essence.starts_with("text/")
            || essence.ends_with("+json")
            || essence.ends_with("+xml") && essence != "image/svg+xml"
            || matches!(
                essence,
                "application/json"
                    | "application/xml"
                    | "application/javascript"
                    | "application/x-javascript"
                    | "application/yaml"
                    | "application/x-yaml"
                    | "application/toml"
                    | "application/x-ndjson"
                    | "application/x-sh"
                    | "application/sql"
            )
    }

    fn text(&self, body: &[u8], url: &Url) -> String {
        let text = page::decoded(body, self.charset.as_deref());
        if self.is_html() {
            page::readable(&text, url)
        } else {
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::{is_host, is_same_place};

    #[test]
    fn hosts() {
        for (known, host, expected) in [
            ("docs.rs", "docs.rs", true),
            ("Docs.rs", "docs.RS", true),
            ("docs.rs", "docs.rs.", true),
            ("docs.rs", "xdocs.rs", false),
            ("docs.rs", "a.docs.rs", false),
            ("*.docs.rs", "a.docs.rs", true),
            ("*.docs.rs", "a.b.docs.rs", true),
            ("*.docs.rs", "docs.rs", false),
            ("*.docs.rs", "xdocs.rs", false),
            ("*", "docs.rs", false),
            ("*.ü", "ä", false),
        ] {
            assert_eq!(is_host(known, host), expected, "{known} {host}");
        }
    }

    #[test]
    fn places() {
        for (from, to, expected) in [
            ("http://a.b/x", "http://a.b/y", true),
            ("http://a.b/x", "http://A.B:80/y", true),
            ("http://a.b/x", "https://a.b/y", true),
            ("https://a.b/x", "http://a.b/y", false),
            ("http://a.b/x", "http://a.b:8080/y", false),
            ("http://a.b:8080/x", "https://a.b/y", false),
            ("https://a.b/x", "https://c.a.b/y", false),
        ] {
            let url = |text| Url::parse(text).unwrap();
            assert_eq!(is_same_place(&url(from), &url(to)), expected, "{from} {to}");
        }
    }
}
