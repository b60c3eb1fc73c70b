//! For any behavior of model server and client, each reply ends once and on time in each API, and nothing is left.
//!
//! The whole gateway runs in memory. Its output is compared with the output of the pure core for everything that the
//! server sent.

use std::time::Duration;

use http::Request;
use plaincall_gateway::Body;
use plaincall_gateway::translation::{Adapter, AskEnd, Asked, ClientApi, Flow};
use plaincall_gateway::{Counts, ModelSettings, Secret};
use plaincall_reply::Stop;
use plaincall_reply::rescue::{RescueReader, Rescued};
use plaincall_syntax::Dialect;
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::cases::{Playing, cases};
use plaincall_testkit::model_server::{Drawn, Script};
use plaincall_testkit::strict_client::Recorded;
use plaincall_wire::sse::Limits;
use serde_json::{Value, json};

use crate::apis::{ALL, asked, check_error, read_complete, read_stream, request};
use crate::native::model::native;
use crate::replies::arrived::{Answer, Arrived, arrive, read_server, with_known_reasons};
use crate::replies::chunks::without_ids;
use crate::replies::expected;
use crate::replies::memory::{Client, Played, TestGateway};
use crate::replies::model::{plan, streaming, tool_set};

pub(crate) const LIMITS: Limits = Limits::new().line(64 << 10).event(64 << 10);
/// More than the body of any error, less than a giant line.
pub(crate) const ANSWER: usize = 90_000;
pub(crate) const FIRST_BYTE: Duration = Duration::from_mins(1);
pub(crate) const IDLE: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(7);
/// The time limit for data after the end of a reply.
const LATE: Duration = Duration::from_secs(5);
/// The most bytes of a forwarded answer that are held until more arrives.
const HELD: usize = 300;
/// The length of `<!doctype html`.
const PAGE_BEGIN: usize = 14;
/// The tolerance for times: the clock counts milliseconds, and each wait may take one more.
const ABOUT: Duration = Duration::from_millis(50);

/// The expected result of an answer.
struct Expected {
    bytes: Vec<u8>,
    counts: Counts,
    /// The status of an error, its time, and whether the status can still be sent.
    failed: Option<(u16, Duration, bool)>,
    rounds: usize,
    /// The part of each answer that was read.
    taken: Vec<Vec<u8>>,
    /// Whether something arrives just when its deadline expires.
    is_close: bool,
}

/// The data after the end of a reply for which the gateway waits. The client takes this time to read a piece.
fn in_time(pieces: &[(Duration, Vec<u8>)], wait: Duration, asked: &mut Asked) -> InTime {
    let mut found = InTime::default();
    let mut until = Duration::MAX;
    for (at, bytes) in pieces {
        // It may read several pieces before the gateway looks for more data.
        found.is_close |= at.abs_diff(until) <= ABOUT + wait * 4;
        if *at > until {
            found.over = Some(until);
            break;
        }
        found.taken.extend_from_slice(bytes);
        match asked.feed(bytes) {
            Flow::Continue => {}
            Flow::UsageOnly => until = until.min(*at + LATE),
            _ => {
                found.over = Some(*at);
                break;
            }
        }
    }
    found.until = until;
    found
}

#[derive(Default)]
struct InTime {
    taken: Vec<u8>,
    /// The time at which the gateway stopped reading, if it did.
    over: Option<Duration>,
    /// The time limit for more data.
    until: Duration,
    is_close: bool,
}

/// Returns the core's output for these answers, streamed as they arrive, or each at once.
fn expect(case: &Case, adapter: &Adapter, at_once: Option<&[Vec<u8>]>) -> Expected {
    let mut asked = asked(adapter, case.api, &case.body());
    let mut time = Duration::ZERO;
    let mut bodies = Vec::new();
    let mut is_close = false;
    for rounds in 1.. {
        let arrived = case.arrived(rounds);
        let is_whole = arrived.is_json || !case.is_streamed;
        let mut taken = arrived.time;
        let mut body = Vec::new();
        let end = if let Some(failure) = arrived.refused {
            asked.end(Some(failure))
        } else if is_whole {
            asked.begin_answer(false);
            match arrived.whole() {
                Ok(body) => {
                    let _ = asked.feed(&body);
                    asked.end(None)
                }
                Err(failure) => asked.end(Some(failure)),
            }
        } else {
            asked.begin_answer(true);
            let pieces = match at_once {
                Some(bodies) => vec![(arrived.time, bodies[rounds - 1].clone())],
                None => arrived.pieces,
            };
            let wait = match case.client {
                Client::Reads(wait) => wait,
                Client::Leaves(_) | Client::Stops(_) => Duration::ZERO,
            };
            let found = in_time(&pieces, wait, &mut asked);
            is_close |= found.is_close;
            taken = found.over.unwrap_or(arrived.time.min(found.until));
            body = found.taken;
            let broken = arrived.broken.filter(|_| found.over.is_none());
            asked.end(broken)
        };
        time += taken;
        bodies.push(body);
        let failed = match end {
            AskEnd::Again => continue,
            AskEnd::Done => None,
            AskEnd::Refused(error) => Some((error.status, time, !asked.has_begun())),
            _ => unreachable!("there are no other ends"),
        };
        return Expected {
            bytes: asked.take(),
            counts: asked.counts(),
            failed,
            rounds,
            taken: bodies,
            is_close,
        };
    }
    unreachable!("there are not so many rounds")
}

/// Returns the calls in texts of native mode.
fn rescued(texts: &[String]) -> Vec<(String, String)> {
    let reader = RescueReader::new(Some(["<think>", "</think>"].map(str::to_owned))).unwrap();
    let mut reader = reader.with_tools(tool_set());
    let mut found = Vec::new();
    for text in texts {
        found.extend(reader.feed(text));
        found.extend(reader.flush(true));
    }
    let calls = found.into_iter().flat_map(|one| match one {
        Rescued::Calls { calls, .. } => calls,
        _ => Vec::new(),
    });
    calls
        .map(|call| (call.name, call.arguments.to_value().to_string()))
        .collect()
}

/// How the gateway reads the model's calls.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// From text, with checked arguments.
    Checked,
    /// From text, with streamed arguments.
    Streamed,
    Native,
}

/// One case: the request, the behavior of the server, the behavior of the client.
struct Case {
    api: ClientApi,
    is_streamed: bool,
    mode: Mode,
    fields: Value,
    has_tools: bool,
    scripts: Vec<Script>,
    client: Client,
}

impl Case {
    fn new(seed: u64, api: ClientApi) -> Self {
        let mut random = Random::new(seed);
        let is_streamed = !random.one_in(3);
        let mut fields = json!({"stream": is_streamed});
        if is_streamed && random.one_in(2) {
            fields["stream_options"] = json!({"include_usage": true});
        }
        match random.below(8) {
            0 => fields["tool_choice"] = json!("none"),
            1 => fields["tool_choice"] = json!("required"),
            2 => fields["parallel_tool_calls"] = json!(false),
            _ => {}
        }
        let mode = match random.below(5) {
            0 | 1 => Mode::Checked,
            2 | 3 => Mode::Streamed,
            _ => Mode::Native,
        };
        match mode {
            Mode::Checked => {}
            Mode::Streamed => fields["model"] = json!("streaming"),
            Mode::Native => fields["model"] = json!("native"),
        }
        // Arguments that are an object are not streamed.
        let mode = match mode {
            Mode::Streamed if api == ClientApi::Ollama => Mode::Checked,
            other => other,
        };
        let mut scripts: Vec<Script> = (0..=random.below(3))
            .map(|_| script(&mut random, is_streamed, mode))
            .collect();
        let milliseconds =
            |most: usize, random: &mut Random| Duration::from_millis(random.below(most) as u64);
        let client = match random.below(12) {
            0 => Client::Leaves(milliseconds(5, &mut random)),
            1 => Client::Leaves(milliseconds(70_000, &mut random)),
            2 => Client::Stops(random.below(4)),
            3 => Client::Reads(milliseconds(5000, &mut random)),
            _ => Client::Reads(Duration::ZERO),
        };
        if let Client::Reads(wait) = client {
            for script in &mut scripts {
                delay(script, wait);
            }
        }
        Self {
            api,
            is_streamed,
            mode,
            fields,
            has_tools: !random.one_in(8),
            scripts,
            client,
        }
    }

    fn body(&self) -> Value {
        let mut body = request(self.api, &self.fields);
        if !self.has_tools {
            body["tools"] = json!([]);
            body["tool_choice"] = Value::Null;
        }
        body
    }

    fn play(&self, gateway: &TestGateway) -> Played {
        let request = Request::post(self.api.path());
        let request = request.body(Body::from(self.body().to_string())).unwrap();
        gateway.play(request, self.scripts.clone(), self.client)
    }

    /// Returns the answer of this round, counted from 1.
    fn arrived(&self, round: usize) -> Arrived {
        arrive(&self.scripts[round.min(self.scripts.len()) - 1])
    }

    /// Returns whether request and answer are forwarded unchanged.
    fn is_forwarded(&self) -> bool {
        let allows_none = self.fields.get("tool_choice") == Some(&json!("none"));
        let has_calls = self.has_tools && !(self.mode == Mode::Native && allows_none);
        self.api == ClientApi::Chat && !has_calls
    }

    fn includes_usage(&self) -> bool {
        self.fields.get("stream_options").is_some()
    }

    fn read(&self, bytes: &[u8]) -> Recorded {
        without_ids(read_stream(self.api, bytes, self.includes_usage()))
    }

    fn check(&self, played: &Played, adapter: &Adapter, dialect: &Dialect) {
        let Played { got, report, .. } = played;
        self.check_time(played);
        assert_eq!(report.is_streamed, self.is_streamed);
        if got.end.is_none() {
            // The client has disconnected. If the gateway has not noticed, it has sent everything.
            assert!(report.is_abandoned || report.status != 499);
            assert!(got.status.is_some() || report.is_abandoned);
            return;
        }
        assert!(!report.is_abandoned);
        assert_eq!(Some(report.status), got.status);
        if got.status != Some(200) {
            assert_eq!(got.end, Some(Ok(())));
            check_error(self.api, &got.bytes);
            assert!(report.error.is_some());
        }
        if self.is_forwarded() {
            assert!(!report.is_translated);
            return self.check_as_it_came(played);
        }
        assert_eq!(report.is_translated, self.mode != Mode::Native);
        let expected = expect(self, adapter, None);
        let mut counts = report.counts;
        assert!(counts.prompt_bytes > 0);
        // Only the server counts prompts.
        counts.prompt_bytes = 0;
        assert_eq!(counts, expected.counts);
        assert_eq!(played.requests.len(), expected.rounds);
        assert_eq!(report.error.is_some(), expected.failed.is_some());
        match expected.failed {
            _ if self.is_streamed => self.check_streamed(played, &expected, adapter, dialect),
            Some((status, ..)) => assert_eq!(got.status, Some(status)),
            None => assert_eq!(
                read_complete(self.api, &got.bytes),
                read_complete(self.api, &expected.bytes)
            ),
        }
    }

    /// No wait exceeds its setting.
    fn check_time(&self, played: &Played) {
        let upstream: Duration = (0..played.requests.len())
            .map(|round| {
                let script = &self.scripts[round.min(self.scripts.len() - 1)];
                let waits = script.pieces.iter().filter(|piece| !piece.after.is_zero());
                // The clock counts milliseconds: each wait may take one more.
                arrive(script).time + Duration::from_millis(3 + waits.count() as u64)
            })
            .sum();
        let client = match self.client {
            Client::Reads(wait) => {
                let pieces = u32::try_from(played.got.pieces).unwrap() + 1;
                (wait + Duration::from_millis(1)) * pieces
            }
            Client::Leaves(_) => Duration::from_millis(1),
            // An abandoned response is detected once per second.
            Client::Stops(_) => IDLE + Duration::from_secs(1),
        };
        assert!(
            played.time <= upstream + client,
            "{:?} is more than {upstream:?} and {client:?}",
            played.time
        );
    }

    fn check_as_it_came(&self, played: &Played) {
        let arrived = arrive(&self.scripts[0]);
        assert_eq!(played.requests.len(), 1);
        if let Some(failure) = arrived.refused {
            assert_eq!(played.got.status, Some(failure.status));
            return;
        }
        let body = arrived.body();
        // What may be a web page is read until that is known.
        if let Some(failure) = &arrived.broken
            && body.trim_ascii_start().len() < PAGE_BEGIN
            && played.got.status != Some(200)
        {
            assert_eq!(played.got.status, Some(failure.status));
            return;
        }
        if played.got.status == Some(502) {
            assert!(body.starts_with(b"<html"), "only a web page is an error");
            return;
        }
        assert_eq!(played.got.status, Some(200));
        let is_broken = arrived.broken.is_some();
        // Bytes that may begin the gateway's key or the name of a field are held. If the answer breaks there, they are dropped.
        let held = if is_broken { HELD } else { 0 };
        let body = with_known_reasons(&body);
        let missing = body.strip_prefix(&*played.got.bytes);
        let is_whole = missing.is_some_and(|missing| missing.len() <= held);
        assert!(is_whole, "{missing:?} of {} bytes", body.len());
        assert_eq!(
            played.got.end,
            Some(if is_broken { Err(()) } else { Ok(()) })
        );
        assert_eq!(played.report.error.is_some(), is_broken);
    }

    fn check_streamed(
        &self,
        played: &Played,
        expected: &Expected,
        adapter: &Adapter,
        dialect: &Dialect,
    ) {
        let got = &played.got;
        let mut without_error = self.read(&expected.bytes);
        let at_once = expect(self, adapter, Some(&expected.taken));
        assert_eq!(self.read(&at_once.bytes), without_error);
        without_error.error = None;
        if let Some((status, time, true)) = expected.failed {
            // After a keep-alive, the status 200 has been sent.
            if time + ABOUT < KEEP_ALIVE {
                assert_eq!(got.status, Some(status));
            }
            // A web page is known to be one before it ends.
            let is_page = self.arrived(expected.rounds).body().starts_with(b"<html");
            if time > KEEP_ALIVE + ABOUT && !is_page {
                assert_eq!(got.status, Some(200));
            }
            if got.status == Some(status) {
                return;
            }
        }
        assert_eq!(got.status, Some(200));
        let content_type = match self.api {
            ClientApi::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        assert_eq!(got.content_type, content_type);
        assert_eq!(got.end, Some(Ok(())));
        let mut recorded = self.read(&got.bytes);
        // Other tests cover messages about connections.
        let has_failed = recorded.error.take().is_some();
        assert_eq!(has_failed, expected.failed.is_some());
        let readable = recorded.clone();
        if expected.is_close {
            // Only the usage arrives this late.
            (recorded.usage, without_error.usage) = (None, None);
        }
        assert_eq!(recorded, without_error);
        self.check_calls(&readable, dialect, expected.rounds);
    }

    /// No call is readable that the model has not completed.
    fn check_calls(&self, recorded: &Recorded, dialect: &Dialect, rounds: usize) {
        if !self.has_tools && self.mode != Mode::Native {
            assert_eq!(recorded.calls, []);
            return;
        }
        let arrived = self.arrived(rounds);
        if arrived.is_json || arrived.refused.is_some() {
            return;
        }
        let Answer {
            texts,
            calls: native,
            reason,
        } = read_server(&arrived.body());
        if self.mode == Mode::Native {
            let rescued = rescued(&texts);
            for (name, arguments) in recorded.readable() {
                let is_same = |call: &(String, String)| {
                    let has_none = call.1.is_empty() && arguments == "{}";
                    call.0 == name && (call.1 == arguments || has_none)
                };
                let is_sent = native.iter().chain(&rescued).any(is_same);
                assert!(is_sent, "{name} {arguments} of {texts:?} and {native:?}");
            }
            return;
        }
        let text = texts.concat();
        let stop = match reason.as_deref() {
            None | Some("length" | "content_filter") => Stop::Broken,
            Some(_) => Stop::Natural,
        };
        let calls = expected::calls(&text, dialect, stop, tool_set());
        let calls: Vec<(String, String)> = calls.into_iter().flatten().collect();
        let is_auto = self
            .fields
            .get("tool_choice")
            .is_none_or(|choice| choice != "none");
        for call in recorded.readable() {
            assert!(is_auto);
            let whole = calls.iter();
            let mut whole = whole.map(|(name, arguments)| (&**name, &**arguments));
            assert!(whole.any(|one| one == call), "{call:?} of {text:?}");
        }
        let is_plain = is_auto && self.fields.get("parallel_tool_calls").is_none();
        // A more lenient reader may accept more of a truncated answer.
        let is_ended = reason.is_some() && recorded.finish_reason.is_some();
        if is_plain && self.mode == Mode::Streamed && is_ended {
            assert_eq!(recorded.readable().len(), calls.len(), "{text:?}");
        }
    }
}

/// A script with delays that exceed the settings, or stay below them.
fn script(random: &mut Random, is_streamed: bool, mode: Mode) -> Script {
    let drawn = match mode {
        Mode::Native => Drawn::native(random, is_streamed),
        _ => Drawn::new(random, is_streamed),
    };
    let mut script = drawn.script;
    if random.one_in(3) {
        let count = script.pieces.len();
        for _ in 0..random.below(4).min(count) {
            let after = Duration::from_millis(random.below(33_000) as u64);
            script.pieces[random.below(count)].after = after;
        }
        if let Some(head) = script.head.as_mut().filter(|_| random.one_in(2)) {
            head.after = Duration::from_millis(random.below(66_000) as u64);
        }
    }
    script
}

/// Delays what misses its deadline by the time for which a client does not read: meanwhile the gateway does not look at the
/// deadline, so what arrives in this time may still count.
fn delay(script: &mut Script, wait: Duration) {
    let late = |after: &mut Duration, deadline: Duration| {
        if *after > deadline {
            *after += wait;
        }
    };
    if let Some(head) = &mut script.head {
        late(&mut head.after, FIRST_BYTE);
    }
    for piece in &mut script.pieces {
        late(&mut piece.after, IDLE);
    }
}

#[test]
fn each_reply_ends_once() {
    let models = || {
        vec![
            ("streaming".to_owned(), streaming()),
            ("native".to_owned(), native()),
        ]
    };
    let gateway = TestGateway::new(|config| {
        config.models = models();
        // A request that keeps its slot would block the next one.
        config.limits.concurrent = 1;
        config.limits.stream = LIMITS;
        config.limits.answer = ANSWER;
        config.timeouts.first_byte = FIRST_BYTE;
        config.timeouts.idle = IDLE;
        config.timeouts.keep_alive = KEEP_ALIVE;
    });
    let adapter = Adapter::new(Secret::new("secret"), ModelSettings::default());
    let adapter = adapter.models(models());
    let adapter = adapter.stream_limits(LIMITS);
    let plan = plan(&json!({}), &ModelSettings::default());
    let mut counts = Counts::default();
    let (mut replies, mut errors, mut abandoned) = (0_u64, 0_u64, 0_u64);
    let seeds = cases("GATEWAY", 100);
    for seed in seeds.clone() {
        let _playing = Playing::new("GATEWAY", seed);
        for api in ALL {
            let case = Case::new(seed, api);
            let played = case.play(&gateway);
            case.check(&played, &adapter, plan.dialect());
            let report = &played.report;
            replies += 1;
            counts += report.counts;
            errors += u64::from(report.error.is_some());
            abandoned += u64::from(report.is_abandoned);
        }
    }
    println!(
        "random servers: {} in each of {} APIs: {replies} replies, {} calls from text, {} native calls, {errors} errors, \
         {abandoned} abandoned",
        seeds.end - seeds.start,
        ALL.len(),
        counts.calls,
        counts.native_calls,
    );
}
