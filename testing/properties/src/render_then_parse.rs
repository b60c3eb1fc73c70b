use crate::drawn::Drawn;
use plaincall_syntax::{Call, Syntax};
use plaincall_testkit::oracle::Options;
use plaincall_testkit::rendering::check;

/// A rendered call parses to the same call, and only a call that cannot be written is rejected (`spec/block.md` 9,
/// `spec/emoji.md` 9).
pub fn render_then_parse(data: &[u8]) {
    let Some(drawn) = Drawn::new(data) else {
        return;
    };
    let Some(syntax) = drawn.options.syntax else {
        return;
    };
    let text = drawn.text();
    // A NUL ends each part. An empty id counts as absent, and blanks separate dependencies.
    let parts: Vec<&str> = text.split('\0').collect();
    let part = |index: usize| parts.get(index).copied().unwrap_or_default();
    let call = match syntax {
        Syntax::Block => Call::Block {
            name: part(0),
            id: Some(part(1)).filter(|id| !id.is_empty()),
            dependencies: part(2).split(' ').filter(|_| !part(2).is_empty()).collect(),
            arguments: (3..parts.len())
                .step_by(2)
                .map(|index| (part(index), part(index + 1)))
                .collect(),
        },
        Syntax::Emoji => Call::Emoji {
            name: part(0),
            raw_args: part(1),
            body: part(2),
        },
    };
    let options = Options {
        in_reasoning: false,
        ..drawn.options
    };
    if let Err(error) = check(&call, &options) {
        panic!("{error}");
    }
}
