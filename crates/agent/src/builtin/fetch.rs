//! `fetch_url`: returns a web page as text.

mod address;
mod page;

use std::net::IpAddr;
use std::time::Duration;

use plaincall::{Context, Effect, Tool, ToolResult, tool::Failure};
use plaincall_http::http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION, USER_AGENT,
};
use plaincall_http::http::{Request, StatusCode};
use plaincall_http::{
    Bytes, HttpClient, HttpError, HttpErrorKind, HttpResponse, HttpSettings, Waits,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::spawn_blocking;
use url::Url;

use crate::builtin::BuiltinTool;
use crate::builtin::fetch::address::{may_be_asked, refused};
use crate::builtin::fetch::page::Readable;
use crate::builtin::spelling::named;
use crate::builtin::text::why_binary;
use crate::text::{count, end_line};

/// The longest URL, in bytes. Relative links of a page are resolved against it.
const ADDRESS: usize = 8 << 10;
/// How much of a page is read, in bytes.
const LONGEST: usize = 4 << 20;
/// How much of the page of an error is shown, in bytes.
const OF_AN_ERROR: usize = 2_000;
const AGENT: &str = concat!("plaincall/", env!("CARGO_PKG_VERSION"));
const ACCEPTED: &str = "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1";

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) hosts: Option<Vec<String>>,
    /// Whether addresses of this machine and of private networks are allowed.
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
    /// `Write` unless hosts are listed: a URL can leak what the model has read.
    pub(super) fn effect(&self) -> Effect {
        if self.hosts.is_some() {
            Effect::Read
        } else {
            Effect::Write
        }
    }
}

/// Fetches a web page (GET) and returns it as text.
#[derive(Deserialize, JsonSchema)]
struct FetchUrl {
    /// The URL, with http:// or https://.
    #[schemars(example = &"https://example.org/page")]
    url: String,
}

pub(super) fn tool(settings: &Settings) -> Result<Tool, HttpError> {
    // No proxy: it would resolve names itself, and the addresses could not be checked.
    let mut http = HttpSettings::default();
    http.allow = (!settings.private).then_some(may_be_asked);
    let fetcher = Fetcher {
        client: HttpClient::new(&http)?,
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
    client: HttpClient,
    settings: Settings,
}

impl Fetcher {
    async fn fetch(&self, written: &str) -> ToolResult {
        let mut url = Url::parse(written).map_err(|error| {
            let name = named(written);
            format!("{name} is not a valid URL ({error}); example: https://example.org/page")
        })?;
        self.check(&url)?;
        let deadline = tokio::time::Instant::now() + self.settings.time;
        loop {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            let request = Request::get(url.as_str())
                .header(USER_AGENT, AGENT)
                // Compressed pages are not supported.
                .header(ACCEPT_ENCODING, "identity")
                .header(ACCEPT, ACCEPTED)
                .body(Bytes::new())
                .map_err(|error| format!("{} cannot be fetched: {error}", named(url.as_str())))?;
            let answer = self.client.send(request, Waits::all(left)).await;
            let answer = answer.map_err(|error| failure(&error, &url))?;
            let Some(next) = redirect(&answer, &url)? else {
                return read(answer, url).await;
            };
            self.check(&next)?;
            // The new URL is `https`, so this happens only once.
            if !is_secured(&url, &next) {
                return Err(leads_on(&url, &next).into());
            }
            url = next;
        }
    }

    fn check(&self, url: &Url) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default();
        let is_known = |hosts: &&Vec<String>| hosts.iter().any(|known| is_host(known, host));
        let why = if url.as_str().len() > ADDRESS {
            format!("the URL is longer than {} KiB", ADDRESS >> 10)
        } else if !matches!(url.scheme(), "http" | "https") {
            "only http:// and https:// URLs are supported".to_owned()
        } else if !url.username().is_empty() || url.password().is_some() {
            "the URL contains a user name or a password; remove it".to_owned()
        } else if let Some(port) = url.port().filter(|port| address::is_bad_port(*port)) {
            format!("port {port} is not allowed")
        } else if let Some(hosts) = self
            .settings
            .hosts
            .as_ref()
            .filter(|hosts| !is_known(hosts))
        {
            format!("allowed hosts are {}", hosts.join(", "))
        } else {
            // The resolver does not see literal addresses.
            let literal = host.trim_start_matches('[').trim_end_matches(']');
            let literal: Option<IpAddr> = literal.parse().ok();
            let is_public = |address: IpAddr| self.settings.private || may_be_asked(address);
            return match literal {
                Some(address) if !is_public(address) => Err(refused(host)),
                _ => Ok(()),
            };
        };
        Err(format!("{} cannot be fetched: {why}", named(url.as_str())))
    }
}

/// Whether a host matches a pattern; `*.example.org` matches all subdomains of `example.org`.
fn is_host(known: &str, host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let known = known.to_ascii_lowercase();
    match known.strip_prefix('*') {
        Some(end) if end.starts_with('.') => host.len() > end.len() && host.ends_with(end),
        _ => known == host,
    }
}

/// Whether a redirect only changes `http` to `https`. Rules and approval apply to any other URL.
fn is_secured(from: &Url, to: &Url) -> bool {
    let mut secured = from.clone();
    // The fragment is kept unless the redirect has its own.
    secured.set_fragment(to.fragment());
    let is_changed = from.scheme() == "http" && secured.set_scheme("https").is_ok();
    is_changed && from.port().is_none() && secured == *to
}

fn leads_on(from: &Url, to: &Url) -> String {
    let name = named(from.as_str());
    if from == to {
        return format!("{name} redirects to itself");
    }
    let is_elsewhere = from.host_str() != to.host_str() || from.port() != to.port();
    let another = if is_elsewhere { "another server: " } else { "" };
    // In full, so that the model can copy it.
    format!("{name} redirects to {another}`{to}`; fetch that URL to follow it")
}

fn redirect(answer: &HttpResponse, url: &Url) -> Result<Option<Url>, String> {
    if !matches!(answer.status(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = answer.headers().get(LOCATION) else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let next = url.join(&location).map_err(|_| {
        format!(
            "{} redirects to {}, which is not a valid URL",
            named(url.as_str()),
            named(location.as_ref())
        )
    })?;
    Ok(Some(next))
}

fn failure(error: &HttpError, url: &Url) -> String {
    if error.kind() == HttpErrorKind::NotAllowed {
        return refused(url.host_str().unwrap_or_default());
    }
    let text = error.message_for(&format!("the server of {}", named(url.as_str())));
    format!("{text}; try again later, or try another page")
}

async fn read(mut answer: HttpResponse, url: Url) -> ToolResult {
    let kind = Kind::of(answer.headers());
    let name = named(url.as_str());
    let status = answer.status();
    let is_good = (200..300).contains(&status);
    if let Some(encoding) = answer.encoding() {
        let encoding = named(&encoding);
        return Err(format!("{name} has the unsupported encoding {encoding}").into());
    }
    if is_good && !kind.is_text() {
        let essence = named(&kind.essence);
        return Err(format!("{name} is {essence}, not text").into());
    }
    let mut body = Vec::new();
    let mut is_truncated = false;
    while let Some(piece) = answer
        .piece()
        .await
        .map_err(|error| failure(&error, &url))?
    {
        let room = LONGEST - body.len();
        body.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if piece.len() > room {
            is_truncated = true;
            break;
        }
    }
    let length = body.len();
    let why_binary = why_binary(&body);
    if let Some(why) = why_binary.filter(|_| is_good) {
        return Err(format!("{name} is not text: {why}").into());
    }
    let essence = kind.essence.clone();
    let readable = if kind.is_text() && why_binary.is_none() {
        // Parsing a long page takes time.
        let read = spawn_blocking(move || kind.text(&body, &url)).await;
        read.map_err(|_| format!("{name} could not be parsed"))?
    } else {
        Readable::default()
    };
    let mut text = readable.text;
    is_truncated |= readable.is_truncated;
    if !is_good {
        let reason = StatusCode::from_u16(status).ok();
        let reason = reason.and_then(|status| status.canonical_reason());
        let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
        let begin = text
            .get(..text.floor_char_boundary(OF_AN_ERROR))
            .unwrap_or_default();
        let output = Some(begin.to_owned()).filter(|begin| !begin.trim().is_empty());
        return Err(
            Failure::new(format!("{name} returned status {status}{reason}"), output).into(),
        );
    }
    let mut note = format!("{name}, {essence}, {}", count(length, "byte"));
    if is_truncated {
        note.push_str(", truncated");
    }
    if readable.lacks_addresses {
        note.push_str(", last links without URLs");
    }
    end_line(&mut text);
    Ok(format!("[{note}]\n{text}"))
}

#[derive(Debug, PartialEq, Eq)]
struct Kind {
    /// The media type in lower case, without parameters.
    essence: String,
    charset: Option<String>,
}

impl Kind {
    fn of(headers: &HeaderMap) -> Self {
        let value = headers.get(CONTENT_TYPE);
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

    fn text(&self, body: &[u8], url: &Url) -> Readable {
        let text = page::decoded(body, self.charset.as_deref());
        if matches!(self.essence.as_str(), "text/html" | "application/xhtml+xml") {
            return page::readable(&text, url);
        }
        Readable {
            text,
            ..Readable::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::{is_host, is_secured};

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
    fn an_upgrade_to_https_is_followed() {
        for (from, to, expected) in [
            ("http://a.b/x?y", "https://a.b/x?y", true),
            ("http://a.b", "https://A.B:443/", true),
            ("http://a.b/x#part", "https://a.b/x", true),
            ("http://a.b/x", "https://a.b/y", false),
            ("http://a.b/x", "https://a.b/x?y", false),
            ("http://a.b/x", "https://a.b/x/", false),
            ("http://a.b/x", "http://a.b/x", false),
            ("https://a.b/x", "https://a.b/x", false),
            ("https://a.b/x", "http://a.b/x", false),
            ("http://a.b/x", "https://a.b:8080/x", false),
            ("http://a.b:8080/x", "https://a.b/x", false),
            ("http://a.b:8080/x", "https://a.b:8080/x", false),
            ("http://a.b/x", "https://c.a.b/x", false),
        ] {
            let url = |text| Url::parse(text).unwrap();
            assert_eq!(is_secured(&url(from), &url(to)), expected, "{from} {to}");
        }
    }
}
