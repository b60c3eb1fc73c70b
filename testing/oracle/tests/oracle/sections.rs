//! The sections of the specification that diagnostics name.

use std::collections::BTreeSet;

use plaincall_oracle::examples;
use plaincall_syntax::Section;

/// The numbers of the sections of a document.
fn headings(document: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(examples::folder().join(document)).expect(document);
    let mut fence: Option<&str> = None;
    let mut numbers = BTreeSet::new();
    for line in text.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if ticks >= 3 => fence = Some(&line[..ticks]),
            None => {
                let heading = line
                    .strip_prefix("##")
                    .map(|rest| rest.trim_start_matches('#'));
                let number = heading.and_then(|rest| rest.strip_prefix(' ')?.split(' ').next());
                numbers.extend(number.map(|number| number.trim_end_matches('.').to_owned()));
            }
        }
    }
    numbers
}

#[test]
fn every_section_that_is_named_is_there() {
    for section in Section::ALL {
        let place = section.to_string();
        let place = place.strip_prefix("spec/").expect(&place);
        let (document, number) = place.split_once(' ').expect(place);
        assert!(headings(document).contains(number), "{place} is not there");
    }
    assert!(headings("block.md").len() > 30);
    assert!(!headings("block.md").contains("9.9"));
}
