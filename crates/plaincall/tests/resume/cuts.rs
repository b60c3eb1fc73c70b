//! The log of one run, truncated at many places, even within a line: the run is resumed from each.

use plaincall::Stop;

use crate::resume::play::{check_cut, edges, folder, reference};
use crate::resume::scene::{Reply, Scene};

fn scene() -> Scene {
    let mut reply = Reply::new(["Let me see. "]);
    let calls = Reply::of("a=look b=send<a c=put<a d=fail<c e=look<d f=send<later");
    reply.pieces.extend(calls.pieces);
    for piece in [
        "!!!GADGET_START:nothing:later\n!!!GADGET_END\n!!!GADGET_START:send:g\n",
        "!!!ARG:text\nG é",
    ] {
        reply.pieces.push(piece.into());
    }
    Scene::new([reply.stop(Stop::Natural)])
}

async fn check(is_wanted: impl Fn(usize, &[usize]) -> bool) {
    let directory = folder();
    let (whole, expected) = reference(&scene(), &directory.path().join("whole")).await;
    let statuses: Vec<&str> = expected
        .values()
        .map(|end| end.split(" | ").next().unwrap())
        .collect();
    assert_eq!(
        statuses,
        [
            "a ok a;",
            "b ok a;b;",
            "c ok a;c;",
            "d error ",
            "e skipped ",
            "f skipped ",
            "later rejected ",
            "g ok G é",
        ]
    );
    let edges = edges(&whole);
    let path = directory.path().join("cut");
    for cut in (0..=whole.len()).filter(|cut| is_wanted(*cut, &edges)) {
        check_cut(&scene(), &whole[..cut], &path, &expected).await;
    }
}

/// Between all lines, and in every third line at its first and last byte and in the middle.
#[tokio::test(start_paused = true)]
async fn a_log_cut_in_many_places_is_gone_on_with() {
    check(|cut, edges| {
        let record = edges.partition_point(|edge| *edge < cut);
        let end = edges[record];
        let begin = record.checked_sub(1).map_or(0, |before| edges[before]);
        cut == end || (record % 3 == 0 && [begin + 1, begin.midpoint(end), end - 1].contains(&cut))
    })
    .await;
}

/// `cargo xtask promises` runs it.
#[tokio::test(start_paused = true)]
#[ignore = "it takes minutes"]
async fn a_log_cut_at_every_byte_is_gone_on_with() {
    check(|_, _| true).await;
}
