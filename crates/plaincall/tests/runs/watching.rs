//! Observers: slow ones, absent ones, and ones that panic.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use plaincall::{Observer, Run, RunEvent, Stop, events::EVENT_QUEUE};

use crate::runs::scene::{builder, check_with, play, shown, written};

/// Waits for a signal before it reads events.
struct Late {
    sign: Receiver<()>,
    seen: Sender<RunEvent>,
}

impl Observer for Late {
    fn observe(&mut self, event: &RunEvent) {
        let _ = self.sign.recv();
        let _ = self.seen.send(event.clone());
    }
}

/// It blocks until the run is over, which does not affect the run.
#[tokio::test(start_paused = true)]
async fn a_slow_observer_delays_no_one() {
    let (give, sign) = channel();
    let (seen, all) = channel();
    let mut run = builder().observer(Late { sign, seen }).build().unwrap();
    let mut events = run.events();
    let scene = "a=sleep,20 b=fail,5<a c=sleep,1<b";
    let results = play(&mut run, &written(scene, false), 0).await;
    assert_eq!(shown(&results), "a ok 0-20, b error 20-25, c skipped -25");
    drop(give);
    run.close().await.unwrap();
    let mut received = Vec::new();
    while let Some(event) = events.next().await {
        received.push(event);
    }
    assert_eq!(all.iter().collect::<Vec<_>>(), received);
}

/// Panics at the first event, or at a later one.
struct Fragile(u32);

impl Observer for Fragile {
    fn observe(&mut self, _: &RunEvent) {
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => panic!("too much"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_changes_nothing() {
    for good in [0, 1, 5] {
        let builder = builder().observer(Fragile(good)).observer(Fragile(0));
        check_with(
            builder,
            "a=sleep,20 b=sleep,5<a",
            0,
            "a ok 0-20, b ok 20-25",
        )
        .await;
    }
}

async fn feed(run: &mut Run, pieces: usize) {
    let mut turn = run.turn();
    for _ in 0..pieces {
        turn.feed("x");
    }
    turn.finish(Stop::Natural).await;
}

/// Returns the number of events, and the numbers of lost events with their positions.
fn counted(received: &[RunEvent]) -> (usize, Vec<(usize, u64)>) {
    let missed = received
        .iter()
        .enumerate()
        .filter_map(|(place, event)| match event {
            RunEvent::Lagged(missed) => Some((place, missed.count)),
            _ => None,
        });
    let missed: Vec<_> = missed.collect();
    (received.len() - missed.len(), missed)
}

#[tokio::test(start_paused = true)]
async fn missed_events_are_counted() {
    // A turn has a start, the pieces, the end of the reply and its own end; the start of the run comes first.
    for (pieces, missed) in [
        (EVENT_QUEUE - 4, 0),
        (EVENT_QUEUE - 3, 1),
        (EVENT_QUEUE + 100, 104),
    ] {
        let mut run = builder().build().unwrap();
        let mut events = run.events();
        feed(&mut run, pieces).await;
        // There is room again, and the loss is reported before the next event.
        let mut received = Vec::new();
        for _ in 0..10 {
            received.push(events.next().await.unwrap());
        }
        feed(&mut run, 2).await;
        run.close().await.unwrap();
        while let Some(event) = events.next().await {
            received.push(event);
        }
        let expected = match missed {
            0 => vec![],
            count => vec![(EVENT_QUEUE, count)],
        };
        let all = 1 + pieces + 3 + 5 - usize::try_from(missed).unwrap();
        assert_eq!(counted(&received), (all, expected), "{pieces}");
    }
    // The end of the run is lost too.
    let mut run = builder().build().unwrap();
    let mut events = run.events();
    feed(&mut run, EVENT_QUEUE + 100).await;
    run.close().await.unwrap();
    let mut received = Vec::new();
    while let Some(event) = events.next().await {
        received.push(event);
    }
    assert_eq!(counted(&received), (EVENT_QUEUE, vec![(EVENT_QUEUE, 104)]));
    assert!(events.next().await.is_none() && events.try_next().is_none());
}

/// A subscriber gets all text that is fed after it subscribed, in any thread interleaving.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_text_is_lost_to_who_listens() {
    for round in 0..300 {
        let mut run = builder().build().unwrap();
        if round % 3 == 0 {
            tokio::task::yield_now().await;
        }
        let mut events = run.events();
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_micros(round)).await;
        }
        let mut turn = run.turn();
        for _ in 0..20 {
            turn.feed("piece");
        }
        turn.finish(Stop::Natural).await;
        run.close().await.unwrap();
        let mut pieces = 0;
        while let Some(event) = events.next().await {
            pieces += u32::from(matches!(event, RunEvent::Text(_)));
        }
        assert_eq!(pieces, 20, "{round}");
    }
}
