//! How calls end, and the messages to the model.

use std::time::Duration;

use plaincall::reply::Unclosed;
use plaincall::reply::{CallError, MissingEnd};
use plaincall::tool::ToolSpec;
use plaincall::{Command, Dialect, Policy, Run, RunBuilder, Stop, Tool, Toolbox};

use crate::runs::scene::{builder, check, check_errors, errors, play, shown, written};

#[tokio::test(start_paused = true)]
async fn results_of_dependencies() {
    let results = check(
        "a=sleep,20 b=sleep,10 c=before,0<b,a,b d=before,0",
        "a ok 0-20, b ok 0-10, c ok 20-20, d ok 0-0",
    )
    .await;
    assert_eq!(results[2].output.as_deref(), Some("b=slept 10;a=slept 20;"));
    assert_eq!(results[3].output.as_deref(), Some(""));
}

#[tokio::test(start_paused = true)]
async fn failures_and_what_they_skip() {
    check_errors(
        "a=fail,10 b=sleep,5<a c=sleep,5<b d=sleep,50",
        "a error 0-10, b skipped -10, c skipped -10, d ok 0-50",
        &[
            "failed after 10",
            "not run: it depends on `a`, which failed",
            "not run: it depends on `b`, which was skipped; the first failure was `a`",
        ],
    )
    .await;
    check_errors(
        "a=panic,10 b=sleep,5<a c=panic-at-once d=sleep,20",
        "a error 0-10, b skipped -10, c error 0-0, d ok 0-20",
        &[
            "the tool panicked: no more after 10",
            "not run: it depends on `a`, which failed",
            "the tool panicked: at once",
        ],
    )
    .await;
    check_errors(
        "a=short,70 b=short,71 c=sleep,0<b",
        "a ok 0-70, b error 0-70, c skipped -70",
        &[
            "timed out after 70 ms",
            "not run: it depends on `b`, which failed",
        ],
    )
    .await;
}

/// Every call once, in call order, regardless of when and how it ended.
#[tokio::test(start_paused = true)]
async fn messages_with_results() {
    let results = check(
        "a=sleep,20 b=fail,10 c=sleep,5<b d=gone,1 a=sleep,1 e=before,0<a",
        "a ok 0-20, b error 0-10, c skipped -10, d rejected -0, a rejected -0, e ok 20-20",
    )
    .await;
    assert_eq!(
        results.message(&Dialect::block().escaped()).unwrap().text(),
        "Result 1 of 6: tool sleep, id a, status ok\n\
         Output: slept 20\n\
         Result 2 of 6: tool fail, id b, status error\n\
         Error: failed after 10\n\
         Result 3 of 6: tool sleep, id c, status skipped\n\
         Error: not run: it depends on `b`, which failed\n\
         Result 4 of 6: tool gone, id d, status rejected\n\
         Error: unknown tool `gone`: use one of `sleep`, `fail`, `panic`, `before`, `short`, `two`, `alone`, `look`, `write`, `panic-at-once`\n\
         Result 5 of 6: tool sleep, id a, status rejected\n\
         Error: the id `a` is already taken by an earlier call of this turn; give this call another id\n\
         Result 6 of 6: tool before, id e, status ok\n\
         Output: a=slept 20;\n"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_wrong() {
    check_errors(
        "a=slep,10 b=sleep,5<a a=sleep,1",
        "a rejected -0, b skipped -0, a rejected -0",
        &[
            "unknown tool `slep`; did you mean `sleep`? Use one of `sleep`, `fail`, `panic`, `before`, `short`, `two`, `alone`, `look`, `write`, `panic-at-once`",
            "not run: it depends on `a`, which was rejected",
            "the id `a` is already taken by an earlier call of this turn; give this call another id",
        ],
    )
    .await;
    check_errors(
        "a=sleep b=sleep,x c=sleep,1<c d=sleep,1<e e=sleep,1<d f=sleep,1<missing g=write,1",
        "a rejected -0, b rejected -0, c rejected -0, d rejected -0, e rejected -0, f rejected -0, g rejected -0",
        &[
            "invalid arguments: missing required parameter `ms`",
            "invalid arguments: `ms`: expected an integer of at least 0, found `x`",
            "the call depends on itself (`c`): remove that dependency",
            "these calls wait for each other: `d`, `e`; remove a dependency",
            "these calls wait for each other: `d`, `e`; remove a dependency",
            "no call has the id `missing`: correct or remove this dependency",
            "the tool `write` may change something, and this run does not allow changes",
        ],
    )
    .await;
    for (limit, calls) in [(1, "1 call"), (2, "2 calls")] {
        let mut run = builder()
            .policy(Policy::default().calls_per_turn(Some(limit)))
            .build()
            .unwrap();
        let results = play(&mut run, &written("=look,1 =look,1 =look,1", false), 0).await;
        let expected = format!("a turn may have at most {calls}; make this call in the next turn");
        assert_eq!(errors(&results).last(), Some(&&*expected));
    }
}

#[tokio::test(start_paused = true)]
async fn all_problems_of_a_call_are_named() {
    let text = "!!!GADGET_START:sleep:a\n!!!ARG:mss\n1\n!!!ARG:x\n2\n!!!GADGET_END\n";
    let results = play(&mut builder().build().unwrap(), &[text.to_owned()], 0).await;
    let [error] = errors(&results)[..] else {
        panic!()
    };
    for part in ["`mss`", "`x`", "missing required parameter `ms`"] {
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_problems_are_shortened() {
    let wrong = (0..10_000).map(|number| format!("!!!ARG:wrong{number}\n1\n"));
    let text = format!(
        "!!!GADGET_START:sleep:a\n{}!!!GADGET_END\n",
        wrong.collect::<String>()
    );
    let results = play(&mut builder().build().unwrap(), &[text], 0).await;
    let [error] = errors(&results)[..] else {
        panic!()
    };
    assert!(error.contains("`wrong7`"), "{error}");
    assert!(error.ends_with("; and 9993 more"), "{error}");
    assert!(error.len() < 1000, "{}", error.len());
}

#[tokio::test(start_paused = true)]
async fn calls_that_the_text_ends() {
    struct Cut<'a> {
        builder: RunBuilder,
        text: &'a str,
        stop: Stop,
    }
    let check = async |cut: Cut<'_>, expected: &str| {
        let mut run = cut.builder.build().unwrap();
        let mut turn = run.turn();
        turn.feed(cut.text);
        let results = turn.finish(cut.stop).await;
        let shown: Vec<String> = results
            .iter()
            .map(|result| {
                format!(
                    "{}: {}",
                    result.status,
                    result.error.as_deref().unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(shown.join(" | "), expected, "{}", cut.text);
    };
    let block = "!!!GADGET_START:sleep\n!!!ARG:ms\n1";
    let emoji = "🛠️[sleep 1]";
    let custom = Dialect::block().start("<<<").end(">>>").arg("@@");
    let keyed = Dialect::auto().keyed("k1");
    let rejected = |why: MissingEnd, marker: &str| {
        let end_marker = marker.to_owned();
        format!("rejected: {}", CallError::NotClosed { why, end_marker })
    };
    let again = |marker: &str| rejected(MissingEnd::Truncated, marker);
    let plain = |text, stop| Cut {
        builder: builder(),
        text,
        stop,
    };
    check(plain(block, Stop::Natural), "ok: ").await;
    let unknown = |marker: &str| rejected(MissingEnd::MaybeTruncated, marker);
    let at_end_of_file = rejected(MissingEnd::EndOfFile, "!!!GADGET_END");
    check(plain(block, Stop::EndOfFile), &at_end_of_file).await;
    check(plain(block, Stop::Length), &again("!!!GADGET_END")).await;
    check(plain(block, Stop::Broken), &unknown("!!!GADGET_END")).await;
    check(
        plain(
            "!!!GADGET_START:sleep\n!!!ARG:ms\n1\n!!!GADGET_START:sleep\n!!!ARG:ms\n1",
            Stop::Broken,
        ),
        &format!(
            "{} | {}",
            rejected(MissingEnd::EndedByNextCall, "!!!GADGET_END"),
            unknown("!!!GADGET_END")
        ),
    )
    .await;
    check(
        Cut {
            builder: builder().dialect(custom),
            text: "<<<sleep\n@@ms\n1",
            stop: Stop::Length,
        },
        &again(">>>"),
    )
    .await;
    check(
        Cut {
            builder: builder().dialect(keyed),
            text: "!!!GADGET_STARTk1:sleep\n",
            stop: Stop::Broken,
        },
        &unknown("!!!GADGET_ENDk1"),
    )
    .await;
    let not_closed = &rejected(MissingEnd::NoEndMarker, "🛠️[/end]");
    check(plain(emoji, Stop::Natural), not_closed).await;
    check(plain(emoji, Stop::Broken), not_closed).await;
    let unclosed = |text, stop| Cut {
        builder: builder().policy(Policy::default().unclosed(Unclosed::Run)),
        text,
        stop,
    };
    check(unclosed(emoji, Stop::Natural), "ok: ").await;
    check(unclosed(emoji, Stop::EndOfFile), "ok: ").await;
    check(unclosed(block, Stop::EndOfFile), "ok: ").await;
    check(unclosed(emoji, Stop::Broken), &unknown("🛠️[/end]")).await;
    // A truncated pointer line, and a marker that may have swallowed another call.
    check(
        plain("!!!GADGET_START:sleep\n!!!ARG:m", Stop::Natural),
        "rejected: invalid arguments: Truncated pointer line: m",
    )
    .await;
    check(
        plain(
            "!!!GADGET_START:sleep\n!!!ARG:ms\n1 !!!GADGET_START:sleep\n",
            Stop::Natural,
        ),
        &rejected(MissingEnd::MarkerInside, "!!!GADGET_END"),
    )
    .await;
    check(plain("!!!GADGET_START:sleep", Stop::Natural), "").await;
}

#[tokio::test(start_paused = true)]
async fn later_turns_know_the_earlier_ones() {
    let mut run = builder().build().unwrap();
    let first = play(
        &mut run,
        &written("a=sleep,10 =sleep,10 =sleep,10", false),
        0,
    )
    .await;
    assert_eq!(
        shown(&first),
        "a ok 0-10, gadget_1 ok 0-10, gadget_2 ok 0-10"
    );
    let second = play(
        &mut run,
        &written("b=before,1<a,gadget_2 a=fail,5 =sleep,1", false),
        0,
    )
    .await;
    assert_eq!(
        shown(&second),
        "b ok 10-11, a error 10-15, gadget_3 ok 10-11"
    );
    assert_eq!(second[0].call, 3);
    assert_eq!(
        second[0].output.as_deref(),
        Some("a=slept 10;gadget_2=slept 10;")
    );
    let third = play(&mut run, &written("c=before,1<a", false), 0).await;
    assert_eq!(shown(&third), "c skipped -15");
    // The syntax is detected again in each turn.
    let fourth = play(&mut run, &written("=sleep,1 =sleep,1", true), 0).await;
    assert_eq!(shown(&fourth), "call_1 ok 15-16, call_2 ok 16-17");
}

/// Builds a run on another runtime.
fn on_another_runtime() -> (tokio::runtime::Runtime, Run) {
    let other = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let run = {
        let _guard = other.enter();
        builder().build().unwrap()
    };
    (other, run)
}

#[tokio::test]
async fn a_run_whose_runtime_has_shut_down_returns_results() {
    let (other, mut run) = on_another_runtime();
    let mut turn = run.turn();
    turn.feed(written("a=panic-at-once b=slep", false).concat());
    other.shutdown_background();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let results = turn.finish(Stop::Natural).await;
    assert_eq!(results.len(), 2);
    assert!(
        results
            .iter()
            .all(|result| result.status.name() == "unknown")
    );
}

/// No task is left to wake the one that waits for the next event.
#[tokio::test]
async fn the_stream_of_a_run_whose_runtime_has_shut_down_ends() {
    let (other, mut run) = on_another_runtime();
    run.listen();
    let mut turn = run.turn();
    other.shutdown_background();
    let end = async { while turn.next().await.is_some() {} };
    let ended = tokio::time::timeout(Duration::from_secs(10), end).await;
    assert!(ended.is_ok());
    assert!(turn.finish(Stop::Natural).await.is_empty());
}

#[test]
fn a_run_needs_a_runtime() {
    assert_eq!(
        builder().build().unwrap_err().to_string(),
        "a run needs a tokio runtime; build it inside one"
    );
    let bare = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _inside = bare.enter();
    assert_eq!(
        builder().build().unwrap_err().to_string(),
        "the tokio runtime has no timers; build it with `enable_all`"
    );
    let with_timers = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _inside = with_timers.enter();
    assert!(builder().build().is_ok());
    let command = Tool::command(ToolSpec::new("t"), Command::new(["true"]).directory("/"));
    let toolbox = Toolbox::new([command.unwrap()]).unwrap();
    assert_eq!(
        Run::new(toolbox).unwrap_err().to_string(),
        "the tool `t` is a command, which needs a tokio runtime with an I/O driver; build it with `enable_all`"
    );
}
