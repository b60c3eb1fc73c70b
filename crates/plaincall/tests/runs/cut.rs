//! Outputs that exceed the limit for the model.

use plaincall::{Effect, Policy, Run, Stop, Tool, Toolbox};

/// Returns the output of a call for the model, if it is truncated.
async fn cut(output: &'static str, limit: usize, can_read_on: bool) -> Option<String> {
    let say = Tool::new("say", move |(): (), _| async move { Ok(output.to_owned()) });
    let more = can_read_on.then(Tool::read_result);
    let tools = Toolbox::new([say.effect(Effect::Read)].into_iter().chain(more));
    let policy = Policy::default().result_limit(limit);
    let mut run = Run::builder(tools.unwrap()).policy(policy).build().unwrap();
    let mut turn = run.turn();
    turn.feed("!!!GADGET_START:say:call_1\n!!!GADGET_END\n");
    let results = turn.finish(Stop::Natural).await;
    results[0].whole_bytes?;
    results[0].output.as_deref().map(str::to_owned)
}

#[tokio::test(start_paused = true)]
async fn shortened_outputs() {
    for (output, limit, expected) in [
        ("", 0, None),
        ("12345678", 8, None),
        ("12345678", usize::MAX, None),
        (
            "a",
            0,
            Some((0, "[output truncated: first 0 of 1 bytes]\n")),
        ),
        (
            "123456789",
            8,
            Some((8, "12345678\n[output truncated: first 8 of 9 bytes]\n")),
        ),
        // At a line end in the last quarter of the limit, the last one of several.
        (
            "1234567\n9",
            8,
            Some((8, "1234567\n[output truncated: first 8 of 9 bytes]\n")),
        ),
        (
            "12345\n78901",
            8,
            Some((6, "12345\n[output truncated: first 6 of 11 bytes]\n")),
        ),
        (
            "12345\n\n8901",
            8,
            Some((7, "12345\n\n[output truncated: first 7 of 11 bytes]\n")),
        ),
        // One byte before it.
        (
            "1234\n678901",
            8,
            Some((8, "1234\n678\n[output truncated: first 8 of 11 bytes]\n")),
        ),
        // One byte after the limit.
        (
            "12345678\n0",
            8,
            Some((8, "12345678\n[output truncated: first 8 of 10 bytes]\n")),
        ),
        // Complete characters.
        (
            "1234567é",
            8,
            Some((7, "1234567\n[output truncated: first 7 of 9 bytes]\n")),
        ),
        (
            "🛠",
            3,
            Some((0, "[output truncated: first 0 of 4 bytes]\n")),
        ),
    ] {
        let found = cut(output, limit, false).await;
        assert_eq!(
            found.as_deref(),
            expected.map(|(_, text)| text),
            "{output:?}"
        );
        let reading_on = cut(output, limit, true).await;
        let expected = expected.map(|(kept, text)| {
            let hint = format!(
                "; to continue, call `read_result` with `id` = call_1 and `from` = {kept}]\n"
            );
            text.replace("]\n", &hint)
        });
        assert_eq!(reading_on, expected, "{output:?}");
    }
}
