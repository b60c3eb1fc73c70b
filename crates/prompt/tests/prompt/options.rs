//! The options of a prompt, and its invariants.

use plaincall_prompt::{PromptOptions, PromptPart, prompt};
use plaincall_reply::untrusted::Origin;
use plaincall_syntax::{Dialect, DialectError};

use crate::prompt::{tool_sets, tools_of};

#[test]
fn the_fixed_part_is_short() {
    for (dialect, limit) in [(Dialect::block(), 1400), (Dialect::emoji(), 900)] {
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
        DialectError::Marker { .. }
    ));
}

/// Parts are in order, with at most an empty line between two of them.
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
        let mut order = PromptPart::GROUPS.into_iter().flatten();
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
fn disabled_features_are_not_in_the_prompt() {
    let texts = |options: PromptOptions| {
        [Dialect::block(), Dialect::emoji()].map(|dialect| {
            let made = prompt([], &dialect, &options).expect("a dialect that works");
            made.into_text()
        })
    };
    for text in texts(PromptOptions::new().without_dependencies())
        .iter()
        .chain(&texts(PromptOptions::new().one_call()))
    {
        for word in ["dep1", "depend", " id"] {
            assert!(!text.contains(word), "{word:?} in\n{text}");
        }
    }
    for text in texts(PromptOptions::new().one_call()) {
        for word in ["everal calls", "your calls"] {
            assert!(!text.contains(word), "{word:?} in\n{text}");
        }
    }
    assert!(texts(PromptOptions::new())[0].contains("dep1,dep2"));
}

/// Each sign in the entry of a single tool is explained, and so are lists and null.
#[test]
fn what_a_tool_needs_is_explained() {
    for (name, tools) in tool_sets() {
        for (tool, dialect) in tools
            .iter()
            .flat_map(|tool| [(tool, Dialect::block()), (tool, Dialect::emoji())])
        {
            let made = prompt([tool], &dialect, &PromptOptions::new()).expect("it works");
            let list = made.part(PromptPart::Tools).expect("a list");
            let lines = list.lines().filter(|line| !line.starts_with("//"));
            let lines = lines.map(|line| line.split(" //").next().unwrap_or_default());
            let shown: Vec<&str> = lines.collect();
            let rules = made.text().replacen(list, "", 1);
            for (sign, rule) in [
                ("?: ", "`x?`"),
                (" = ", "`= 5`"),
                (": [", "`[T]`"),
                ("*: ", "`*`"),
                (" | null", "`null`"),
            ] {
                let is_shown = shown.iter().any(|line| line.contains(sign));
                let is_explained = rules.contains(rule);
                assert!(!is_shown || is_explained, "{name} {rule}: {}", made.text());
            }
        }
    }
}

#[test]
fn tools_that_come_later_have_all_rules() {
    let tools = tools_of("one");
    for dialect in [Dialect::block(), Dialect::emoji()] {
        let text = |tools, options: &PromptOptions| {
            let made = prompt(tools, &dialect, options).expect("it works");
            let list = made.part(PromptPart::Tools).expect("a list").to_owned();
            made.text().replacen(&list, "", 1)
        };
        let every = text(&tools[..], &PromptOptions::new().every_rule());
        assert_eq!(every, text(&[], &PromptOptions::new()));
        assert!(every.len() > text(&tools[..], &PromptOptions::new()).len());
    }
}

/// Each tool in the list is untrusted text, and nothing else is.
#[test]
fn listed_tools_are_untrusted() {
    let tools = tools_of("bare");
    let made = prompt(&tools, &Dialect::block(), &PromptOptions::new());
    let made = made.expect("a dialect that works");
    let parts = made.prompt_text().parts().iter();
    let untrusted = parts.filter(|part| part.origin == Origin::Untrusted);
    assert_eq!(untrusted.count(), tools.len());
}
