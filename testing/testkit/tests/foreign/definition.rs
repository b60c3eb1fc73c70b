//! The examples of `spec/foreign.md`.

use plaincall_call::{
    Document, EchoGuard, Foreign, ModelText, OwnText, Passage, PassageBuilder, ToolCall,
};

use plaincall_testkit::foreign::{breach, dialect};

/// A fence: the line it begins at, its words, its content.
struct Fence {
    line: usize,
    words: String,
    content: String,
}

fn fences() -> Vec<Fence> {
    let path = plaincall_testkit::examples::folder().join("foreign.md");
    let text = std::fs::read_to_string(path).expect("spec/foreign.md");
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

fn passage(fence: &Fence, words: &str) -> Passage {
    let mut builder = PassageBuilder::new(&[dialect(words)]).expect("a dialect that works");
    for line in fence.content.lines() {
        let (kind, text) = line.split_once(' ').expect("a kind and a text");
        let text: String = serde_json::from_str(text).expect("a JSON string");
        match kind {
            "own" => builder.own(OwnText::vouch(text)),
            "model" => builder.model(&ModelText::new(text)),
            "foreign" => builder.foreign(&Foreign::new(text)),
            other => panic!("line {}: what is {other:?}?", fence.line),
        };
    }
    builder.finish()
}

#[test]
fn every_example_holds() {
    let mut built: Option<Passage> = None;
    let mut heard: Option<(EchoGuard, String)> = None;
    let mut checked = 0;
    for fence in fences() {
        let (first, words) = fence.words.split_once(' ').unwrap_or((&fence.words, ""));
        match first {
            "passage" => {
                let passage = passage(&fence, words);
                assert_eq!(breach(&passage, &dialect(words)), None, "{}", fence.line);
                built = Some(passage);
            }
            "text" => {
                let passage = built.take().expect("a passage before its text");
                assert_eq!(passage.text(), fence.content, "line {}", fence.line);
                checked += 1;
            }
            "heard" => {
                let mut guard = EchoGuard::new(&[dialect(words)]).expect("a dialect that works");
                guard.hear(&Foreign::new(&*fence.content));
                heard = Some((guard, words.to_owned()));
            }
            "echo" => {
                let (guard, dialect_words) = heard.as_ref().expect("something heard");
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
