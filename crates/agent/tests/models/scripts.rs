//! Scripts and recorded replies.

use std::time::Duration;

use plaincall::Stop;
use plaincall_agent::model::{
    Finish, Message, Model, ModelError, ModelErrorKind, ModelRequest, Piece, Replay, Reply,
    ReplyNext, Role, Scripted, ScriptedReply, Usage,
};
use tokio::time::Instant;

use crate::models::received::{Received, ask, question};

#[tokio::test(start_paused = true)]
async fn a_script_is_played() {
    let model = Scripted::new([
        ScriptedReply::new()
            .text("Let me see.\n")
            .reasoning("hm")
            .text("😀")
            .usage(Usage::new(3, 2))
            .piece_bytes(1)
            .pause(Duration::from_secs(2)),
        ScriptedReply::new().text("half").reason("length"),
        ScriptedReply::new()
            .pause(Duration::from_secs(3))
            .finish(Finish::new(Stop::Broken)),
    ]);
    assert_eq!(model.requests().len(), 0);
    let begin = Instant::now();
    let received = ask(&model).await;
    assert_eq!(
        (received.text.as_str(), received.reasoning.as_str()),
        ("Let me see.\n😀", "hm")
    );
    assert_eq!(
        (received.pieces, received.usage),
        (15, Some(Usage::new(3, 2)))
    );
    assert_eq!(received.finish(), &Finish::stop().reason("stop"));
    assert_eq!(begin.elapsed(), Duration::from_secs(2));
    let received = ask(&model).await;
    assert_eq!(
        received.finish(),
        &Finish::new(Stop::Length).reason("length")
    );
    let received = ask(&model).await;
    assert_eq!(
        (received.text.as_str(), received.finish().stop),
        ("", Stop::Broken)
    );
    assert_eq!(model.requests().len(), 3);
    let received = ask(&model).await;
    assert_eq!(
        received.error().message,
        "the script has 3 replies, and this is request 4"
    );
    let requests = model.requests();
    assert_eq!(
        (requests.len(), &*requests[0].messages),
        (4, &*question().messages)
    );
}

#[tokio::test]
async fn a_reply_that_is_not_read_is_not_requested() {
    let model = Scripted::new(["a", "b"]);
    drop(model.reply(question()));
    assert_eq!(ask(&model).await.text, "a");
    assert_eq!(model.requests().len(), 1);
    let broken = ModelError::new(ModelErrorKind::Broken, "gone");
    let fails = Scripted::new([ScriptedReply::new().text("a").fail(broken.clone())]);
    let received = ask(&fails).await;
    assert_eq!((received.text.as_str(), received.error()), ("a", &broken));
}

#[tokio::test]
async fn no_character_is_cut() {
    for (bytes, expected) in [
        (0, &["ä", "日", "a", "😀"][..]),
        (1, &["ä", "日", "a", "😀"]),
        (4, &["ä", "日a", "😀"]),
        (100, &["ä日a😀"]),
    ] {
        let reply = ScriptedReply::new().text("ä日a😀").piece_bytes(bytes);
        let mut reply = Scripted::new([reply]).reply(question());
        let mut pieces = Vec::new();
        while let Some(Ok(ReplyNext::Piece(Piece::Text(text)))) = reply.next().await {
            pieces.push(text);
        }
        assert_eq!(pieces, expected, "{bytes}");
    }
}

/// A task has a budget for one poll. Reaching it must not be taken for the end of the pieces.
#[tokio::test]
async fn no_piece_is_lost_at_the_end() {
    for count in 0..300 {
        let reply = Reply::new(|out| async move {
            for _ in 0..count {
                out.text("a").await;
            }
            Ok(Finish::stop())
        });
        let received = Received::all(reply).await;
        assert_eq!(
            (received.pieces, received.finish()),
            (count, &Finish::stop())
        );
    }
}

#[tokio::test]
async fn recorded_replies_by_turn() {
    let replay = Replay::read(
        "\"One, and more than a piece.\"\n\n{\"content\":\"two\",\"finish_reason\":\"length\"}\n",
    )
    .unwrap();
    let mut messages = vec![Message::new(Role::User, "Hi.")];
    for (expected, stop) in [
        ("One, and more than a piece.", Stop::Natural),
        ("two", Stop::Length),
        ("two", Stop::Length),
    ] {
        let received = Received::all(replay.reply(ModelRequest::new(messages.clone()))).await;
        assert_eq!(
            (received.text.as_str(), received.finish().stop),
            (expected, stop)
        );
        assert_eq!(received.pieces, expected.len().div_ceil(12));
        messages.push(Message::new(Role::Assistant, received.text));
        messages.push(Message::new(Role::User, "And?"));
    }
}
