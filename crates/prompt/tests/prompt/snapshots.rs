//! Complete prompts, kept as files.
//!
//! With `SNAPSHOTS=overwrite` they are rewritten instead of compared.

use plaincall_prompt::{PromptOptions, prompt};
use plaincall_syntax::Dialect;

use crate::prompt::{folder, tools_of};

#[allow(
    clippy::disallowed_methods,
    reason = "an environment variable makes this test rewrite the files"
)]
fn check(name: &str, tools: &str, dialect: &Dialect, options: &PromptOptions) {
    let prompt = prompt(&tools_of(tools), dialect, options).expect("a dialect that works");
    let path = folder().join(name).with_extension("txt");
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, prompt.text()).expect("the folder can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == prompt.text(),
        "{} is not what is made now: run this test with SNAPSHOTS=overwrite and read the difference\n{}",
        path.display(),
        prompt.text()
    );
}

#[test]
fn prompts_are_as_they_were() {
    let all = PromptOptions::new();
    check("block", "files", &Dialect::block(), &all);
    check(
        "block-escaped",
        "assistant",
        &Dialect::block().escaped(),
        &all,
    );
    check(
        "block-keyed",
        "scene",
        &Dialect::block().escaped().keyed("k3v9q2x8"),
        &PromptOptions::new().without_dependencies(),
    );
    check(
        "block-custom-one-call",
        "data",
        &Dialect::block()
            .start("<<<START:")
            .end("<<<END")
            .arg("@param:")
            .markers_anywhere(),
        &PromptOptions::new().one_call(),
    );
    check("emoji", "files", &Dialect::emoji(), &all);
    check("block-one", "one", &Dialect::block(), &all);
    check("emoji-one", "one", &Dialect::emoji(), &all);
    check(
        "emoji-escaped",
        "assistant",
        &Dialect::emoji().escaped().keyed("k3v9q2x8"),
        &all,
    );
}
