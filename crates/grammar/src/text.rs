//! The texts that a grammar describes by an automaton: JSON strings, and strings with a limited length or a pattern
//! (`spec/grammar.md` 4.1).

use std::collections::BTreeSet;

use indexmap::IndexSet;

use crate::automaton::{Automaton, Work};
use crate::exclusion::Exclusion;
use crate::json_string;
use crate::pattern::{Characters, Pattern};
use crate::unheld::Unheld;

/// The strings of a schema at a location.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Strings {
    Any,
    /// Those of a text of the grammar.
    Limited(usize),
    /// The limits allow none.
    Impossible,
}

/// The maximum number of states of one text, and of all limited texts of a grammar. Engines need time for each.
const MOST_STATES: usize = 4_000;
const MOST_STATES_IN_ALL: usize = 6_000;
/// The maximum number of steps to make the automata of all limited texts of a grammar, also of those that are too large.
const MOST_STEPS: usize = 10_000_000;
/// The maximum number of states of a text in a structural tag, and of all, counted at each place. `XGrammar` needs about 10 ms to
/// compile each.
const MOST_STATES_IN_TAG: usize = 50;
const MOST_STATES_IN_ALL_TAGS: usize = 300;
/// The maximum number of states of a value of several lines in Lark.
const MOST_STATES_IN_LARK: usize = 40;
/// A limited text excludes what begins with this many characters of a marker or near miss; with fewer, if it has too many states.
const BEGINS: [usize; 2] = [4, 3];

/// Where a text is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// The value of an argument, or the body of an emoji call.
    Value,
    /// JSON, where it is a string with its quotes.
    Json,
    /// The line of an emoji call; the pattern is any text there.
    Line(Pattern),
}

/// A text that all of some regular patterns match, and that contains nothing of what is excluded at its location.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) location: Location,
    pub(crate) all: Vec<Pattern>,
    pub(crate) exclusion: Exclusion,
    pub(crate) automaton: Automaton,
    /// Whether only its length is limited.
    pub(crate) is_length: bool,
    /// The keywords that it enforces, at each place; none for any text.
    pub(crate) limits: IndexSet<Unheld>,
    /// How many places have these limits.
    pub(crate) places: usize,
}

/// The texts of a grammar.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    pub(crate) all: Vec<Text>,
    json: Exclusion,
    /// The exclusions of limited values and of limited JSON strings, from the least to the most.
    in_values: Vec<Allowed>,
    in_json: Vec<Allowed>,
    states_left: usize,
    /// The steps that are left to make automata. Without, strings have no limits.
    steps_left: usize,
    /// The texts that have too many states.
    too_large: Vec<(Location, Vec<Pattern>)>,
}

/// The texts that contain nothing of what is excluded.
#[derive(Clone, Debug)]
struct Allowed {
    exclusion: Exclusion,
    automaton: Option<Automaton>,
}

impl Allowed {
    fn all_of(exclusion: &Exclusion) -> Vec<Self> {
        let begins = BEGINS.iter().map(|length| exclusion.of_begins(*length));
        begins.map(Self::without).collect()
    }

    fn without(exclusion: Exclusion) -> Self {
        Self {
            exclusion,
            automaton: None,
        }
    }
}

impl Texts {
    /// Values exclude escapes too: they would change the length.
    pub(crate) fn new(value: &Exclusion, escapes: &[String], json: Exclusion) -> Self {
        let value = value.clone().and(escapes.iter().cloned());
        Self {
            all: Vec::new(),
            in_values: Allowed::all_of(&value),
            in_json: Allowed::all_of(&json),
            json,
            states_left: MOST_STATES_IN_ALL,
            steps_left: MOST_STEPS,
            too_large: Vec::new(),
        }
    }

    /// Returns any JSON string.
    pub(crate) fn json_string(&mut self) -> Pattern {
        // Without limits it is never too large.
        let text = self.matching(Location::Json, Vec::new());
        text.map_or(Pattern::Choice(Vec::new()), Pattern::Text)
    }

    /// Returns the text that all of these patterns match; `None` if it has too many states. The patterns match values, not
    /// their notation in JSON.
    pub(crate) fn matching(&mut self, location: Location, patterns: Vec<Pattern>) -> Option<usize> {
        let is_limited = !patterns.is_empty();
        if is_limited {
            let compared = self.all.len() + self.too_large.len();
            self.steps_left = self.steps_left.saturating_sub(compared);
            if self.steps_left == 0 {
                return None;
            }
        }
        if is_limited && location == Location::Json {
            // A structural tag may need it.
            self.json_string();
        }
        let mut all = patterns;
        match &location {
            // A value's CR before its line end would belong to the line end.
            Location::Value => all.push(without_final_cr()),
            Location::Json if is_limited => all = all.iter().map(json_string::written).collect(),
            Location::Json => all.push(json_string::any()),
            Location::Line(any) => all.push(any.clone()),
        }
        let mut known = self.all.iter();
        if let Some(index) = known.position(|text| text.location == location && text.all == all) {
            return Some(index);
        }
        if self.too_large.contains(&(location.clone(), all.clone())) {
            return None;
        }
        let found = if is_limited {
            let states = MOST_STATES.min(self.states_left);
            let work = Work::new(states, self.steps_left);
            let found = self.limited(&location, &all, &work);
            self.steps_left = work.steps_left();
            found
        } else {
            let json = self.json.clone();
            let allowed = Automaton::excluding(&json);
            let work = Work::new(MOST_STATES, usize::MAX);
            let automaton = all_of(&all, &work).and_then(|all| allowed.and(&all, &work));
            automaton.map(|automaton| (json, automaton))
        };
        let Some((exclusion, automaton)) = found else {
            self.too_large.push((location, all));
            return None;
        };
        if is_limited {
            self.states_left -= automaton.states.len();
        }
        self.all.push(Text {
            location,
            all,
            exclusion,
            automaton,
            is_length: true,
            limits: IndexSet::new(),
            places: 0,
        });
        Some(self.all.len() - 1)
    }

    fn limited(
        &mut self,
        location: &Location,
        all: &[Pattern],
        work: &Work,
    ) -> Option<(Exclusion, Automaton)> {
        let matching = all_of(all, work)?;
        let all_allowed = match location {
            Location::Value => &mut self.in_values,
            Location::Json => &mut self.in_json,
            Location::Line(_) => return Some((Exclusion::of_texts([]), matching)),
        };
        all_allowed.iter_mut().find_map(|allowed| {
            let exclusion = &allowed.exclusion;
            let automaton = allowed
                .automaton
                .get_or_insert_with(|| Automaton::excluding(exclusion));
            Some((exclusion.clone(), automaton.and(&matching, work)?))
        })
    }

    /// Returns whether Lark expresses the limits of a text. The lexer of llguidance has a limit for the work of one token, which
    /// patterns and longer lengths of several lines exceed together with near misses at the beginning of each.
    pub(crate) fn is_in_lark(&self, index: usize) -> bool {
        self.all.get(index).is_some_and(|text| {
            let is_short = text.is_length && text.automaton.states.len() <= MOST_STATES_IN_LARK;
            text.location != Location::Value || is_short || text.automaton.is_one_line()
        })
    }

    /// Returns which of these texts a structural tag contains. The others are written without limits.
    pub(crate) fn in_tag(&self, used: BTreeSet<usize>) -> BTreeSet<usize> {
        let mut left = MOST_STATES_IN_ALL_TAGS;
        let mut is_small = |index: &usize| {
            let text = self.all.get(*index);
            let (states, places) =
                text.map_or((0, 0), |text| (text.automaton.states.len(), text.places));
            let is_small = places == 0 || (states <= MOST_STATES_IN_TAG && states * places <= left);
            left -= if is_small { states * places } else { 0 };
            is_small
        };
        used.into_iter().filter(|index| is_small(index)).collect()
    }

    /// Returns the automaton of a text on the line of an emoji call or in JSON, without its limits.
    pub(crate) fn without_limits(&self, index: usize) -> Option<Automaton> {
        match &self.all.get(index)?.location {
            Location::Line(any) => Automaton::matching(any, &Work::new(MOST_STATES, usize::MAX)),
            location => {
                let mut all = self.all.iter();
                let any = all.find(|text| text.location == *location && text.places == 0)?;
                Some(any.automaton.clone())
            }
        }
    }

    /// Returns `true` if there is no such text.
    pub(crate) fn is_empty(&self, index: usize) -> bool {
        self.all
            .get(index)
            .is_none_or(|text| text.automaton.states.is_empty())
    }
}

/// Returns the texts that all patterns match; `None` if this takes too much work.
fn all_of(patterns: &[Pattern], work: &Work) -> Option<Automaton> {
    let mut automata = patterns
        .iter()
        .map(|pattern| Automaton::matching(pattern, work));
    let mut all = automata.next()??;
    for automaton in automata {
        all = all.and(&automaton?, work)?;
    }
    Some(all)
}

/// Any text that does not end with CR.
fn without_final_cr() -> Pattern {
    let last = Pattern::Characters(Characters::one_of("\r").not());
    Pattern::sequence([Pattern::any_text(), last]).optional()
}
