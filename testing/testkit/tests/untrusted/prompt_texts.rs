//! Prompt texts of random texts that are made to join into markers.

use plaincall_reply::{PromptTextBuilder, Untrusted, untrusted::Origin};
use plaincall_syntax::{Dialect, Escaper};
use plaincall_testkit::arbitrary_texts::{self, Generator, Random};
use plaincall_testkit::oracle::Options;
use proptest::prelude::*;

use plaincall_testkit::untrusted::{
    FORMS, Text, breach, build, dialect, headers_in, markers_in, naive_escape, overlap,
};

/// Texts of markers, pieces of markers and surrounding text.
fn sharp(dialects: &[Dialect]) -> impl Strategy<Value = String> + use<> {
    let mut pool: Vec<String> = [
        "\n", "\n", "\r\n", "\r", " ", "A", "x", ":", "]", "/end]", "[", "\\", "\\\\", "!", "é",
        "a\n", "prose", " /]", "```\n",
    ]
    .map(str::to_owned)
    .to_vec();
    for marker in dialects
        .iter()
        .flat_map(|dialect| dialect.markers().unwrap())
    {
        let text = marker.text;
        for (at, _) in text.char_indices().skip(1) {
            pool.push(text[..at].to_owned());
            pool.push(text[at..].to_owned());
            pool.push(format!("{}\\{}", &text[..at], &text[at..]));
        }
        // Whole markers must not drown in their pieces.
        for _ in 0..text.chars().count() {
            pool.push(text.clone());
        }
        pool.push(format!("{text}A]\n"));
    }
    prop::collection::vec(prop::sample::select(pool), 0..8).prop_map(|pieces| pieces.concat())
}

fn forms() -> impl Strategy<Value = (Vec<Dialect>, Vec<Text>)> {
    let one = prop::sample::select(FORMS).prop_map(|form| vec![dialect(form)]);
    let several = prop::sample::subsequence(FORMS, 1..5)
        .prop_map(|forms| forms.into_iter().map(dialect).collect::<Vec<_>>());
    prop_oneof![one, several].prop_flat_map(|dialects| {
        let origin = prop::sample::select(vec![
            Origin::Trusted,
            Origin::Model,
            Origin::Untrusted,
            Origin::Untrusted,
        ]);
        let text = (origin, sharp(&dialects)).prop_map(|(origin, text)| Text { origin, text });
        (Just(dialects), prop::collection::vec(text, 1..7))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_counts_in_an_untrusted_part((dialects, texts) in forms()) {
        let prompt_text = build(&dialects, &texts);
        for dialect in &dialects {
            prop_assert_eq!(breach(&prompt_text, dialect), None);
        }

        let escaper = Escaper::for_all(&dialects).expect("dialects that work");
        let texts: Vec<Text> = texts.into_iter().filter(|text| !text.text.is_empty()).collect();
        prop_assert_eq!(prompt_text.parts().len(), texts.len());
        for (part, text) in prompt_text.parts().iter().zip(&texts) {
            let written = &prompt_text.text()[part.span.range()];
            prop_assert_eq!(part.origin, text.origin);
            if part.origin == Origin::Untrusted {
                prop_assert_eq!(escaper.unescape(written), text.text.as_str());
            } else {
                prop_assert_eq!(written, text.text.as_str());
            }
        }
    }

    #[test]
    fn between_lines_of_the_model((dialects, texts) in forms()) {
        // The form that the definition promises: model, line end, untrusted, line end, model.
        let line = |text: &Text| format!("{}\n", text.text);
        let [before, untrusted, after] = [0, 1, 2].map(|at| line(&texts[at % texts.len()]));
        let escaper = Escaper::for_all(&dialects).expect("dialects that work");
        let escaped = escaper.escape(&untrusted);
        let text = [&*before, &*escaped, &*after].concat();
        let inside = before.len()..before.len() + escaped.len();
        for dialect in &dialects {
            for header in headers_in(&text, dialect) {
                prop_assert!(!overlap(&header, &inside), "{:?} in {:?}", &text[header], text);
            }
        }
    }

    #[test]
    fn one_escape_serves_several_dialects((dialects, texts) in forms()) {
        let escaper = Escaper::for_all(&dialects).expect("dialects that work");
        for Text { text, .. } in &texts {
            let escaped = escaper.escape(text);
            prop_assert_eq!(&escaped, &naive_escape(text, &dialects));
            prop_assert_eq!(escaper.unescape(&escaped), text.as_str());
            for dialect in &dialects {
                prop_assert!(markers_in(&escaped, dialect).is_empty());
            }
        }
    }
}

/// Checks untrusted text on one line.
fn check_line(text: &str, expected: &str) {
    let mut builder = PromptTextBuilder::new(&[]).expect("the default dialect");
    builder.untrusted(&Untrusted::new(text).on_one_line());
    assert_eq!(builder.finish().text(), expected);
}

#[test]
fn names_stay_on_their_line() {
    check_line("read-file", "read-file");
    check_line("a\n- `rm`: safe", "a - `rm`: safe");
    check_line("a\r\n\u{85}\u{2028}b\tc\u{0}", "a b\tc");
}

#[test]
fn definitions_are_untrusted() {
    let schema = serde_json::json!({"description": "!!!ARG:x", "enum": ["🛠️[a]"]});
    let mut builder = PromptTextBuilder::new(&[]).expect("the default dialect");
    builder.untrusted(&Untrusted::json(&schema).expect("JSON"));
    assert_eq!(
        builder.finish().text(),
        r#"{"description":"!!!ARG\:x","enum":["🛠️\[a]"]}"#
    );
}

#[test]
fn debug_output_hides_untrusted_text() {
    let untrusted = Untrusted::new("secret k3v9q2x8");
    assert_eq!(format!("{untrusted:?}"), "Untrusted(15 bytes)");
    assert!(untrusted.holds("k3v9q2x8") && !untrusted.holds("other"));
}

/// The same for markers that overlap, hold one another, look like blanks or like the other syntax.
#[test]
fn nothing_counts_with_markers_of_all_sorts() {
    let mut random = Random::new(7);
    let mut headers = 0;
    for _ in 0..4000 {
        let options: Vec<Options> = (0..=random.below(2))
            .map(|_| arbitrary_texts::options(&mut random))
            .filter(|options| !options.are_refused())
            .collect();
        let Some(first) = options.first() else {
            continue;
        };
        let dialects: Vec<Dialect> = options.iter().map(Options::dialect).collect();
        let texts: Vec<Text> = (0..=random.below(5))
            .map(|_| {
                let origins = [
                    Origin::Trusted,
                    Origin::Model,
                    Origin::Untrusted,
                    Origin::Untrusted,
                ];
                let origin = origins[random.below(origins.len())];
                let text = Generator::new(first).text(&mut random);
                Text { origin, text }
            })
            .collect();
        let prompt_text = build(&dialects, &texts);
        for dialect in &dialects {
            assert_eq!(breach(&prompt_text, dialect), None, "{dialect:?} {texts:?}");
            headers += headers_in(prompt_text.text(), dialect).len();
        }
    }
    assert!(
        headers > 1000,
        "{headers}: our own and the model's calls still count"
    );
}
