//! Interfaces to other code: gates, events, observers.

use std::time::Duration;

use plaincall::reply::ReplyItem;
use plaincall::{AllowAll, Decision, Gate, Request, RunEvent, Stop, TurnEvent, gate::GateFuture};
use tokio::time::sleep;

use crate::runs::scene::{Milliseconds, builder, check_with, errors, play, shown, written};

/// Decides by the call: waits for its milliseconds, then answers `allow`, `deny`, `error` or `panic` by its id.
struct SlowGate;

impl Gate for SlowGate {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            let ms: Milliseconds = request.arguments.to()?;
            sleep(Duration::from_millis(ms.ms * 10)).await;
            match request.id.split('_').next() {
                Some("deny") => Ok(Decision::deny(format!("no {} today", request.name))),
                Some("error") => Err("the policy cannot be read".into()),
                Some("panic") => panic!("gate is off its hinges"),
                _ => Ok(Decision::Allow),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn gates() {
    // A slow gate holds no slot.
    check_with(
        builder()
            .gate(SlowGate)
            .policy(plaincall::Policy::default().concurrent(1)),
        "a=write,10 b=sleep,5 c=sleep,1<b",
        0,
        "a ok 100-110, b ok 50-55, c ok 65-66",
    )
    .await;
    let results = check_with(
        builder().gate(SlowGate),
        "deny=sleep,1 error=sleep,2 panic=sleep,3 a=sleep,1<deny",
        0,
        "deny rejected -10, error rejected -20, panic rejected -30, a skipped -10",
    )
    .await;
    assert_eq!(
        errors(&results),
        [
            "no sleep today",
            "the call could not be approved: the policy cannot be read",
            "the call could not be approved: gate is off its hinges",
            "not run: it depends on `deny`, which was rejected",
        ]
    );
    check_with(builder().gate(AllowAll), "a=write,10", 0, "a ok 0-10").await;
    // A cancelled run does not wait for the gate.
    let mut run = builder().gate(SlowGate).build().unwrap();
    let mut turn = run.turn();
    turn.feed(written("a=sleep,1000000", false).concat());
    sleep(Duration::from_millis(5)).await;
    turn.cancel();
    assert_eq!(shown(&turn.finish(Stop::Natural).await), "a cancelled -5");
    drop(run);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn events_are_the_record() {
    let mut run = builder().build().unwrap();
    let mut events = run.events();
    let scene = "a=sleep,20 b=fail,5<a c=sleep,1<b d=sleep,1<c";
    play(&mut run, &written(scene, false), 0).await;
    drop(run);
    // The first event is omitted, because it contains the time of day.
    assert!(matches!(
        events.next().await,
        Some(plaincall::RunEvent::Run(_))
    ));
    let mut lines = String::new();
    while let Some(event) = events.next().await {
        lines.push_str(&serde_json::to_string(&event).unwrap());
        lines.push('\n');
    }
    let expected = r#"{"event":"turn","turn":0,"t_ms":0}
{"event":"text","text":"!!!GADGET_START:sleep:a:\n!!!ARG:ms\n20\n!!!GADGET_END\n","t_ms":0}
{"event":"call","call":0,"id":"a","name":"sleep","t_ms":0}
{"event":"waiting","call":0,"id":"a","name":"sleep","arguments":{"ms":"20"},"t_ms":0}
{"event":"ready","call":0,"id":"a","name":"sleep","t_ms":0}
{"event":"admitted","call":0,"id":"a","name":"sleep","by":"gate","reason":"idempotent tools need no approval","t_ms":0}
{"event":"start","call":0,"id":"a","name":"sleep","attempt":1,"t_ms":0}
{"event":"text","text":"!!!GADGET_START:fail:b:a\n!!!ARG:ms\n5\n!!!GADGET_END\n","t_ms":0}
{"event":"call","call":1,"id":"b","name":"fail","dependencies":["a"],"t_ms":0}
{"event":"waiting","call":1,"id":"b","name":"fail","arguments":{"ms":"5"},"t_ms":0}
{"event":"text","text":"!!!GADGET_START:sleep:c:b\n!!!ARG:ms\n1\n!!!GADGET_END\n","t_ms":0}
{"event":"call","call":2,"id":"c","name":"sleep","dependencies":["b"],"t_ms":0}
{"event":"waiting","call":2,"id":"c","name":"sleep","arguments":{"ms":"1"},"t_ms":0}
{"event":"text","text":"!!!GADGET_START:sleep:d:c\n!!!ARG:ms\n1\n!!!GADGET_END\n","t_ms":0}
{"event":"call","call":3,"id":"d","name":"sleep","dependencies":["c"],"t_ms":0}
{"event":"waiting","call":3,"id":"d","name":"sleep","arguments":{"ms":"1"},"t_ms":0}
{"event":"reply_end","stop":"natural","t_ms":0}
{"event":"result","call":0,"id":"a","name":"sleep","status":"ok","output":"slept 20","t_ms":20}
{"event":"ready","call":1,"id":"b","name":"fail","t_ms":20}
{"event":"admitted","call":1,"id":"b","name":"fail","by":"gate","reason":"idempotent tools need no approval","t_ms":20}
{"event":"start","call":1,"id":"b","name":"fail","attempt":1,"t_ms":20}
{"event":"result","call":1,"id":"b","name":"fail","status":"error","error":"failed after 5","t_ms":25}
{"event":"result","call":2,"id":"c","name":"sleep","status":"skipped","error":"not run: it depends on `b`, which failed","because":{"link":"dependency","call":1,"id":"b","root":{"call":1,"id":"b"}},"t_ms":25}
{"event":"result","call":3,"id":"d","name":"sleep","status":"skipped","error":"not run: it depends on `c`, which was skipped; the first failure was `b`","because":{"link":"dependency","call":2,"id":"c","root":{"call":1,"id":"b"}},"t_ms":25}
{"event":"turn_end","turn":0,"counts":{"ok":1,"error":1,"skipped":2,"rejected":0,"cancelled":0,"unknown":0},"t_ms":25}
"#;
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn a_turn_can_be_watched_and_fed_bytes() {
    let mut run = builder().build().unwrap();
    run.listen();
    let mut turn = run.turn();
    let text = "Ich wünsche: 🛠️[sleep 1]🛠️[/end] und 🛠️[";
    for byte in text.as_bytes() {
        turn.feed([*byte]);
    }
    let mut seen = String::new();
    turn.end(Stop::Natural);
    while let Some(event) = turn.next().await {
        match event {
            TurnEvent::Reply(ReplyItem::Text(text)) => seen.push_str(&text),
            TurnEvent::Reply(ReplyItem::CallStart(started)) => seen.push_str(&started.name),
            TurnEvent::Run(RunEvent::Start(started)) => {
                assert!(seen.ends_with(&*started.name) || seen.ends_with('['));
            }
            TurnEvent::Run(RunEvent::TurnEnd(end)) => assert_eq!(end.counts.ok, 1),
            _ => {}
        }
    }
    assert!(turn.next().await.is_none());
    assert!(turn.finish(Stop::Natural).await.all_ok());
    assert_eq!(seen, "Ich wünsche: sleep und 🛠️[");
}

/// Runs and turns can be moved to other tasks.
#[test]
fn futures_can_be_sent() {
    fn sent<T: Send>(value: T) -> T {
        value
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut run = sent(builder().build().unwrap());
        sent(run.events());
        sent(run.canceller());
        assert!(sent(run.turn().finish(Stop::Natural)).await.is_empty());
        sent(run.close()).await.unwrap();
    });
}
