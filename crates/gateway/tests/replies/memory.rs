//! The whole gateway in memory, with a stopped clock: a scripted model in the same process, and a client.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Body as HttpBody;
use hyper::body::Frame;
use plaincall_gateway::Body;
use plaincall_gateway::server::ResponseFuture;
use plaincall_gateway::{Gateway, GatewayConfig, LocalModel, Report, Secret, Upstream};
use plaincall_testkit::model_server::{Piece, Script, Then};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, Sleep, sleep};

/// A model that follows scripts, one for each request. After the last one, it repeats that one.
#[derive(Clone, Default)]
pub(crate) struct Model(Arc<Known>);

#[derive(Default)]
struct Known {
    scripts: Mutex<VecDeque<Script>>,
    requests: Mutex<Vec<Value>>,
    busy: AtomicUsize,
}

/// A request that is being answered, until it is dropped.
struct Busy(Arc<Known>);

impl Busy {
    fn new(known: &Arc<Known>) -> Self {
        known.busy.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(known))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LocalModel for Model {
    fn answer(&self, request: Request<Bytes>) -> ResponseFuture {
        let body = serde_json::from_slice(request.body()).expect("JSON");
        self.0.requests.lock().unwrap().push(body);
        let mut scripts = self.0.scripts.lock().unwrap();
        let script = match scripts.len() {
            1 => scripts.front().cloned(),
            _ => scripts.pop_front(),
        };
        let script = script.expect("a script");
        let busy = Busy::new(&self.0);
        Box::pin(async move {
            let Some(head) = script.head else {
                if script.then == Then::Stall {
                    std::future::pending::<()>().await;
                }
                return Err("the connection was closed".into());
            };
            sleep(head.after).await;
            let mut response = Response::builder().status(head.status);
            for (name, value) in head.headers {
                response = response.header(name, value);
            }
            Ok(response.body(Body::new(Playing {
                pieces: script.pieces.into(),
                then: script.then,
                wait: None,
                _busy: busy,
            }))?)
        })
    }
}

/// The body of an answer, as scripted. The delay before a piece begins when it is polled.
struct Playing {
    pieces: VecDeque<Piece>,
    then: Then,
    wait: Option<Pin<Box<Sleep>>>,
    _busy: Busy,
}

impl HttpBody for Playing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(piece) = self.pieces.front() else {
            return match self.then {
                Then::End => Poll::Ready(None),
                Then::Stall => Poll::Pending,
                Then::Break | Then::Reset => {
                    Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
                }
            };
        };
        let after = piece.after;
        if !after.is_zero() {
            let wait = self.wait.get_or_insert_with(|| Box::pin(sleep(after)));
            if wait.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        self.wait = None;
        let piece = self.pieces.pop_front().expect("it was there");
        Poll::Ready(Some(Ok(Frame::data(piece.bytes.into()))))
    }
}

/// The behavior of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Reads everything, each piece after a delay.
    Reads(Duration),
    /// Disconnects after this time.
    Leaves(Duration),
    /// Stays connected, and reads nothing after this many pieces.
    Stops(usize),
}

/// The response that a client received.
#[derive(Debug, Default)]
pub(crate) struct Got {
    /// None if it disconnected before.
    pub(crate) status: Option<u16>,
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) pieces: usize,
    /// The end, if it was received, and whether the response was truncated.
    pub(crate) end: Option<Result<(), ()>>,
}

/// The result of a request.
pub(crate) struct Played {
    pub(crate) got: Got,
    pub(crate) report: Report,
    /// The requests that the model got.
    pub(crate) requests: Vec<Value>,
    /// The duration on the stopped clock.
    pub(crate) time: Duration,
}

/// A gateway with its model and its observer.
pub(crate) struct TestGateway {
    runtime: Runtime,
    gateway: Gateway,
    model: Model,
    reports: Arc<Mutex<Vec<Report>>>,
}

impl TestGateway {
    pub(crate) fn new(set: impl FnOnce(&mut GatewayConfig)) -> Self {
        let model = Model::default();
        let mut config = GatewayConfig::new(Upstream::local(model.clone()), Secret::new("secret"));
        let reports: Arc<Mutex<Vec<Report>>> = Arc::default();
        let list = Arc::clone(&reports);
        config.observer =
            Arc::new(move |report: &Report| list.lock().unwrap().push(report.clone()));
        set(&mut config);
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        Self {
            runtime,
            gateway: Gateway::new(config).unwrap(),
            model,
            reports,
        }
    }

    /// Sends a request to the gateway; the model follows the scripts.
    ///
    /// # Panics
    /// Panics if anything is left afterwards, or if the request is not reported exactly once.
    pub(crate) fn play(
        &self,
        request: Request<Body>,
        scripts: impl IntoIterator<Item = Script>,
        client: Client,
    ) -> Played {
        *self.model.0.scripts.lock().unwrap() = scripts.into_iter().collect();
        self.model.0.requests.lock().unwrap().clear();
        self.reports.lock().unwrap().clear();
        let (got, time) = self.runtime.block_on(async {
            let started = Instant::now();
            let mut got = Got::default();
            let body = self.exchange(request, client, &mut got).await;
            while body.is_some() && self.reports.lock().unwrap().is_empty() {
                // The case checks that it is abandoned on time.
                sleep(Duration::from_secs(1)).await;
            }
            let time = started.elapsed();
            if let Some(body) = body {
                self.listen_again(body).await;
            }
            // The paused clock advances only when all tasks are idle.
            sleep(Duration::from_millis(1)).await;
            assert_eq!(
                self.model.0.busy.load(Ordering::Relaxed),
                0,
                "a request without a client"
            );
            (got, time)
        });
        assert_eq!(
            self.runtime.metrics().num_alive_tasks(),
            0,
            "tasks are left"
        );
        let mut reports = self.reports.lock().unwrap();
        assert_eq!(reports.len(), 1, "it is reported once");
        Played {
            got,
            report: reports.remove(0),
            requests: std::mem::take(&mut *self.model.0.requests.lock().unwrap()),
            time,
        }
    }

    /// Reads the rest of an abandoned response, which must not look complete.
    async fn listen_again(&self, mut body: Body) {
        let is_abandoned = self.reports.lock().unwrap()[0].is_abandoned;
        let end = loop {
            let next = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context));
            match next.await {
                Some(Ok(_)) => {}
                Some(Err(_)) => break Err(()),
                None => break Ok(()),
            }
        };
        assert!(
            !is_abandoned || end == Err(()),
            "a part is taken for the whole"
        );
    }

    /// Receives the response. Returns the rest of its body if the client stops reading.
    async fn exchange(
        &self,
        request: Request<Body>,
        client: Client,
        got: &mut Got,
    ) -> Option<Body> {
        let (wait, most, leaves) = match client {
            Client::Reads(wait) => (wait, usize::MAX, Duration::MAX),
            Client::Stops(pieces) => (Duration::ZERO, pieces, Duration::MAX),
            Client::Leaves(after) => (Duration::ZERO, usize::MAX, after),
        };
        let recorded = async {
            let response = self.gateway.handle(request).await;
            let (head, mut body) = response.into_parts();
            got.status = Some(head.status.as_u16());
            let content_type = head.headers.get("content-type");
            got.content_type =
                content_type.map_or(String::new(), |value| value.to_str().unwrap().to_owned());
            while got.pieces < most {
                if !wait.is_zero() {
                    sleep(wait).await;
                }
                let next = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context));
                match next.await {
                    Some(Ok(frame)) => {
                        got.bytes.extend_from_slice(frame.data_ref().expect("data"));
                        got.pieces += 1;
                    }
                    end => {
                        got.end = Some(end.map_or(Ok(()), |_| Err(())));
                        return None;
                    }
                }
            }
            Some(body)
        };
        // This drops everything that belongs to the request.
        tokio::time::timeout(leaves, recorded).await.unwrap_or(None)
    }
}
