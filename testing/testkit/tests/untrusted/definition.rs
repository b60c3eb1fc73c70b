//! The examples of `spec/untrusted.md`.

use plaincall_reply::untrusted::EchoGuard;
use plaincall_reply::{
    Document, ModelText, PromptText, PromptTextBuilder, ToolCall, Trusted, Untrusted,
};

use plaincall_testkit::untrusted::{breach, dialect};

/// A fence: the line it begins at, its words, its content.
struct Fence {
    line: usize,
    words: String,
    content: String,
}

fn fences() -> Vec<Fence> {
    let path = plaincall_testkit::examples::folder().join("untrusted.md");
    let text = std::fs::read_to_string(path).expect("spec/untrusted.md");
    let mut fences = Vec::new();
    let mut open: Option<Fence> = None;
    for (index, line) in text.split('\n').enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(words)) => {
                open = Some(Fence {
                    line: index + 1,
                    words: words.to_owned(),
                    content: String::new(),
                });
            }
            (None, None) => {}
            (Some(_), Some("")) => fences.extend(open.take()),
            (Some(fence), _) => {
                fence.content.push_str(line);
                fence.content.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a fence is never closed");
    for fence in &mut fences {
        fence.content.pop();
    }
    fences
}

fn prompt_text(fence: &Fence, words: &str) -> PromptText {
    let mut builder = PromptTextBuilder::new(&[dialect(words)]).expect("a dialect that works");
    for line in fence.content.lines() {
        let (kind, text) = line.split_once(' ').expect("a kind and a text");
        let text: String = serde_json::from_str(text).expect("a JSON string");
        match kind {
            "trusted" => builder.trusted(Trusted::assert(text)),
            "model" => builder.model(&ModelText::new(text)),
            "untrusted" => builder.untrusted(&Untrusted::new(text)),
            other => panic!("line {}: what is {other:?}?", fence.line),
        };
    }
    builder.finish()
}

#[test]
fn every_example_holds() {
    let mut built: Option<PromptText> = None;
    let mut observed: Option<(EchoGuard, String)> = None;
    let mut checked = 0;
    for fence in fences() {
        let (first, words) = fence.words.split_once(' ').unwrap_or((&fence.words, ""));
        match first {
            "prompt" => {
                let prompt_text = prompt_text(&fence, words);
                assert_eq!(
                    breach(&prompt_text, &dialect(words)),
                    None,
                    "{}",
                    fence.line
                );
                built = Some(prompt_text);
            }
            "text" => {
                let prompt_text = built.take().expect("a prompt text before its text");
                assert_eq!(prompt_text.text(), fence.content, "line {}", fence.line);
                checked += 1;
            }
            "observed" => {
                let mut guard = EchoGuard::new(&[dialect(words)]).expect("a dialect that works");
                guard.observe(&Untrusted::new(&*fence.content));
                observed = Some((guard, words.to_owned()));
            }
            "echo" => {
                let (guard, dialect_words) = observed.as_mut().expect("an observed text");
                let document = Document::parse(&fence.content, &dialect(dialect_words));
                let document = document.expect("a dialect that works");
                let calls: Vec<&ToolCall> = document.calls().collect();
                assert_eq!(calls.len(), 1, "line {}", fence.line);
                let is_echo = guard.echo_of(calls[0]).is_some();
                assert_eq!(is_echo, words == "yes", "line {}", fence.line);
                checked += 1;
            }
            other => panic!("line {}: what is {other:?}?", fence.line),
        }
    }
    assert!(checked > 15, "{checked} examples");
}
