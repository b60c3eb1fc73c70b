//! URLs of model servers.

use plaincall_wire::paths;

/// Checks the URL of a model server: `http://` or `https://` and a host, without a user name or a password.
///
/// # Errors
/// Returns a message that omits passwords and the query.
///
/// ```
/// # use plaincall_http::check_address;
/// assert!(check_address("http://localhost:11434/v1").is_ok());
/// let wrong = check_address("localhost:11434").unwrap_err();
/// assert!(wrong.ends_with("did you mean http://localhost:11434?"));
/// ```
pub fn check_address(url: &str) -> Result<(), String> {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, url),
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // Without a host, what looks like one may still hold a password.
    let shown_first = rest.trim_start_matches(['/', '\\']);
    let shown_first = shown_first
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    if host.contains('@') || shown_first.contains('@') {
        return Err("the URL of the model server contains a user name or a password, which others can read in the process list; pass the key separately".to_owned());
    }
    let shown = url.split(['?', '#']).next().unwrap_or_default();
    let is_http = |scheme: &str| ["http", "https"].contains(&&*scheme.to_ascii_lowercase());
    match scheme {
        None if !host.is_empty() => Err(format!(
            "{shown}: an address begins with http:// or https://; did you mean http://{shown}?"
        )),
        Some(scheme) if is_http(scheme) && !host.is_empty() => Ok(()),
        _ => Err(format!(
            "{shown}: expected an address that begins with http:// or https://, such as http://localhost:11434/v1"
        )),
    }
}

/// Returns the base URL of a model server, and its query, which may contain a key. The URL of an endpoint, such as
/// `/chat/completions`, counts as its base. The fragment and trailing slashes are dropped.
///
/// # Errors
/// Returns a message about an [invalid address](check_address).
///
/// ```
/// # use plaincall_http::base_url;
/// let (base, query) = base_url("https://a.example/v1/chat/completions?version=1")?;
/// assert_eq!((base, query), ("https://a.example/v1", Some("version=1")));
/// # Ok::<(), String>(())
/// ```
pub fn base_url(url: &str) -> Result<(&str, Option<&str>), String> {
    check_address(url)?;
    let url = url.split('#').next().unwrap_or_default();
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (url, None),
    };
    let base = base.trim_end_matches('/');
    // Documents of servers often show the whole URL.
    let endpoint = |path: &'static str| base.strip_suffix(paths::after_base(path));
    let base = paths::REPLIES
        .into_iter()
        .find_map(endpoint)
        .unwrap_or(base);
    Ok((base.trim_end_matches('/'), query))
}
