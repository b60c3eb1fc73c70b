//! Model servers: which run on this machine, and which models a server offers.

use std::time::Duration;

use plaincall_agent::http::http::header::{AUTHORIZATION, HeaderValue};
use plaincall_agent::http::http::{Method, Request};
use plaincall_agent::http::{Bytes, HttpClient, Waits, base_url, paths};
use plaincall_config::settings::Api;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::environment::Environment;

/// The maximum size of a list of models, in bytes.
const MAX_LIST: usize = 4 << 20;
/// The maximum number of models of one server. The rest of a longer list is ignored.
const MAX_MODELS: usize = 2_000;

/// The variable with the address of Ollama, which Ollama's own clients read.
const OLLAMA_HOST: &str = "OLLAMA_HOST";
const OLLAMA_PORT: u16 = 11434;
/// The name of the server whose models need no table and no URL.
pub(crate) const OLLAMA: &str = "Ollama";

/// Model servers that run on this machine, and their usual ports. The first has priority.
pub(crate) const LOCAL_SERVERS: [(&str, u16); 4] = [
    (OLLAMA, OLLAMA_PORT),
    ("llama.cpp", 8080),
    ("LM Studio", 1234),
    ("vLLM", 8000),
];

/// A model server on this machine.
#[derive(Clone, Debug)]
pub(crate) struct LocalServer {
    pub(crate) name: String,
    /// The base URL, up to `/v1`.
    pub(crate) url: String,
    /// The ids of its models.
    pub(crate) models: Vec<String>,
}

/// A request for the models of a server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ModelsRequest {
    /// The base URL, up to `/v1`.
    pub(crate) url: String,
    pub(crate) api: Api,
    pub(crate) key: Option<String>,
}

/// The models of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offer {
    /// The ids of the models.
    pub(crate) models: Vec<String>,
    /// The owner that the server gives for its first model. vLLM, llama.cpp and Plaincall give their own names.
    owner: String,
}

impl ModelsRequest {
    /// Asks the server. The error is a sentence without the URL, which may contain a secret.
    pub(crate) async fn send(
        &self,
        client: &HttpClient,
        timeout: Duration,
    ) -> Result<Offer, String> {
        let (base, query) = base_url(&self.url)?;
        let query = query.map_or(String::new(), |query| format!("?{query}"));
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = Method::GET;
        let address = format!("{base}{}{query}", paths::after_base(paths::MODELS));
        *request.uri_mut() = address
            .parse()
            .map_err(|_| "its address is invalid".to_owned())?;
        let headers = request.headers_mut();
        if self.api == Api::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        if let Some(key) = &self.key {
            let (name, text) = match self.api {
                Api::Anthropic => ("x-api-key", key.clone()),
                Api::OpenAi => (AUTHORIZATION.as_str(), format!("Bearer {key}")),
            };
            let mut value = HeaderValue::from_str(&text)
                .map_err(|_| "its key has characters that a header cannot have".to_owned())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        // The limit is for the whole answer: a server that sends byte by byte must not delay the command either.
        let response = client.send(request, Waits::all(timeout)).await;
        let mut response = response.map_err(|error| error.message_for("it"))?;
        match response.status() {
            200 => {}
            401 | 403 => return Err("it requires another key".to_owned()),
            status => return Err(format!("it returned status {status}")),
        }
        let body = response.body(Vec::new(), MAX_LIST).await;
        let body = body.map_err(|error| error.message_for("it"))?;
        Offer::read(&body).ok_or_else(|| "its list of models is not valid".to_owned())
    }
}

impl Offer {
    /// Reads a list of models in either format.
    fn read(body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let list = match body.get("data")? {
            Value::Array(list) => list.as_slice(),
            // Ollama without models.
            Value::Null => &[],
            _ => return None,
        };
        let text = |model: &Value, key: &str| model.get(key)?.as_str().map(str::to_owned);
        let models = list.iter().filter_map(|model| text(model, "id"));
        let owner = list.first().and_then(|model| text(model, "owned_by"));
        Some(Self {
            models: models.take(MAX_MODELS).collect(),
            owner: owner.unwrap_or_default(),
        })
    }
}

/// Looks for model servers on the usual local ports, all at once. Returns them in the order of [`LOCAL_SERVERS`].
pub(crate) async fn find_local_servers(
    client: &HttpClient,
    environment: &Environment,
    timeout: Duration,
) -> Vec<LocalServer> {
    let ollama = ollama_host(environment);
    let addresses = LOCAL_SERVERS.map(|(name, port)| match &ollama {
        Some(address) if port == OLLAMA_PORT => (name, address.clone()),
        _ => (name, format!("http://localhost:{port}")),
    });
    find_at(client, addresses, timeout).await
}

/// Returns the address of Ollama, without `/v1`, if `OLLAMA_HOST` is set.
pub(crate) fn ollama_host(environment: &Environment) -> Option<String> {
    let host = environment.get(OLLAMA_HOST)?.to_str()?;
    Some(ollama_address(host))
}

/// Returns the base address for `OLLAMA_HOST`: a host, a host and a port, or a URL.
fn ollama_address(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, authority, default_port) = match host.split_once("://") {
        Some(("https", authority)) => ("https", authority, 443),
        Some((_, authority)) => ("http", authority, 80),
        None => ("http", host, OLLAMA_PORT),
    };
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => (name, port.to_owned()),
        _ => (authority, default_port.to_string()),
    };
    // A server listens on these addresses; a client cannot use them.
    let name = match name {
        "" | "0.0.0.0" | "[::]" => "localhost",
        name => name,
    };
    format!("{scheme}://{name}:{port}")
}

async fn find_at(
    client: &HttpClient,
    addresses: impl IntoIterator<Item = (&'static str, String)>,
    timeout: Duration,
) -> Vec<LocalServer> {
    let mut requests = JoinSet::new();
    for (index, (name, address)) in addresses.into_iter().enumerate() {
        let client = client.clone();
        requests.spawn(async move {
            let found = find(&client, name, &address, timeout).await?;
            Some((index, found))
        });
    }
    let found = requests.join_all().await;
    let mut found: Vec<(usize, LocalServer)> = found.into_iter().flatten().collect();
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, server)| server).collect()
}

/// Returns the model server at an address without `/v1`, unless it is a gateway of this program.
async fn find(
    client: &HttpClient,
    usual_name: &str,
    address: &str,
    timeout: Duration,
) -> Option<LocalServer> {
    let request = ModelsRequest {
        url: format!("{address}/v1"),
        api: Api::OpenAi,
        key: None,
    };
    let (offer, is_plaincall) = tokio::join!(
        request.send(client, timeout),
        is_plaincall(client, address, timeout)
    );
    let offer = offer.ok().filter(|_| !is_plaincall)?;
    let name = match offer.owner.as_str() {
        "vllm" => "vLLM",
        "llamacpp" => "llama.cpp",
        "sglang" => "SGLang",
        _ => usual_name,
    };
    Some(LocalServer {
        name: name.to_owned(),
        url: request.url,
        models: offer.models,
    })
}

/// Returns whether the server is a gateway of this program, which passes on the models of another server.
async fn is_plaincall(client: &HttpClient, address: &str, timeout: Duration) -> bool {
    let Ok(request) = Request::get(format!("{address}/metrics")).body(Bytes::new()) else {
        return false;
    };
    let metrics = async {
        let response = client.send(request, Waits::all(timeout)).await;
        let mut response = response.ok().filter(|response| response.status() == 200)?;
        let body = response.body(Vec::new(), MAX_LIST).await.ok()?;
        memchr::memmem::find(&body, b"\nplaincall_")
    };
    let metrics = tokio::time::timeout(timeout, metrics).await;
    metrics.is_ok_and(|position| position.is_some())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use plaincall_agent::http::{HttpClient, HttpSettings};

    use super::{Offer, find_at, ollama_address};

    #[test]
    fn lists_of_models_are_read() {
        let table: [(&str, Option<&[&str]>); 6] = [
            (
                r#"{"data":[{"id":"a"},{"id":"b","owned_by":"x"}]}"#,
                Some(&["a", "b"]),
            ),
            (r#"{"object":"list","data":null}"#, Some(&[])),
            (
                r#"{"data":[{"name":"a"},{"id":1},{"id":"c"}]}"#,
                Some(&["c"]),
            ),
            (r#"{"data":"a"}"#, None),
            (r#"{"models":[]}"#, None),
            ("<html>", None),
        ];
        for (body, expected) in table {
            let offer = Offer::read(body.as_bytes());
            let models = offer.map(|offer| offer.models);
            let expected = expected.map(|models| models.iter().map(ToString::to_string).collect());
            assert_eq!(models, expected, "{body}");
        }
    }

    #[test]
    fn ollama_host_is_read_as_ollama_does() {
        for (host, expected) in [
            ("127.0.0.1:9999", "http://127.0.0.1:9999"),
            ("0.0.0.0", "http://localhost:11434"),
            (":12", "http://localhost:12"),
            ("[::1]:12", "http://[::1]:12"),
            ("[::1]", "http://[::1]:11434"),
            ("example.org", "http://example.org:11434"),
            ("https://example.org/", "https://example.org:443"),
            ("http://example.org:8000", "http://example.org:8000"),
        ] {
            assert_eq!(ollama_address(host), expected, "{host}");
        }
    }

    /// Starts a server that gives each path that it knows one answer, and ends with the test.
    fn server(answers: &'static [(&str, &str)]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 1000];
                let length = stream.read(&mut request).unwrap();
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let answer = answers.iter().find(|(known, _)| *known == path);
                let (status, body) =
                    answer.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", body));
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.write_all((head + body).as_bytes());
            }
        });
        address
    }

    #[tokio::test]
    async fn local_servers_are_found_at_once_and_gateways_are_not() {
        const LIST: &str = r#"{"data":[{"id":"m","owned_by":"vllm"}]}"#;
        // Accepts connections and never answers.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed_address = format!("http://{}", closed.local_addr().unwrap());
        drop(closed);
        let addresses = [
            ("silent", format!("http://{}", silent.local_addr().unwrap())),
            ("closed", closed_address),
            (
                "gateway",
                server(&[
                    ("/v1/models", LIST),
                    ("/metrics", "# HELP\nplaincall_requests 1\n"),
                ]),
            ),
            ("other", server(&[("/v1/models", r#"{"data":[]}"#)])),
            ("no model server", server(&[("/", "hello")])),
            ("renamed", server(&[("/v1/models", LIST)])),
        ];
        let client = HttpClient::new(&HttpSettings::default()).unwrap();
        let begun = Instant::now();
        let found = find_at(&client, addresses, Duration::from_secs(2)).await;
        assert!(
            begun.elapsed() < Duration::from_secs(4),
            "one after the other"
        );
        let found: Vec<(&str, usize)> = found
            .iter()
            .map(|server| (server.name.as_str(), server.models.len()))
            .collect();
        assert_eq!(found, [("other", 0), ("vLLM", 1)]);
    }
}
