//! For any behavior of the model server, each client gets one complete response, and nothing is left.
//!
//! To run one case: `CHAOS_CASE=<number> cargo test -p plaincall-gateway serving::chaos`. To run more:
//! `CHAOS_CASES=<count>`.

use std::time::Duration;

use plaincall_gateway::ArgumentMode;
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::cases::{Playing, cases};
use plaincall_testkit::model_server::{Drawn, Framing, ModelServer, Then, Verdict};
use plaincall_testkit::strict_client::read_answer;
use plaincall_wire::sse;
use reqwest::Response;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::serving::test_gateway::{TestGateway, nothing_is_left, request};

/// The number of concurrent cases, each with its own servers.
const LANES: u64 = 4;
/// Much longer than any configured wait.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The gateway's timeout for servers that stall.
const SHORT: Duration = Duration::from_millis(250);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_client_gets_one_answer() {
    let cases = cases("CHAOS", 16);
    let lanes = (0..LANES).map(|lane| {
        let seeds = cases.clone().filter(move |seed| seed % LANES == lane);
        tokio::spawn(play(seeds))
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.unwrap();
    }
    // No connection and no request is active.
    let metrics = Handle::current().metrics();
    let ended = async {
        while metrics.num_alive_tasks() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ended = tokio::time::timeout(TIMEOUT, ended).await;
    assert!(
        ended.is_ok(),
        "{} tasks are left",
        metrics.num_alive_tasks()
    );
}

async fn play(seeds: impl Iterator<Item = u64>) {
    let server = ModelServer::start(vec![]).await;
    let mut gateways = Vec::new();
    for (mode, is_patient) in [
        (ArgumentMode::Stream, true),
        (ArgumentMode::Checked, true),
        (ArgumentMode::Stream, false),
        (ArgumentMode::Checked, false),
    ] {
        let gateway = TestGateway::before(&server, |config| {
            config.other_models.arguments = mode;
            config.limits.stream = sse::Limits::new().line(64 << 10).event(64 << 10);
            if !is_patient {
                config.timeouts.first_byte = SHORT;
                config.timeouts.idle = SHORT;
            }
        });
        gateways.push((mode, gateway.await));
    }
    let mut asked = 0;
    for seed in seeds {
        let mut random = Random::new(seed);
        let mode = random.below(2);
        let is_streamed = !random.one_in(3);
        let has_tools = !random.one_in(4);
        let drawn: Vec<Drawn> = (0..3)
            .map(|_| Drawn::new(&mut random, is_streamed))
            .collect();
        // Only for servers that stall, a short timeout does not change the result on a slow machine.
        let is_stalling = drawn.iter().any(|one| one.script.then == Then::Stall);
        let (mode, gateway) = &gateways[mode + 2 * usize::from(is_stalling)];
        server.play(drawn.iter().map(|one| one.script.clone()));
        let mut body = request(is_streamed);
        if !has_tools {
            body["tools"] = json!([]);
        }
        let expected = Expected {
            drawn: &drawn[0],
            is_streamed,
            is_checked: *mode == ArgumentMode::Checked || !is_streamed,
            is_stalling,
        };
        // Some clients do not wait for the end, or not even for the beginning.
        let idle_timeout = random.one_in(5).then(|| random.below(8));
        let _playing = Playing::new("CHAOS", seed);
        let exchange = async {
            if let Some(pieces) = idle_timeout {
                return leave(gateway, &server, &body, pieces).await;
            }
            let response = gateway.post(&body).await;
            if has_tools {
                expected.check(response).await;
            } else {
                expected.check_as_it_came(response).await;
            }
        };
        let ended = tokio::time::timeout(TIMEOUT, exchange).await;
        ended.expect("an end in time");
        asked += 1;
        nothing_is_left(gateway, &server).await;
    }
    assert_eq!(server.seen().surplus, 0);
    let mut reported = 0;
    for (_, mut gateway) in gateways {
        reported += gateway.reported();
        gateway.stop();
        gateway.ended().await;
    }
    assert_eq!(reported, asked, "each request is reported once");
    server.until(|seen| seen.open == 0).await;
}

/// Sends a request, reads at most this many pieces of the response, and disconnects.
async fn leave(gateway: &TestGateway, server: &ModelServer, body: &Value, pieces: usize) {
    let request = gateway.client.post(gateway.url("/v1/chat/completions"));
    let asked = request.body(body.to_string()).send();
    let Some(pieces) = pieces.checked_sub(1) else {
        let before = server.seen().requests.len();
        let is_asked = server.until(|seen| seen.requests.len() > before);
        tokio::select! {
            answer = asked => drop(answer),
            () = is_asked => {}
        }
        return;
    };
    let mut response = asked.await.unwrap();
    for _ in 0..pieces {
        if !matches!(response.chunk().await, Ok(Some(_))) {
            return;
        }
    }
}

/// The response that a client expects.
struct Expected<'d> {
    drawn: &'d Drawn,
    is_streamed: bool,
    is_checked: bool,
    /// The gateway has a short idle timeout, so it may stop early.
    is_stalling: bool,
}

impl Expected<'_> {
    /// A translated response.
    async fn check(&self, response: Response) {
        let status = response.status().as_u16();
        if status != 200 {
            return self.check_error(response).await;
        }
        let has_failed = if self.is_streamed {
            assert_eq!(response.headers()["content-type"], "text/event-stream");
            let recorded = read_answer(&response.bytes().await.unwrap(), false);
            if self.is_checked {
                for call in &recorded.calls {
                    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                    assert!(arguments.is_object());
                }
            }
            recorded.error.is_some()
        } else {
            let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
            assert_eq!(answer["object"], "chat.completion");
            assert!(answer["choices"][0]["finish_reason"].is_string());
            false
        };
        match self.drawn.verdict {
            // A retried request may fail.
            Verdict::Complete => assert!(!has_failed || self.is_checked || self.is_stalling),
            Verdict::Failed => assert!(has_failed),
            Verdict::Refused(status) => panic!("expected {status}"),
            Verdict::Either => {}
        }
    }

    async fn check_error(&self, response: Response) {
        let status = response.status().as_u16();
        assert_eq!(response.headers()["content-type"], "application/json");
        let retry_after = response.headers().get("retry-after").cloned();
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        let error = body["error"].as_object().unwrap();
        for field in ["message", "type", "param", "code"] {
            assert!(error.contains_key(field), "{field} in {body}");
        }
        assert!(!body["error"]["message"].as_str().unwrap().is_empty());
        match self.drawn.verdict {
            _ if self.is_stalling && status == 504 => {}
            Verdict::Refused(expected_status) => {
                assert_eq!(status, expected_status, "{body}");
                let head = self.drawn.script.head.as_ref().unwrap();
                let is_asked = head.headers.iter().any(|(name, _)| *name == "retry-after");
                assert_eq!(retry_after.is_some(), is_asked);
            }
            Verdict::Complete => assert!(self.is_checked, "{body}"),
            Verdict::Failed => assert!(matches!(status, 502 | 504), "{status}: {body}"),
            Verdict::Either => {}
        }
    }

    /// A forwarded response.
    async fn check_as_it_came(&self, mut response: Response) {
        let script = &self.drawn.script;
        let head = script.head.as_ref().filter(|head| head.status == 200);
        let Some(head) = head.filter(|_| response.status() == 200) else {
            assert!(head.is_none() || script.then == Then::Reset || self.is_stalling);
            return self.check_error(response).await;
        };
        let mut got = Vec::new();
        let is_whole = loop {
            match response.chunk().await {
                Ok(Some(piece)) => got.extend_from_slice(&piece),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let ends_anyway = head.framing == Framing::Close && script.then == Then::Break;
        if self.is_stalling && !is_whole {
            assert!(script.body().starts_with(&got));
        } else if script.then == Then::End || ends_anyway {
            assert!(is_whole && got == script.body());
        } else {
            assert!(!is_whole, "a truncated answer stays truncated");
            assert!(script.body().starts_with(&got));
        }
    }
}
