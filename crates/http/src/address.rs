//! Checks URLs of model servers.

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
