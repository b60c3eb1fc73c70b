//! A model is asked again if its reply has not begun, and never afterwards.

use std::time::Duration;

use plaincall::Stop;
use plaincall_agent::model::{
    Finish, Model, ModelError, ModelErrorKind, Retries, Retrying, Scripted, ScriptedReply, Usage,
};
use tokio::time::Instant;

use crate::models::received::{Received, ask, question};

fn busy() -> ModelError {
    ModelError::new(ModelErrorKind::Busy, "busy")
}

fn fails(kind: ModelErrorKind) -> ScriptedReply {
    ScriptedReply::error(ModelError::new(kind, "no"))
}

#[tokio::test(start_paused = true)]
async fn temporary_errors_are_retried() {
    let second = Duration::from_secs(1);
    for kind in [
        ModelErrorKind::Connect,
        ModelErrorKind::Busy,
        ModelErrorKind::Timeout,
        ModelErrorKind::Broken,
    ] {
        let script = Scripted::new([fails(kind), fails(kind), "Hello.".into()]);
        let begin = Instant::now();
        let received = ask(&Retrying::new(script.clone(), Retries::default())).await;
        assert_eq!(
            (received.text.as_str(), received.finish().stop),
            ("Hello.", Stop::Natural)
        );
        assert_eq!(script.requests().len(), 3);
        let attempts: Vec<u32> = received.retries.iter().map(|retry| retry.attempt).collect();
        assert_eq!(attempts, [1, 2]);
        assert!(
            received
                .retries
                .iter()
                .all(|retry| retry.max_retries == 4 && retry.error.kind == kind)
        );
        // Half of the delay is random.
        let pauses: Vec<Duration> = received.retries.iter().map(|retry| retry.delay).collect();
        assert!(pauses[0] >= second / 2 && pauses[0] <= second, "{pauses:?}");
        assert!(pauses[1] >= second && pauses[1] <= second * 2, "{pauses:?}");
        let waited = begin.elapsed();
        let pauses: Duration = pauses.iter().sum();
        assert!(waited >= pauses && waited < pauses + second, "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_reported_at_once() {
    for kind in [ModelErrorKind::Refused, ModelErrorKind::TooLong] {
        let script = Scripted::new([fails(kind), "Hello.".into()]);
        let received = ask(&Retrying::new(script.clone(), Retries::default())).await;
        assert_eq!(received.error().kind, kind);
        assert_eq!((script.requests().len(), received.retries.len()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_started_reply_is_not_retried() {
    let begun = [
        ScriptedReply::new().text("Hel").fail(busy()),
        ScriptedReply::new().reasoning("hm").fail(busy()),
        ScriptedReply::new()
            .usage(Usage::new(3, 1))
            .text("H")
            .fail(busy()),
    ];
    for first in begun {
        let script = Scripted::new([first, "Hello.".into()]);
        let received = ask(&Retrying::new(script.clone(), Retries::default())).await;
        assert_eq!(received.error(), &busy());
        assert_eq!((script.requests().len(), received.retries.len()), (1, 0));
    }
    // Usage of the request does not begin a reply, and only the last attempt reports it.
    let read = ScriptedReply::new().usage(Usage::new(3, 0)).fail(busy());
    let writes = ScriptedReply::new().usage(Usage::new(4, 1)).text("Hello.");
    let received = ask(&Retrying::new(
        Scripted::new([read, writes]),
        Retries::default(),
    ))
    .await;
    assert_eq!(
        (received.text.as_str(), received.usage),
        ("Hello.", Some(Usage::new(4, 1)))
    );
    // An empty reply is not requested again either.
    let script = Scripted::new([ScriptedReply::new(), "Hello.".into()]);
    let received = ask(&Retrying::new(script.clone(), Retries::default())).await;
    assert_eq!((received.text.as_str(), script.requests().len()), ("", 1));
    assert_eq!(received.finish(), &Finish::stop().reason("stop"));
}

#[tokio::test(start_paused = true)]
async fn it_gives_up() {
    let script = Scripted::with(|_, _| fails(ModelErrorKind::Busy));
    let received = ask(&Retrying::new(script.clone(), Retries::default())).await;
    assert_eq!((script.requests().len(), received.retries.len()), (5, 4));
    assert_eq!(received.error().message, "no");
    let script = Scripted::with(|_, _| fails(ModelErrorKind::Busy));
    let mut none = Retries::default();
    none.max_retries = 0;
    let never = ask(&Retrying::new(script.clone(), none)).await;
    // A server that is not running will not start soon; but it may just be starting.
    let absent = Scripted::with(|_, _| fails(ModelErrorKind::NotRunning));
    let received = ask(&Retrying::new(absent.clone(), Retries::default())).await;
    assert_eq!(absent.requests().len(), 2);
    let attempts: Vec<(u32, u32)> = received
        .retries
        .iter()
        .map(|t| (t.attempt, t.max_retries))
        .collect();
    assert_eq!(attempts, [(1, 1)]);
    assert_eq!((script.requests().len(), never.retries.len()), (1, 0));
    // Each attempt takes time, and the total exceeds the limit.
    let slow = fails(ModelErrorKind::Busy).pause(Duration::from_mins(4));
    let script = Scripted::with(move |_, _| slow.clone());
    ask(&Retrying::new(script.clone(), Retries::default())).await;
    assert_eq!(script.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_can_set_the_delay() {
    let seconds = Duration::from_secs;
    for (after, is_obeyed, words) in [
        (0, true, ""),
        (7, true, ""),
        (60, true, ""),
        (61, false, "; it asks to retry after 61 s"),
        (3600, false, "; it asks to retry after 60 min"),
        (86_300, false, "; it asks to retry after 24 h"),
    ] {
        let first = ScriptedReply::error(busy().retry_after(seconds(after)));
        let script = Scripted::new([first, "Hello.".into()]);
        let begin = Instant::now();
        let received = ask(&Retrying::new(script.clone(), Retries::default())).await;
        assert_eq!(
            script.requests().len(),
            if is_obeyed { 2 } else { 1 },
            "{after}"
        );
        if is_obeyed {
            let waited = begin.elapsed();
            assert!(
                waited >= seconds(after) && waited <= seconds(after + 2),
                "{waited:?}"
            );
        } else {
            assert_eq!(received.error().retry_after, Some(seconds(after)));
            let message = &received.error().message;
            assert!(message.ends_with(words), "{message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_can_be_cancelled() {
    let script = Scripted::with(|_, _| fails(ModelErrorKind::Busy));
    let mut reply = Retrying::new(script.clone(), Retries::default()).reply(question());
    assert!(reply.next().await.unwrap().is_ok());
    // A reply that is not polled does nothing.
    tokio::time::advance(Duration::from_mins(5)).await;
    assert_eq!(script.requests().len(), 1);
    let waited = tokio::time::timeout(Duration::from_millis(1), reply.next()).await;
    assert!(waited.is_err() || script.requests().len() == 2);
    drop(reply);
    assert!(script.requests().len() <= 2);
    let waiting = Retrying::new(
        Scripted::new([ScriptedReply::new().stall()]),
        Retries::default(),
    );
    let stalled = tokio::time::timeout(
        Duration::from_hours(9),
        Received::all(waiting.reply(question())),
    );
    assert!(stalled.await.is_err());
}
