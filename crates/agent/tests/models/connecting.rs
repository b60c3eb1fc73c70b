//! How connections are made.

use std::process::Command;

use plaincall_agent::http::{HttpSettings, Proxy};
use plaincall_agent::model::OpenAi;
use plaincall_testkit::model_server::{ModelServer, Script};

use crate::models::received::ask;

fn through(proxy: Proxy) -> HttpSettings {
    let mut settings = HttpSettings::default();
    settings.proxy = Some(proxy);
    settings
}

#[tokio::test]
async fn through_a_proxy() {
    let hello = || Script::stream(&["Hello."], "stop");
    let proxy = ModelServer::start(vec![hello()]).await;
    let settings = through(Proxy::all(format!("http://name:word@{}", proxy.address)));
    let model = OpenAi::new("http://model.example/v1", "m").http(settings.clone());
    assert_eq!(ask(&model).await.text, "Hello.");
    let head = &proxy.seen().requests[0].head;
    assert!(
        head.starts_with("post http://model.example/v1/chat/completions http/1.1"),
        "{head}"
    );
    assert!(head.contains("proxy-authorization: basic "), "{head}");
    // Addresses of this machine are reached directly.
    let server = ModelServer::start(vec![hello()]).await;
    let model = OpenAi::new(server.url(), "m").http(settings);
    assert_eq!(ask(&model).await.text, "Hello.");
    assert_eq!(
        (server.seen().requests.len(), proxy.seen().requests.len()),
        (1, 1)
    );
    // So are excluded hosts.
    let mut except = Proxy::all(format!("http://{}", proxy.address));
    except.except = "other.example,.invalid".to_owned();
    let model = OpenAi::new("http://model.invalid/v1", "m").http(through(except));
    assert!(ask(&model).await.end.expect("an end").is_err());
    assert_eq!(proxy.seen().requests.len(), 1);
}

/// Connects to a server from the environment, which also names an invalid proxy and no certificates.
#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "the environment is what is tested, and this is its program"
)]
async fn the_environment_is_not_asked() {
    if let Ok(url) = std::env::var("PLAINCALL_TEST_SERVER") {
        let model = OpenAi::new(url, "m");
        assert_eq!(ask(&model).await.text, "Hello.");
        return;
    }
    let server = ModelServer::start(vec![Script::stream(&["Hello."], "stop")]).await;
    // By its name, so that no rule about this machine's own addresses hides it.
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again
        .args([
            "--exact",
            "models::connecting::the_environment_is_not_asked",
        ])
        .env("PLAINCALL_TEST_SERVER", server.url())
        .env("SSL_CERT_FILE", "/dev/null")
        .env("SSL_CERT_DIR", "/dev/null");
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "all_proxy",
    ] {
        again.env(name, "http://127.0.0.1:1");
    }
    let output = tokio::task::spawn_blocking(move || again.output());
    let output = output.await.expect("it ran").expect("it began");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(server.seen().requests.len(), 1);
}
