//! The host that a request names, so that no web page reads a gateway without keys under a name of its own (DNS rebinding).

use std::net::IpAddr;

use http::header::HOST;
use http::uri::Authority;
use http::{Request, Version};
use plaincall_wire::openai::ErrorObject;

use crate::error::GatewayError;

/// The domains that no page on the internet can have: this machine, and private networks.
const LOCAL_DOMAINS: [&str; 2] = ["localhost", "internal"];

/// Checks that a request that arrived over a socket names one host. If `only_local`, it must be an address or a local name: a
/// browser sends the name of its page, which rebinding cannot make an address.
pub(super) fn check<B>(request: &Request<B>, only_local: bool) -> Result<(), GatewayError> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (None, _) if request.version() < Version::HTTP_11 => return Ok(()),
        (Some(host), None) => host,
        (first, _) => {
            let found = if first.is_none() { "no" } else { "several" };
            let message = format!("the request has {found} `Host` headers: send exactly one");
            return Err(GatewayError::invalid_request(message, None));
        }
    };
    let host = host.to_str().ok();
    let host = host.and_then(|host| host.parse::<Authority>().ok());
    let target = request.uri().authority();
    let is_local = host.as_ref().is_some_and(is_local) && target.is_none_or(is_local);
    if !only_local || is_local {
        return Ok(());
    }
    let message = "requests for this host are not allowed without keys: use `localhost` or an IP address in the URL; the operator \
                   of the gateway can require keys (`keys_file`), or allow all hosts (`--open`)";
    let error = ErrorObject::new("permission_error", message);
    Err(GatewayError::new(403, error.code("host_not_allowed")))
}

fn is_local(authority: &Authority) -> bool {
    let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_address = address.unwrap_or(&host).parse::<IpAddr>().is_ok();
    let domain = host.rsplit('.').next().unwrap_or_default();
    is_address || LOCAL_DOMAINS.contains(&domain)
}

#[cfg(test)]
mod tests {
    use http::{Request, Version};

    use super::check;

    #[test]
    fn the_host_of_a_request() {
        for (hosts, only_local, expected) in [
            (&["127.0.0.1:8080"][..], true, 200),
            (&["[::1]:8080"], true, 200),
            (&["192.168.1.5"], true, 200),
            (&["LocalHost:8080"], true, 200),
            (&["localhost."], true, 200),
            (&["chat.localhost"], true, 200),
            (&["host.docker.internal:8080"], true, 200),
            (&["evil.example:8080"], true, 403),
            (&["localhost.evil.example"], true, 403),
            (&["127.0.0.1.evil.example"], true, 403),
            (&["127.0.0.1@evil.example"], true, 403),
            (&["evil.example@127.0.0.1", "x"], true, 400),
            (&["internal.example"], true, 403),
            (&["plaincall"], true, 403),
            (&[""], true, 403),
            (&["evil.example"], false, 200),
            (&[""], false, 200),
            (&["localhost", "localhost"], false, 400),
            (&[], false, 400),
        ] {
            let mut request = Request::get("/v1/models");
            for host in hosts {
                request = request.header("host", *host);
            }
            let checked = check(&request.body(()).unwrap(), only_local);
            let status = checked.map_or_else(|error| error.status, |()| 200);
            assert_eq!(status, expected, "{hosts:?}");
        }
        // An older client names no host; browsers do.
        let older = Request::get("/health").version(Version::HTTP_10);
        assert_eq!(check(&older.body(()).unwrap(), true), Ok(()));
        // The target replaces the host.
        let absolute = Request::get("http://evil.example/metrics").header("host", "localhost");
        assert!(check(&absolute.body(()).unwrap(), true).is_err());
    }
}
