//! The parts of a payload that a parser has kept.

use std::collections::HashMap;

use crate::payload::Part;

/// The share of a payload that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The calls that came back with name, argument line, pointers and values byte for byte.
    pub(crate) calls: usize,
    pub(crate) calls_expected: usize,
    /// The bytes of the texts between calls that came back byte for byte.
    pub(crate) text: usize,
    pub(crate) text_expected: usize,
    /// The first difference, as a sentence; `None` if everything came back, in order, and nothing else.
    pub(crate) difference: Option<String>,
}

impl Kept {
    pub(crate) fn compare(expected: &[Part], found: &[Part]) -> Self {
        let mut left: HashMap<&Part, usize> = HashMap::new();
        for part in found {
            *left.entry(part).or_default() += 1;
        }
        let mut kept = Self {
            calls: 0,
            calls_expected: 0,
            text: 0,
            text_expected: 0,
            difference: difference(expected, found),
        };
        for part in expected {
            let count = left.get_mut(part).filter(|count| **count > 0);
            let is_there = usize::from(count.is_some());
            if let Some(count) = count {
                *count -= 1;
            }
            match part {
                Part::Call(_) => {
                    kept.calls_expected += 1;
                    kept.calls += is_there;
                }
                Part::Text(text) => {
                    kept.text_expected += text.len();
                    kept.text += is_there * text.len();
                }
            }
        }
        kept
    }

    /// Returns hundredths of a percent of the text, rounded down: 10,000 is all of it.
    pub(crate) fn text_share(&self) -> usize {
        (self.text * 10_000)
            .checked_div(self.text_expected)
            .unwrap_or(10_000)
    }
}

fn difference(expected: &[Part], found: &[Part]) -> Option<String> {
    let index = expected
        .iter()
        .zip(found)
        .position(|(expected, found)| expected != found)
        .or_else(|| (expected.len() != found.len()).then(|| expected.len().min(found.len())))?;
    let place = index + 1;
    Some(match (expected.get(index), found.get(index)) {
        (Some(expected), Some(found)) => {
            format!(
                "part {place} should be {}, but is {}",
                describe(expected),
                describe(found)
            )
        }
        (Some(expected), None) => format!("part {place} is missing: {}", describe(expected)),
        (None, found) => format!(
            "part {place} is one too many: {}",
            found.map(describe).unwrap_or_default()
        ),
    })
}

fn describe(part: &Part) -> String {
    match part {
        Part::Text(text) => format!("{} bytes of text, {}", text.len(), beginning(text)),
        Part::Call(call) => {
            let values: Vec<String> = call
                .values
                .iter()
                .map(|(pointer, value)| {
                    format!("{pointer} = {} bytes, {}", value.len(), beginning(value))
                })
                .collect();
            let end = if call.closed {
                ""
            } else {
                ", without its end marker"
            };
            format!("a call of {} with {}{end}", call.name, values.join("; "))
        }
    }
}

fn beginning(text: &str) -> String {
    format!("{:?}", text.chars().take(40).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::Kept;
    use crate::payload::{Part, tiny};

    /// Compares three tiny calls with the result of `change`.
    fn check(change: fn(&mut Vec<Part>), calls: usize, text: usize, difference: Option<&str>) {
        let expected = tiny(3).parts;
        let mut found = expected.clone();
        change(&mut found);
        let kept = Kept::compare(&expected, &found);
        assert_eq!((kept.calls, kept.text), (calls, text));
        assert_eq!((kept.calls_expected, kept.text_expected), (3, 3));
        match difference {
            None => assert_eq!(kept.difference, None),
            Some(words) => {
                let found = kept.difference.expect("a difference");
                assert!(found.contains(words), "{found}");
            }
        }
    }

    #[test]
    fn every_loss_is_seen() {
        check(|_| {}, 3, 3, None);
        check(
            |parts| drop(parts.remove(2)),
            2,
            3,
            Some("part 3 should be a call of Tick"),
        );
        check(
            |parts| drop(parts.pop()),
            3,
            2,
            Some("part 6 is missing: 1 bytes of text"),
        );
        check(
            |parts| parts.push(Part::Text("more".to_owned())),
            3,
            3,
            Some("part 7 is one too many"),
        );
        check(|parts| parts.swap(0, 2), 3, 3, Some("part 1 should be"));
        check(
            |parts| {
                if let Some(Part::Call(call)) = parts.first_mut() {
                    call.values.clear();
                }
            },
            2,
            3,
            Some("n = 1 bytes"),
        );
        check(
            |parts| {
                if let Some(Part::Call(call)) = parts.first_mut() {
                    call.closed = false;
                }
            },
            2,
            3,
            Some("without its end marker"),
        );
    }
}
