//! Conversations of all kinds, truncated between any two lines.

use std::time::Duration;

use plaincall::{
    Policy, Stop,
    policy::{Order, Writes},
};

use crate::resume::play::{Ends, check_cuts};
use crate::resume::scene::{Reply, Same, Scene};

/// Runs a scene, truncates its log, and compares the beginnings of the results.
async fn check(scene: Scene, expected: &[&str]) -> Ends {
    let ends = check_cuts(&scene).await;
    let found: Vec<&str> = ends
        .values()
        .map(|end| end.split(" |").next().unwrap().trim())
        .collect();
    assert_eq!(found, expected);
    ends
}

#[tokio::test(start_paused = true)]
async fn turns_that_use_ids_of_earlier_turns() {
    let first = Reply::of("a=look b=send<a =put c=fail");
    let second = Reply::of("d=put<a,b a=send<d e=look<c =look");
    let third = Reply::of("f=look<a,gadget_1");
    check(
        Scene::new([first, second, third]),
        &[
            "a ok a;",
            "b ok a;b;",
            "gadget_1 ok ;",
            "c error",
            "d ok a;a;b;d;",
            "a ok a;a;b;d;a;",
            "e skipped",
            "gadget_2 ok ;",
            "f ok a;a;b;d;a;;f;",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn calls_in_order_of_writing() {
    let tools = "look look send fail put send nothing look";
    let scene = |emoji_order| Scene {
        policy: Policy::default().emoji_order(emoji_order),
        ..Scene::new([Reply::emoji(tools), Reply::emoji("send look")])
    };
    check(
        scene(Order::Sequential),
        &[
            "call_1 ok t0",
            "call_2 ok t1",
            "call_3 ok t2",
            "call_4 error",
            "call_5 ok t4",
            "call_6 ok t5",
            "call_7 rejected",
            "call_8 ok t7",
            "call_9 ok t0",
            "call_10 ok t1",
        ],
    )
    .await;
    check(
        Scene {
            // Calls before an invalid call may have started when its text arrives.
            same: Same::Nothing,
            ..scene(Order::StopOnError)
        },
        &[
            "call_1 ok t0",
            "call_2 ok t1",
            "call_3 ok t2",
            "call_4 error",
            "call_5 skipped",
            "call_6 skipped",
            "call_7 rejected",
            "call_8 skipped",
            "call_9 ok t0",
            "call_10 ok t1",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_tried_again() {
    let reply = Reply::of("a=flaky b=look<a c=flaky d=guess e=send<d f=flaky");
    check(
        Scene::new([reply, Reply::of("g=look<c h=flaky")]),
        &[
            "a error",
            "b skipped",
            "c error",
            "d error",
            "e ok insteade;",
            "f error",
            "g skipped",
            "h error",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn decisions_of_a_gate() {
    let reply = Reply::of(
        "edit_1=look deny_1=send a=look<edit_1,deny_1 always_1=send edit_2=put wrong_1=look",
    );
    let second = Reply::of("b=send<edit_2 deny_2=send edit_3=flaky");
    let ends = check(
        Scene::new([reply, second]),
        &[
            "edit_1 ok  007 \nand more true,",
            "deny_1 rejected",
            "a skipped",
            "always_1 ok always_1;",
            "edit_2 ok  007 \nand more true,",
            "wrong_1 rejected",
            "b ok  007 \nand more true,b;",
            "deny_2 ok deny_2;",
            "edit_3 error",
        ],
    )
    .await;
    assert!(
        ends[&0].contains("the call ran with {\"text\":\" 007 \\nand more \""),
        "{ends:?}"
    );
    assert!(
        ends[&8].contains("the call ran with {\"text\":\" 007 \\nand more \""),
        "{ends:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn turns_that_were_cancelled() {
    let reply = Reply::of("a=slow b=send c=look<a d=flaky e=send").cancel_after(3);
    check(
        Scene {
            same: Same::Nothing,
            ..Scene::new([reply, Reply::of("f=look g=look<a")])
        },
        &[
            "a cancelled",
            "b ok b;",
            "c cancelled",
            "d cancelled",
            "e cancelled",
            "f ok f;",
            "g skipped",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn turns_that_ran_out_of_time() {
    let reply = Reply::of("a=slow b=send c=look<a d=flaky e=alone f=send");
    check(
        Scene {
            same: Same::Nothing,
            policy: Policy::default().turn_timeout(Some(Duration::from_millis(20))),
            ..Scene::new([reply, Reply::of("g=look h=look<a")])
        },
        &[
            "a error",
            "b ok b;",
            "c cancelled",
            "d cancelled",
            "e cancelled",
            "f cancelled",
            "g ok g;",
            "h skipped",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn writes_at_the_end_of_the_turn() {
    let calls = "a=send b=look c=send<b d=look<a e=nothing f=send<e deny_1=send";
    let scene = |stop| Scene {
        policy: Policy::default().writes(Writes::AtEndOfTurn),
        ..Scene::new([Reply::of(calls).stop(stop), Reply::of("g=look<b h=send")])
    };
    check(
        scene(Stop::Natural),
        &[
            "a ok a;",
            "b ok b;",
            "c ok b;c;",
            "d ok a;d;",
            "e rejected",
            "f skipped",
            "deny_1 rejected",
            "g ok b;g;",
            "h ok h;",
        ],
    )
    .await;
    check(
        scene(Stop::Broken),
        &[
            "a rejected",
            "b ok b;",
            "c rejected",
            "d skipped",
            "e rejected",
            "f skipped",
            "deny_1 rejected",
            "g ok b;g;",
            "h ok h;",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn limits_of_what_runs_at_the_same_time() {
    let calls = "a=slow b=two c=two d=two e=alone f=send g=look h=alone i=put<a";
    for concurrent in [1, 2, 0] {
        check(
            Scene {
                policy: Policy::default()
                    .concurrent(concurrent)
                    .calls_per_turn(Some(8)),
                ..Scene::new([Reply::of(calls)])
            },
            &[
                "a ok a;",
                "b ok b;",
                "c ok c;",
                "d ok d;",
                "e ok e;",
                "f ok f;",
                "g ok g;",
                "h ok h;",
                "i rejected",
            ],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_not_text() {
    let text = "é🛠 !!!GADGET_START:look:a\n!!!ARG:text\nä🛠️\u{0}ö\n!!!GADGET_END\n";
    let mut pieces: Vec<Vec<u8>> = text.as_bytes().chunks(3).map(<[u8]>::to_vec).collect();
    pieces.push(b"\xff\xfe!!!GADGET_START:send:b:a\n!!!ARG:text\n\xc3".to_vec());
    pieces.push(b"(\n!!!GADGET_END\n\xe2\x82".to_vec());
    check(
        Scene::new([Reply::new(pieces), Reply::of("c=look<b")]),
        &[
            "a ok ä🛠️\u{0}ö",
            "b ok ä🛠️\u{0}ö\u{fffd}(",
            "c ok ä🛠️\u{0}ö\u{fffd}(c;",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_the_run() {
    check(
        Scene::new([
            Reply::of("a=done b=send c=nothing a=look d=look<d"),
            Reply::of("e=look f=send<a"),
        ]),
        &[
            "a ok a;",
            "b ok b;",
            "c rejected",
            "a rejected",
            "d rejected",
            "e cancelled",
            "f cancelled",
        ],
    )
    .await;
}
