//! Any results: the text of the results, without the escape, gives them back exactly.

use plaincall_prompt::history::{ResultMessage, Status, in_call_order, results};
use plaincall_reply::{Document, Untrusted};
use plaincall_syntax::{Escaper, Syntax};
use plaincall_testkit::untrusted::{FORMS, breach, dialect};
use proptest::prelude::*;

#[derive(Clone, Debug, Default, PartialEq)]
struct Sample {
    name: String,
    id: String,
    status: String,
    error: Option<String>,
    note: Option<String>,
    output: Option<String>,
    whole_bytes: Option<u64>,
}

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "!!!GADGET_START:",
            "!!!GADGET_END",
            "!!!ARG:",
            "<<<START:",
            "@param:",
            "##",
            "ab",
            "::",
            "<think>",
            "🛠️[",
            "🛠️[/end]",
            "```",
            "````",
            "`",
            "~~~",
            "===",
            "\n",
            "\n",
            "\r\n",
            "\r",
            " ",
            "\t",
            "\\",
            "\"",
            "\u{85}",
            "\u{2028}",
            "\u{0}",
            "Result 1 of 1: tool a, id b, status ok",
            "Output:",
            "Error: ",
            "Note:",
            "No output.",
            "Output",
            ", id x",
            ", status ok",
            ": ",
            "a",
            "read-file",
            "é",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn sample() -> impl Strategy<Value = Sample> {
    let words = || prop_oneof!["[a-z]{1,4}", texts()];
    let statuses = prop::option::weighted(0.9, prop::sample::select(&Status::ALL[..]));
    let some = || texts().prop_filter("absent if empty", |text| !text.is_empty());
    (
        words(),
        words(),
        statuses,
        prop::option::of(some()),
        prop::option::weighted(0.2, some()),
        prop::option::of((texts(), prop::option::weighted(0.2, any::<u64>()))),
    )
        .prop_map(|(name, id, status, error, note, output)| {
            let (output, whole_bytes) = output.unzip();
            Sample {
                name,
                id,
                status: status.map_or("", Status::name).to_owned(),
                error,
                note,
                output,
                whole_bytes: whole_bytes.flatten(),
            }
        })
}

/// Reads the results as `spec/history.md` 3 defines their form.
struct Reader<'t>(&'t str);

impl<'t> Reader<'t> {
    fn takes(&mut self, expected: &str) -> bool {
        let rest = self.0.strip_prefix(expected);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn until(&mut self, end: &str) -> &'t str {
        let (before, behind) = self
            .0
            .split_once(end)
            .unwrap_or_else(|| panic!("no {end:?} in {:?}", self.0));
        self.0 = behind;
        before
    }

    fn word(&mut self) -> String {
        if self.0.starts_with('"') {
            let mut strings = serde_json::Deserializer::from_str(self.0).into_iter::<String>();
            let word = strings.next().expect("a string").expect("a JSON string");
            self.0 = &self.0[strings.byte_offset()..];
            return word;
        }
        let end = self.0.find([',', '\n']).expect("an end of the word");
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word.to_owned()
    }

    fn text(&mut self) -> String {
        if self.takes(": ") {
            return self.until("\n").to_owned();
        }
        assert!(self.takes(":\n"), "{:?}", self.0);
        let fence = self.until("\n");
        if self.0.starts_with(&format!("\n{fence}\n")) {
            self.0 = &self.0[fence.len() + 2..];
            return String::new();
        }
        self.until(&format!("\n{fence}\n")).to_owned()
    }

    fn result(&mut self, heading: &str) -> Sample {
        assert!(self.takes(heading), "{heading:?}, {:?}", self.0);
        let mut sample = Sample::default();
        let mut separator = " ";
        for (label, place) in [("tool ", 0), ("id ", 1), ("status ", 2)] {
            if self.takes(&format!("{separator}{label}")) {
                let word = self.word();
                *[&mut sample.name, &mut sample.id, &mut sample.status][place] = word;
                separator = ", ";
            }
        }
        assert!(self.takes("\n"), "{:?}", self.0);
        if self.takes("Error") {
            sample.error = Some(self.text());
        }
        if self.takes("Note") {
            sample.note = Some(self.text());
        }
        if self.takes("No output.\n") {
            sample.output = Some(String::new());
        } else if self.takes("Output, truncated from ") {
            sample.whole_bytes = Some(self.until(" bytes").parse().expect("a number"));
            sample.output = Some(self.text());
        } else if self.takes("Output") {
            sample.output = Some(self.text());
        }
        sample
    }
}

fn check(words: &str, sample: &[Sample]) {
    let dialect = dialect(words);
    let given: Vec<ResultMessage<'_>> = sample
        .iter()
        .map(|one| {
            let untrusted = |text: &Option<String>| text.clone().map(Untrusted::new);
            let mut message =
                ResultMessage::new(Untrusted::new(&*one.name), Untrusted::new(&*one.id));
            message.status = Status::from_name(&one.status);
            message.error = untrusted(&one.error);
            message.note = untrusted(&one.note);
            message.output = untrusted(&one.output);
            message.whole_bytes = one.whole_bytes;
            message
        })
        .collect();
    let prompt_text = results(&given, &dialect).expect("a dialect that works");
    assert_eq!(breach(&prompt_text, &dialect), None, "{words}");
    let document = Document::parse(prompt_text.text(), &dialect).expect("a dialect that works");
    assert_eq!(
        document.calls().count(),
        0,
        "{words}: {}",
        prompt_text.text()
    );

    let escaper = Escaper::new(&dialect).expect("a dialect that works");
    let plain = escaper.unescape(prompt_text.text());
    let mut reader = Reader(&plain);
    for (place, expected) in sample.iter().enumerate() {
        let heading = format!("Result {} of {}:", place + 1, sample.len());
        assert_eq!(reader.result(&heading), *expected, "{words}: {plain}");
    }
    assert_eq!(reader.0, "", "{words}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_results_can_be_taken_apart_again(
        words in prop::sample::select(FORMS),
        sample in prop::collection::vec(sample(), 0..4),
    ) {
        check(words, &sample);
    }
}

/// A marker may be what a fence is made of, or a word of the form itself.
#[test]
fn markers_that_are_words_of_the_form() {
    let sample = [Sample {
        name: "read-file".to_owned(),
        id: "r1".to_owned(),
        status: "ok".to_owned(),
        output: Some("a\n```\nResult 2 of 2: x\n~~~~".to_owned()),
        ..Sample::default()
    }];
    for words in [
        "block start=``` end=~~~ arg===",
        "block start=Result end=Output: arg=status",
        "block start=`` end=~~ arg=== reasoning=--,##",
        "block start=** end=-- arg=## reasoning===,~~",
    ] {
        check(words, &sample);
        check(words, &[sample.clone(), sample.clone()].concat());
    }
}

/// Errors that name the end marker as it must be written; in the last dialect they contain other markers too.
#[test]
fn errors_that_name_the_end_marker() {
    for words in FORMS.iter().chain(&["block start=call end=end arg=with"]) {
        let error = |syntax| {
            let end = dialect(words).end_marker(syntax);
            format!("this call does not end with `{end}`: end every call with it")
        };
        let sample = [Syntax::Block, Syntax::Emoji].map(|syntax| Sample {
            status: "rejected".to_owned(),
            error: Some(error(syntax)),
            output: Some("x".to_owned()),
            ..Sample::default()
        });
        check(words, &sample);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every call and every result exactly once, the calls first and in their order.
    #[test]
    fn results_follow_their_calls(
        calls in prop::collection::vec("[ab]", 0..5),
        ended in prop::collection::vec("[abc]", 0..6),
    ) {
        let sample = ended.iter().zip(0..).map(|(id, number): (&String, u32)| {
            ResultMessage::new(Untrusted::new(""), Untrusted::new(&**id)).output(Untrusted::new(number.to_string()))
        });
        let pairs = calls.iter().map(|id| (Untrusted::new("t"), Untrusted::new(&**id)));
        let found = in_call_order(pairs, sample.collect());
        let ids = |text: &str| Untrusted::new(text.to_owned());
        prop_assert!(found.len() >= calls.len().max(ended.len()));
        for (call, result) in calls.iter().zip(&found) {
            prop_assert_eq!(&result.id, &ids(call));
            prop_assert_eq!(&result.name, &ids("t"));
        }
        for id in ["a", "b"] {
            // The first result of an id belongs to its first call.
            let mine = found.iter().filter(|one| one.id == ids(id)).filter_map(|one| one.output.as_ref());
            let expected = ended.iter().enumerate().filter(|(_, one)| *one == id).map(|(number, _)| ids(&number.to_string()));
            prop_assert!(mine.cloned().eq(expected));
        }
        let unknown = found.iter().filter(|one| one.status == Some(Status::Unknown)).count();
        prop_assert_eq!(found.len(), ended.len() + unknown);
    }
}
