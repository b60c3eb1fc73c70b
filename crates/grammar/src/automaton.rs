//! Deterministic automata for text that must not contain something.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use crate::exclusion::Exclusion;
use crate::pattern::{Characters, Pattern};

/// Larger patterns are not converted.
const LARGEST_PATTERN: usize = 50_000;
/// Larger products are not minimized, which takes the square of their size.
const SMALL: usize = 300;

/// A state in a set takes as much time and memory as this many comparisons.
const SET: usize = 8;

/// The work that an automaton may take.
#[derive(Debug)]
pub(crate) struct Work {
    /// The maximum number of its states.
    states: usize,
    /// The steps that are left: comparisons of ranges of characters.
    steps: Cell<usize>,
}

impl Work {
    pub(crate) fn new(states: usize, steps: usize) -> Self {
        let steps = Cell::new(steps);
        Self { states, steps }
    }

    pub(crate) fn steps_left(&self) -> usize {
        self.steps.get()
    }

    /// Counts steps; `None` if none are left.
    fn take(&self, steps: usize) -> Option<()> {
        let left = self.steps.get().checked_sub(steps);
        self.steps.set(left.unwrap_or_default());
        left.map(|_| ())
    }
}

/// The states of an automaton; the first is the start. In each, the text so far is allowed.
#[derive(Clone, Debug)]
pub(crate) struct Automaton {
    pub(crate) states: Vec<State>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The characters that lead to each next state. Other characters are excluded.
    pub(crate) next: Vec<(Characters, usize)>,
    /// Whether the text may end here.
    pub(crate) may_end: bool,
}

impl Automaton {
    /// Accepts every text that does not contain what is excluded. A line end is taken to follow the text.
    pub(crate) fn excluding(exclusion: &Exclusion) -> Self {
        let mut graph = Graph::default();
        let start = graph.add();
        let anywhere = graph.add();
        let line_begin = graph.add();
        let excluded = graph.add();
        graph.skips.push((start, anywhere));
        graph.skips.push((start, line_begin));
        graph.steps.push((anywhere, Characters::any(), anywhere));
        let newline = Characters::one_of("\n");
        graph.steps.push((anywhere, newline.clone(), line_begin));
        for text in &exclusion.anywhere {
            graph.pattern(&Pattern::literal(&**text), anywhere, excluded);
        }
        for pattern in &exclusion.line_begins {
            graph.pattern(pattern, line_begin, excluded);
        }
        let unlimited = Work::new(usize::MAX, usize::MAX);
        let all = graph.determined(start, |set| !set.contains(&excluded), None, &unlimited);
        all.unwrap_or(Self { states: Vec::new() }).minimized()
    }

    /// Accepts the texts that a regular pattern matches; `None` if this takes too much work.
    pub(crate) fn matching(pattern: &Pattern, work: &Work) -> Option<Self> {
        if pattern.size() > LARGEST_PATTERN {
            return None;
        }
        let mut graph = Graph::default();
        let (start, end) = (graph.add(), graph.add());
        graph.pattern(pattern, start, end);
        work.take(graph.size)?;
        graph.determined(start, |_| true, Some(end), work)
    }

    /// Accepts the texts that both automata accept; `None` if this takes too much work.
    pub(crate) fn and(&self, other: &Self, work: &Work) -> Option<Self> {
        if self.states.is_empty() || other.states.is_empty() {
            return Some(Self { states: Vec::new() });
        }
        let mut known = HashMap::from([((0, 0), 0)]);
        let mut pairs = vec![(0, 0)];
        let mut states: Vec<State> = Vec::new();
        while let Some((one, two)) = pairs.get(states.len()).copied() {
            let (one, two) = (self.states.get(one)?, other.states.get(two)?);
            let mut next = Vec::new();
            work.take(1 + ranges(&one.next) * ranges(&two.next))?;
            for (characters, first) in &one.next {
                for (others, second) in &two.next {
                    let both = characters.and(others);
                    if both.is_empty() {
                        continue;
                    }
                    let place = known.len();
                    let place = *known.entry((*first, *second)).or_insert_with(|| {
                        pairs.push((*first, *second));
                        place
                    });
                    next.push((both, place));
                }
            }
            states.push(State {
                next,
                may_end: one.may_end && two.may_end,
            });
            // What cannot end is removed later.
            if pairs.len() > work.states.saturating_mul(4) {
                return None;
            }
        }
        let all = Self { states }.trimmed();
        let is_small = all.states.len() <= SMALL;
        let all = if is_small {
            work.take(all.states.len().pow(2))?;
            all.minimized()
        } else {
            all
        };
        (all.states.len() <= work.states).then_some(all)
    }

    /// Without the states from which no text can end.
    fn trimmed(&self) -> Self {
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.states.len()];
        for (index, state) in self.states.iter().enumerate() {
            for (_, to) in &state.next {
                if let Some(list) = before.get_mut(*to) {
                    list.push(index);
                }
            }
        }
        let ends = self.states.iter().enumerate();
        let mut open: Vec<usize> = ends
            .filter(|(_, state)| state.may_end)
            .map(|(index, _)| index)
            .collect();
        let mut can_end = vec![false; self.states.len()];
        while let Some(index) = open.pop() {
            if let Some(place) = can_end.get_mut(index).filter(|can_end| !**can_end) {
                *place = true;
                open.extend(before.get(index).into_iter().flatten());
            }
        }
        self.only(&can_end)
    }

    /// The automaton with some of its states; it has none if the start is not one of them.
    fn only(&self, is_kept: &[bool]) -> Self {
        let mut count = 0;
        let places: Vec<Option<usize>> = is_kept
            .iter()
            .map(|is_kept| {
                count += usize::from(*is_kept);
                is_kept.then(|| count - 1)
            })
            .collect();
        if is_kept.first() != Some(&true) {
            return Self { states: Vec::new() };
        }
        let kept = self
            .states
            .iter()
            .zip(is_kept)
            .filter(|(_, is_kept)| **is_kept);
        let states = kept.map(|(state, _)| State {
            next: state
                .next
                .iter()
                .filter_map(|(characters, to)| Some((characters.clone(), (*places.get(*to)?)?)))
                .collect(),
            may_end: state.may_end,
        });
        Self {
            states: states.collect(),
        }
    }

    /// Returns `true` if no text has a line end.
    pub(crate) fn is_one_line(&self) -> bool {
        let mut steps = self.states.iter().flat_map(|state| &state.next);
        !steps.any(|(characters, _)| characters.has('\n'))
    }

    pub(crate) fn accepts(&self, text: &str) -> bool {
        let mut here = self.states.first();
        for character in text.chars() {
            let step = here.and_then(|state| {
                let mut next = state.next.iter();
                next.find(|(characters, _)| characters.has(character))
            });
            here = step.and_then(|(_, to)| self.states.get(*to));
        }
        here.is_some_and(|state| state.may_end)
    }

    /// Merges states that accept the same texts.
    fn minimized(self) -> Self {
        let mut class: Vec<usize> = self
            .states
            .iter()
            .map(|one| usize::from(one.may_end))
            .collect();
        let mut count = 0;
        loop {
            let mut known = HashMap::new();
            let mut next = Vec::with_capacity(class.len());
            for (state, own) in self.states.iter().zip(&class) {
                let merged = merged(state, &class);
                let steps: Vec<_> = merged
                    .iter()
                    .map(|(set, to)| (set.ranges().to_vec(), *to))
                    .collect();
                let size = known.len();
                next.push(*known.entry((*own, steps)).or_insert(size));
            }
            let is_done = known.len() == count;
            count = known.len();
            class = next;
            if is_done {
                break;
            }
        }
        let mut states: Vec<Option<State>> = vec![None; count];
        for (state, own) in self.states.iter().zip(&class) {
            if let Some(place) = states.get_mut(*own).filter(|place| place.is_none()) {
                *place = Some(State {
                    next: merged(state, &class),
                    may_end: state.may_end,
                });
            }
        }
        Self {
            states: states.into_iter().flatten().collect(),
        }
    }
}

fn ranges(steps: &[(Characters, usize)]) -> usize {
    let ranges = steps
        .iter()
        .map(|(characters, _)| characters.ranges().len());
    ranges.sum()
}

/// The steps of a state to classes of states, one for each class, in the order of the classes.
fn merged(state: &State, class: &[usize]) -> Vec<(Characters, usize)> {
    let mut all: Vec<(Characters, usize)> = Vec::new();
    for (characters, to) in &state.next {
        let to = class.get(*to).copied().unwrap_or_default();
        match all.iter_mut().find(|(_, known)| *known == to) {
            Some((known, _)) => *known = known.or(characters),
            None => all.push((characters.clone(), to)),
        }
    }
    all.sort_by_key(|(_, to)| *to);
    all
}

/// A nondeterministic automaton.
#[derive(Debug, Default)]
struct Graph {
    size: usize,
    skips: Vec<(usize, usize)>,
    steps: Vec<(usize, Characters, usize)>,
}

impl Graph {
    fn add(&mut self) -> usize {
        self.size += 1;
        self.size - 1
    }

    /// Adds a regular pattern between two states. Rules are ignored.
    fn pattern(&mut self, pattern: &Pattern, from: usize, to: usize) {
        match pattern {
            // The last step leads to the end directly: the fewer states, the fewer sets of states.
            Pattern::Literal(text) => {
                let mut here = from;
                let mut rest = text.chars().peekable();
                while let Some(character) = rest.next() {
                    let next = rest.peek().map_or(to, |_| self.add());
                    self.steps.push((here, Characters::one(character), next));
                    here = next;
                }
                if text.is_empty() {
                    self.skips.push((from, to));
                }
            }
            Pattern::Characters(characters) => self.steps.push((from, characters.clone(), to)),
            Pattern::Sequence(parts) => {
                let mut here = from;
                let mut rest = parts.iter().peekable();
                while let Some(part) = rest.next() {
                    let next = rest.peek().map_or(to, |_| self.add());
                    self.pattern(part, here, next);
                    here = next;
                }
                if parts.is_empty() {
                    self.skips.push((from, to));
                }
            }
            Pattern::Choice(options) => {
                for option in options {
                    self.pattern(option, from, to);
                }
            }
            Pattern::Repeat { of, least, most } => {
                let mut here = from;
                for _ in 0..*least {
                    let next = self.add();
                    self.pattern(of, here, next);
                    here = next;
                }
                match most {
                    None => {
                        let again = self.add();
                        self.skips.push((here, again));
                        self.pattern(of, again, again);
                        here = again;
                    }
                    Some(most) => {
                        for _ in *least..*most {
                            let next = self.add();
                            self.pattern(of, here, next);
                            self.skips.push((here, to));
                            here = next;
                        }
                    }
                }
                self.skips.push((here, to));
            }
            Pattern::Rule(_) | Pattern::Text(_) => {}
        }
    }

    /// Converts to a deterministic automaton of the sets that are allowed; `None` if this takes too much work. The text may
    /// end in a set that contains `end`, or without `end`, where a line end is allowed.
    fn determined(
        &self,
        start: usize,
        is_allowed: impl Fn(&BTreeSet<usize>) -> bool,
        end: Option<usize>,
        work: &Work,
    ) -> Option<Automaton> {
        let mut skips: Vec<Vec<usize>> = vec![Vec::new(); self.size];
        for (from, to) in &self.skips {
            if let Some(list) = skips.get_mut(*from) {
                list.push(*to);
            }
        }
        let mut steps: Vec<Vec<(&Characters, usize)>> = vec![Vec::new(); self.size];
        for (from, characters, to) in &self.steps {
            if let Some(list) = steps.get_mut(*from) {
                list.push((characters, *to));
            }
        }
        let closed = |states: Vec<usize>| {
            let mut set = BTreeSet::new();
            let mut open = states;
            while let Some(state) = open.pop() {
                if set.insert(state) {
                    open.extend(skips.get(state).into_iter().flatten());
                }
            }
            set
        };
        let first = closed(vec![start]);
        let mut known = HashMap::from([(first.clone(), 0)]);
        let mut sets = vec![first];
        let mut states: Vec<State> = Vec::new();
        while let Some(set) = sets.get(states.len()).cloned() {
            let here: Vec<(&Characters, usize)> = set
                .iter()
                .filter_map(|state| steps.get(*state))
                .flatten()
                .copied()
                .collect();
            let mut next: Vec<(Characters, usize)> = Vec::new();
            let intervals = intervals(&here);
            work.take(intervals.len().saturating_mul(here.len()))?;
            for (first, last) in intervals {
                let to = here.iter().filter(|(characters, _)| {
                    let mut ranges = characters.ranges().iter();
                    ranges.any(|range| range.0 <= first && last <= range.1)
                });
                let to = closed(to.map(|(_, to)| *to).collect());
                // It is kept twice.
                work.take(SET * to.len())?;
                if to.is_empty() || !is_allowed(&to) {
                    continue;
                }
                let place = known.len();
                let place = *known.entry(to.clone()).or_insert_with(|| {
                    sets.push(to);
                    place
                });
                let step = Characters::of_ranges([(first, last)]);
                match next.iter_mut().find(|(_, known)| *known == place) {
                    Some((characters, _)) => *characters = characters.or(&step),
                    None => next.push((step, place)),
                }
            }
            let may_end = match end {
                Some(end) => set.contains(&end),
                None => next.iter().any(|(characters, _)| characters.has('\n')),
            };
            states.push(State { next, may_end });
            if sets.len() > work.states {
                return None;
            }
        }
        Some(Automaton { states })
    }
}

/// Splits all code points into the intervals that these steps distinguish.
fn intervals(steps: &[(&Characters, usize)]) -> Vec<(u32, u32)> {
    let ranges = || steps.iter().flat_map(|(characters, _)| characters.ranges());
    let begins: BTreeSet<u32> = ranges()
        .flat_map(|(first, last)| [*first, last.saturating_add(1)])
        .collect();
    let begins: Vec<u32> = begins.into_iter().collect();
    begins
        .windows(2)
        .filter_map(|pair| Some((*pair.first()?, *pair.last()? - 1)))
        .collect()
}
