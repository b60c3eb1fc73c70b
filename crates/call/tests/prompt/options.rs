//! What can be changed about a prompt, and what always holds.

use plaincall_call::{Foreign, Origin, OwnText, PromptOptions, PromptPart, prompt};
use plaincall_syntax::{Dialect, DialectError};

use crate::prompt::{tool_sets, tools_of};

#[test]
fn the_fixed_part_is_short() {
    for (dialect, limit) in [(Dialect::block(), 1800), (Dialect::emoji(), 1200)] {
        let escaped = dialect.clone().escaped();
        let reasoning = escaped.clone().reasoning("<think>", "</think>");
        for dialect in [dialect, escaped, reasoning] {
            for (name, tools) in tool_sets() {
                let made =
                    prompt(&tools, &dialect, &PromptOptions::new()).expect("a dialect that works");
                let list = made
                    .part(PromptPart::Tools)
                    .expect("a list")
                    .chars()
                    .count();
                let fixed = made.text().chars().count() - list;
                assert!(
                    fixed <= limit,
                    "{name}: {fixed} characters, at most {limit}"
                );
                assert_eq!(fixed, made.fixed_size());
                println!(
                    "{:?} {name}: {fixed} of {limit} characters",
                    dialect.syntax()
                );
            }
        }
    }
}

#[test]
fn without_a_syntax_there_is_nothing_to_teach() {
    let made = prompt([], &Dialect::auto(), &PromptOptions::new());
    assert_eq!(made.expect_err("no syntax"), DialectError::NoSyntax);
    let made = prompt([], &Dialect::block().start("!"), &PromptOptions::new());
    assert!(matches!(
        made.expect_err("a marker that is too short"),
        DialectError::MarkerTooShort { .. }
    ));
}

/// Parts stand in order, and between two of them there is at most an empty line.
#[test]
fn parts_tile_the_text() {
    for dialect in [
        Dialect::block(),
        Dialect::block().escaped(),
        Dialect::emoji().keyed("k1"),
    ] {
        let made = prompt(&tools_of("files"), &dialect, &PromptOptions::new())
            .expect("a dialect that works");
        let mut end = 0;
        let mut order = PromptPart::ALL.iter();
        for (part, span) in made.parts() {
            assert!(order.any(|one| one == part), "{part:?} is out of order");
            assert!(["", "\n"].contains(&&made.text()[end..span.start]));
            assert!(made.text()[span.range()].ends_with('\n'));
            end = span.end;
        }
        assert_eq!(end, made.text().len());
    }
}

#[test]
fn every_part_can_be_replaced_and_left_out() {
    for dialect in [Dialect::block().escaped(), Dialect::emoji().escaped()] {
        let tools = tools_of("files");
        let make = |options: &PromptOptions<'_>| {
            prompt(&tools, &dialect, options).expect("a dialect that works")
        };
        let whole = make(&PromptOptions::new());
        for part in PromptPart::ALL {
            let replaced =
                make(&PromptOptions::new().replace(part, OwnText::vouch("In other words.")));
            assert_eq!(replaced.part(part), Some("In other words.\n"), "{part:?}");
            let left_out = make(&PromptOptions::new().omit(part));
            assert_eq!(left_out.part(part), None);
            for other in PromptPart::ALL.iter().filter(|other| **other != part) {
                assert_eq!(replaced.part(*other), whole.part(*other));
                assert_eq!(left_out.part(*other), whole.part(*other));
            }
        }
        let everything = PromptPart::ALL.iter();
        let nothing = everything.fold(PromptOptions::new(), |options, part| options.omit(*part));
        assert_eq!(make(&nothing).text(), "");
        // The last word counts.
        let options = PromptOptions::new()
            .omit(PromptPart::Form)
            .replace(PromptPart::Form, "x");
        assert_eq!(make(&options).part(PromptPart::Form), Some("x\n"));
    }
}

#[test]
fn names_of_parts_are_different() {
    let mut names: Vec<&str> = PromptPart::ALL.iter().map(|part| part.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), PromptPart::ALL.len());
}

#[test]
fn what_is_not_wanted_is_not_taught() {
    let texts = |options: PromptOptions<'_>| {
        [Dialect::block(), Dialect::emoji()].map(|dialect| {
            let made = prompt([], &dialect, &options).expect("a dialect that works");
            made.into_text()
        })
    };
    for text in texts(PromptOptions::new().without_dependencies())
        .iter()
        .chain(&texts(PromptOptions::new().one_call()))
    {
        for word in ["dep1", ":n1", ":m1", "depend", " id"] {
            assert!(!text.contains(word), "{word:?} in\n{text}");
        }
    }
    for text in texts(PromptOptions::new().one_call()) {
        for word in ["everal calls", "your calls", "save_note"] {
            assert!(!text.contains(word), "{word:?} in\n{text}");
        }
    }
    assert!(texts(PromptOptions::new())[0].contains("dep1,dep2"));
}

/// The whole list of tools is foreign, also when somebody else wrote it.
#[test]
fn listed_tools_are_foreign() {
    let tools = tools_of("bare");
    let options = PromptOptions::new()
        .list_tool_by(|tool| Foreign::new(format!("{} !!!ARG:x 🛠️[{}]", tool.name, tool.name)))
        .escape_for(&[Dialect::emoji()]);
    let made = prompt(&tools, &Dialect::block(), &options).expect("a dialect that works");
    let list = made.part(PromptPart::Tools).expect("a list");
    assert!(
        list.starts_with("now !!!ARG\\:x 🛠️\\[now]\n\nping "),
        "{list}"
    );
    let foreign = made
        .passage()
        .parts()
        .iter()
        .filter(|part| part.origin == Origin::Foreign);
    assert_eq!(foreign.count(), tools.len());
}
