//! A recognizer for GBNF, written from the notation of llama.cpp, with the same algorithm: all stacks of what may follow.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

/// The texts of a rule: alternatives, each a sequence.
type Alternatives = Vec<usize>;
/// Places in sequences, from which the text must continue; the next is on top. No place is behind a last element.
type Stack = Vec<(usize, usize)>;

#[derive(Clone, Debug)]
enum Element {
    Characters {
        ranges: Vec<(char, char)>,
        is_excluded: bool,
    },
    Rule(usize),
}

/// A grammar, whose texts are those of the rule `root`.
#[derive(Debug, Default)]
pub(super) struct Gbnf {
    names: HashMap<String, usize>,
    /// `None` for a rule that is used and not yet defined.
    rules: Vec<Option<Alternatives>>,
    sequences: Vec<Vec<Element>>,
}

impl Gbnf {
    pub(super) fn new(text: &str) -> Self {
        let mut grammar = Self::default();
        for line in text.lines() {
            let (name, rest) = line.split_once(" ::= ").expect(line);
            let mut rest = rest.chars().peekable();
            let alternatives = grammar.alternatives(&mut rest);
            assert_eq!(rest.next(), None, "{line}");
            let rule = grammar.named(name);
            assert!(grammar.rules[rule].is_none(), "{name} is defined twice");
            grammar.rules[rule] = Some(alternatives);
        }
        for (name, rule) in &grammar.names {
            assert!(grammar.rules[*rule].is_some(), "{name} is not defined");
        }
        grammar
    }

    pub(super) fn accepts(&self, text: &str) -> bool {
        let mut stacks = self.opened(self.begins(self.names["root"], &Vec::new()));
        for character in text.chars() {
            let next = stacks.iter().filter_map(|stack| {
                let (sequence, index) = *stack.last()?;
                match &self.sequences[sequence][index] {
                    Element::Characters {
                        ranges,
                        is_excluded,
                    } => {
                        let mut ranges = ranges.iter();
                        let is_listed = ranges.any(|(a, z)| (a..=z).contains(&&character));
                        (is_listed != *is_excluded).then(|| self.behind(stack))
                    }
                    Element::Rule(_) => None,
                }
            });
            stacks = self.opened(next.collect());
            if stacks.is_empty() {
                return false;
            }
        }
        stacks.contains(&Vec::new())
    }

    /// Replaces the rules on top of stacks by their texts.
    fn opened(&self, mut open: Vec<Stack>) -> Vec<Stack> {
        let mut known = Vec::new();
        let mut stacks = Vec::new();
        while let Some(stack) = open.pop() {
            let top = stack.last().map(|(one, at)| &self.sequences[*one][*at]);
            if let Some(Element::Rule(rule)) = top {
                if !known.contains(&stack) {
                    open.extend(self.begins(*rule, &self.behind(&stack)));
                    known.push(stack);
                }
            } else if !stacks.contains(&stack) {
                stacks.push(stack);
            }
        }
        stacks
    }

    /// Puts each alternative of a rule on a stack.
    fn begins(&self, rule: usize, below: &Stack) -> Vec<Stack> {
        let alternatives = self.rules[rule].as_ref().unwrap().iter();
        let begin = |sequence: &usize| {
            let mut stack = below.clone();
            if !self.sequences[*sequence].is_empty() {
                stack.push((*sequence, 0));
            }
            stack
        };
        alternatives.map(begin).collect()
    }

    /// Takes the next element off a stack.
    fn behind(&self, stack: &Stack) -> Stack {
        let mut stack = stack.clone();
        let (sequence, index) = stack.pop().unwrap();
        if index + 1 < self.sequences[sequence].len() {
            stack.push((sequence, index + 1));
        }
        stack
    }

    fn named(&mut self, name: &str) -> usize {
        let is_name = |one: char| one.is_ascii_alphanumeric() || one == '-';
        assert!(!name.is_empty() && name.chars().all(is_name), "{name:?}");
        if let Some(rule) = self.names.get(name) {
            return *rule;
        }
        self.rules.push(None);
        self.names.insert(name.to_owned(), self.rules.len() - 1);
        self.rules.len() - 1
    }

    fn sequence(&mut self, elements: Vec<Element>) -> usize {
        self.sequences.push(elements);
        self.sequences.len() - 1
    }

    fn rule(&mut self, alternatives: Alternatives) -> Element {
        self.rules.push(Some(alternatives));
        Element::Rule(self.rules.len() - 1)
    }

    fn alternatives(&mut self, rest: &mut Peekable<Chars<'_>>) -> Alternatives {
        let mut all = Vec::new();
        loop {
            let elements = self.elements(rest);
            all.push(self.sequence(elements));
            if rest.next_if_eq(&'|').is_none() {
                return all;
            }
        }
    }

    fn elements(&mut self, rest: &mut Peekable<Chars<'_>>) -> Vec<Element> {
        let mut elements: Vec<Element> = Vec::new();
        // The begin of what `*` and its like repeat: a whole literal, class, name or group.
        let mut begin = 0;
        while let Some(next) = rest.next_if(|next| !matches!(next, '|' | ')')) {
            if "*+?{".contains(next) {
                let (least, most) = bounds(next, rest);
                let repeated = elements.split_off(begin);
                assert!(!repeated.is_empty(), "nothing to repeat");
                elements.extend(self.repeated(&repeated, least, most));
                continue;
            }
            if next == ' ' {
                continue;
            }
            begin = elements.len();
            match next {
                '"' => {
                    while let Some(one) = character(rest, '"') {
                        elements.push(Element::Characters {
                            ranges: vec![(one, one)],
                            is_excluded: false,
                        });
                    }
                }
                '[' => elements.push(class(rest)),
                '(' => {
                    let group = self.alternatives(rest);
                    assert_eq!(rest.next(), Some(')'));
                    elements.push(self.rule(group));
                }
                _ => {
                    let mut name = String::from(next);
                    let is_name = |one: &char| one.is_ascii_alphanumeric() || *one == '-';
                    while let Some(one) = rest.next_if(is_name) {
                        name.push(one);
                    }
                    elements.push(Element::Rule(self.named(&name)));
                }
            }
        }
        elements
    }

    fn repeated(&mut self, of: &[Element], least: usize, most: Option<usize>) -> Vec<Element> {
        let mut all = vec![of; least].concat();
        let none = self.sequence(Vec::new());
        match most {
            None => {
                let rule = self.rule(Vec::new());
                let more = [of, std::slice::from_ref(&rule)].concat();
                let again = self.sequence(more);
                *self.rules.last_mut().unwrap() = Some(vec![again, none]);
                all.push(rule);
            }
            Some(most) => {
                let mut more: Vec<Element> = Vec::new();
                for _ in least..most {
                    let one = self.sequence([of, &more].concat());
                    more = vec![self.rule(vec![one, none])];
                }
                all.extend(more);
            }
        }
        all
    }
}

/// Reads how often something is repeated.
fn bounds(sign: char, rest: &mut Peekable<Chars<'_>>) -> (usize, Option<usize>) {
    match sign {
        '*' => (0, None),
        '+' => (1, None),
        '?' => (0, Some(1)),
        _ => {
            let text: String = rest.take_while(|one| *one != '}').collect();
            let number = |text: &str| text.parse::<usize>().unwrap();
            match text.split_once(',') {
                None => (number(&text), Some(number(&text))),
                Some((least, "")) => (number(least), None),
                Some((least, most)) => (number(least), Some(number(most))),
            }
        }
    }
}

fn class(rest: &mut Peekable<Chars<'_>>) -> Element {
    let is_excluded = rest.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    while let Some(first) = character(rest, ']') {
        let is_range = rest.next_if_eq(&'-').is_some();
        let last = is_range.then(|| character(rest, ']').expect("the last of a range"));
        ranges.push((first, last.unwrap_or(first)));
    }
    Element::Characters {
        ranges,
        is_excluded,
    }
}

/// Reads a character of a literal or class; `None` at its end.
fn character(rest: &mut Peekable<Chars<'_>>, end: char) -> Option<char> {
    let next = rest.next().expect("the end of a literal or class");
    if next == end {
        return None;
    }
    if next != '\\' {
        return Some(next);
    }
    let escape = rest.next().expect("an escape");
    let digits = match escape {
        'n' => return Some('\n'),
        'r' => return Some('\r'),
        't' => return Some('\t'),
        '\\' | '"' | '[' | ']' => return Some(escape),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        other => panic!("unknown escape {other:?}"),
    };
    let code: String = rest.take(digits).collect();
    char::from_u32(u32::from_str_radix(&code, 16).unwrap())
}
