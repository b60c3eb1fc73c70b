//! The start times of calls.

use std::time::Duration;

use plaincall::{Policy, policy::Order};

use crate::runs::scene::{builder, check, check_with, play, shown, written};

#[tokio::test(start_paused = true)]
async fn the_makespan_is_the_critical_path() {
    check("", "").await;
    check(
        "a=sleep,100 b=sleep,50<a c=sleep,25<b",
        "a ok 0-100, b ok 100-150, c ok 150-175",
    )
    .await;
    check(
        "a=sleep,100 b=sleep,50<a c=sleep,200<a d=sleep,10<b,c",
        "a ok 0-100, b ok 100-150, c ok 100-300, d ok 300-310",
    )
    .await;
    check(
        "a=sleep,10 b=sleep,30 c=sleep,20 d=sleep,5<a,b,c",
        "a ok 0-10, b ok 0-30, c ok 0-20, d ok 30-35",
    )
    .await;
    check("a=sleep,10<b b=sleep,20", "a ok 20-30, b ok 0-20").await;
}

#[tokio::test(start_paused = true)]
async fn calls_start_while_the_reply_is_being_written() {
    check_with(
        builder(),
        "a=sleep,1500 b=sleep,100 c=sleep,100<a",
        1000,
        "a ok 0-1500, b ok 1000-1100, c ok 2000-2100",
    )
    .await;
    // One character every millisecond: a call starts with the character that completes it.
    let text: String = written("a=sleep,5 b=sleep,5<a", false).concat();
    let pieces: Vec<String> = text.chars().map(String::from).collect();
    let complete = text.find("_END\n").unwrap() + "_EN".len();
    let results = play(&mut builder().build().unwrap(), &pieces, 1).await;
    assert_eq!(
        results[0].times.started,
        Some(Duration::from_millis(complete as u64))
    );
    assert_eq!(results[1].times.started, results[1].times.complete);
}

#[tokio::test(start_paused = true)]
async fn limits_of_what_runs_at_the_same_time() {
    let flood = (0..100).map(|call| format!("c{call}=sleep,10 "));
    let flood = written(&flood.collect::<String>(), false);
    for (builder, together) in [
        (builder(), 32),
        (
            builder().policy(plaincall::Policy::default().concurrent(50)),
            50,
        ),
        (
            builder().policy(plaincall::Policy::default().concurrent(0)),
            100,
        ),
    ] {
        let results = play(&mut builder.build().unwrap(), &flood, 0).await;
        let first = Some(Duration::ZERO);
        let count = results
            .iter()
            .filter(|one| one.times.started == first)
            .count();
        assert_eq!(u32::try_from(count).unwrap(), together);
        assert!(results.all_ok());
    }
    check_with(
        builder().policy(plaincall::Policy::default().concurrent(2)),
        "a=sleep,10 b=sleep,20 c=sleep,10 d=sleep,10",
        0,
        "a ok 0-10, b ok 0-20, c ok 10-20, d ok 20-30",
    )
    .await;
    check(
        "a=two,10 b=two,10 c=two,10 d=sleep,5",
        "a ok 0-10, b ok 0-10, c ok 10-20, d ok 0-5",
    )
    .await;
    check(
        "a=sleep,10 b=alone,10 c=sleep,10 d=alone,5",
        "a ok 0-10, b ok 10-20, c ok 20-30, d ok 30-35",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_order_of_emoji_calls() {
    let check = async |order: Option<Order>, scene: &str, expected: &str| {
        let builder = match order {
            Some(order) => builder().policy(Policy::default().emoji_order(order)),
            None => builder(),
        };
        let results = play(&mut builder.build().unwrap(), &written(scene, true), 0).await;
        assert_eq!(shown(&results), expected, "{scene}");
    };
    check(
        None,
        "_=sleep,10 _=fail,5 _=sleep,10",
        "call_1 ok 0-10, call_2 error 10-15, call_3 ok 15-25",
    )
    .await;
    check(
        None,
        "_=look,10 _=look,5 _=sleep,10",
        "call_1 ok 0-10, call_2 ok 0-5, call_3 ok 10-20",
    )
    .await;
    let stop = Order::StopOnError;
    check(
        Some(stop),
        "_=sleep,10 _=fail,5 _=sleep,9",
        "call_1 ok 0-10, call_2 error 10-15, call_3 skipped -15",
    )
    .await;
    check(
        Some(Order::Graph),
        "_=sleep,10 _=fail,5 _=sleep,9",
        "call_1 ok 0-10, call_2 error 0-5, call_3 ok 0-9",
    )
    .await;
}
