//! Which requests belong to the translated APIs.

use percent_encoding::percent_decode_str;
use plaincall_wire::paths::{self, after_base};

use crate::api::ClientApi;

/// Azure has the Responses API below this segment, without a version.
const AZURE: &str = "openai";

/// The request of a path.
#[derive(Clone, Copy)]
pub(crate) enum Target<'p> {
    /// A request of an API, and the base of its path.
    Ask(ClientApi, &'p str),
    /// A request for the number of tokens of a request to Messages, and the base of its path.
    CountTokens(&'p str),
    /// Another request of an API, which the model server does not have.
    Unsupported(ClientApi),
}

/// A path that may be that of an API.
#[derive(Clone, Copy)]
pub(crate) struct Found<'p> {
    pub(crate) target: Target<'p>,
    /// Whether the path alone decides. Other programs have `/messages` and `/responses` too: below other bases, requests with tools
    /// belong to the API, and all others do not. So it is with Ollama's path; its server answers requests without tools.
    pub(crate) is_certain: bool,
}

/// Returns the last segments of an API's path, without the version. Ollama's has none.
pub(crate) fn suffix(api: ClientApi) -> &'static str {
    after_base(api.path())
}

/// Returns the base of chat completions for the base of this API. That of Ollama has no version.
pub(crate) fn api_base(api: ClientApi, base: &str) -> String {
    match api {
        ClientApi::Ollama => [base, paths::VERSION].concat(),
        _ => base.to_owned(),
    }
}

/// Returns the base of this API for that of chat completions.
pub(crate) fn client_base(api: ClientApi, base: &str) -> Option<&str> {
    match api {
        ClientApi::Ollama => base.strip_suffix(paths::VERSION),
        _ => Some(base),
    }
}

/// Returns what a path may be, or `None` if it is not that of an API.
pub(crate) fn find(path: &str) -> Option<Found<'_>> {
    exact(path).or_else(|| similar(path))
}

/// Returns a segment without parameters, and without dots, spaces and control characters around it.
fn plain_segment(segment: &str) -> &str {
    let name = segment.split(';').next().unwrap_or_default();
    name.trim_matches(|one: char| one == '.' || one.is_whitespace() || one.is_control())
}

/// Returns what a path may be that a tolerant server takes for another: in upper case, encoded, with empty segments, or with
/// parameters. It has no base, so requests with tools are rejected.
fn similar(path: &str) -> Option<Found<'static>> {
    let decoded = percent_decode_str(path).decode_utf8_lossy().to_lowercase();
    let segments = decoded.split(['/', '\\']).map(plain_segment);
    let segments = segments.filter(|one| !one.is_empty());
    let plain: String = segments.flat_map(|one| ["/", one]).collect();
    let api = match exact(&plain)?.target {
        Target::Ask(api, _) | Target::Unsupported(api) => api,
        Target::CountTokens(_) => ClientApi::Messages,
    };
    Some(Found {
        target: Target::Unsupported(api),
        is_certain: false,
    })
}

fn exact(path: &str) -> Option<Found<'_>> {
    let path = path.trim_end_matches('/');
    let exact = ClientApi::ALL.into_iter().find_map(|api| {
        let base = path.strip_suffix(suffix(api))?;
        let is_certain = match api {
            ClientApi::Chat => true,
            ClientApi::Ollama => false,
            _ => base.is_empty() || is_api_base(base),
        };
        let target = Target::Ask(api, base);
        Some(Found { target, is_certain })
    });
    let below = [ClientApi::Responses, ClientApi::Messages].map(|api| below(api, path));
    let found: Vec<Found<'_>> = exact
        .into_iter()
        .chain(below.into_iter().flatten())
        .collect();
    let certain = found.iter().find(|one| one.is_certain);
    certain.or(found.first()).copied()
}

/// Returns what a path may be that is below this API's.
fn below(api: ClientApi, path: &str) -> Vec<Found<'_>> {
    let with_slash = format!("{}/", suffix(api));
    let places = path.match_indices(&with_slash);
    let found = places.filter_map(|(at, _)| {
        let (base, rest) = path.split_at_checked(at)?;
        let is = |known: &&str| after_base(known) == rest;
        let target = if is(&paths::COUNT_TOKENS) {
            Target::CountTokens(base)
        } else {
            Target::Unsupported(api)
        };
        let is_known = paths::BELOW_REPLIES.iter().any(is);
        let is_certain = is_api_base(base) || base.is_empty() && is_known;
        Some(Found { target, is_certain })
    });
    found.collect()
}

/// Returns whether only APIs are below a base: it ends in a version, or is that of Azure.
fn is_api_base(base: &str) -> bool {
    let last = base.rsplit('/').next().unwrap_or_default();
    is_version(last) || last == AZURE
}

/// Returns whether a segment of a path is a version, such as `v1` or `v1beta`.
fn is_version(segment: &str) -> bool {
    let number = segment.strip_prefix('v').unwrap_or_default();
    number.starts_with(|first: char| first.is_ascii_digit())
        && number.chars().all(|one| one.is_ascii_alphanumeric())
}

/// Returns the base of the model server: that of the API without its version.
pub(crate) fn server_base(base: &str) -> &str {
    match base.rsplit_once('/') {
        Some((server, last)) if is_version(last) => server,
        _ => base,
    }
}
