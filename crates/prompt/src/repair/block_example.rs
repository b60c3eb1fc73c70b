//! The arguments of a block call, for the example.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use crate::repair::fixed::fixed;
use crate::repair::kept::{
    Keep, Keeper, Slot, Spelled, Wrong, allowed_at, by_key, is_in_union, is_related, key_of,
    pointers_of, spread,
};
use crate::repair::placeholder::{as_before, ended_early, narrowed, skeleton};
use plaincall_names::pointers::escape;
use plaincall_reply::ToolCall;
use plaincall_tool::{
    Arguments, ReplyDiagnostic, ToolSpec, bind_arguments,
    flatten::flatten,
    json_text,
    pointer::Pointer,
    schema::{AllowedValues, SchemaReader},
    tree::ROOT,
};

/// An argument with more values becomes one placeholder.
const MOST_VALUES: usize = 12;
/// Optional arguments over this number of values are not shown.
const MOST_SHOWN: usize = 32;
/// An argument with a longer pointer becomes one placeholder. In bytes.
const LONGEST_POINTER: usize = 100;

pub(super) fn blank(tool: &ToolSpec) -> Spelled {
    let reader = tool.schema().reader();
    let root = reader.root();
    let required = tool.parameters().iter().filter(|one| one.required);
    let arguments = required.flat_map(|parameter| {
        let allowed = reader.member(&root, &parameter.name);
        parts_of(&reader, &parameter.pointer(), &allowed)
    });
    Spelled::block(arguments.collect(), 0)
}

fn parts_of<'s>(
    reader: &SchemaReader<'s>,
    pointer: &str,
    allowed: &AllowedValues<'s>,
) -> Vec<(String, Slot)> {
    let mut slots = Vec::new();
    spread(pointer, &skeleton(reader, allowed), &mut slots);
    slots
}

/// Returns the valid arguments of a call, and placeholders for the others.
pub(super) fn spelled(
    tool: &ToolSpec,
    call: &ToolCall,
    wrong: Wrong,
    keep: Keep,
    keeper: &Keeper,
) -> Spelled {
    let reader = tool.schema().reader();
    let written = written(tool, call);
    let root = reader.narrow(reader.root(), &written, ROOT);
    let problems = bind_arguments(tool, &written).err().unwrap_or_default();
    let mut draft = Draft {
        tool,
        reader: &reader,
        root: &root,
        written: &written,
        broken: by_key(pointers_of(&problems)),
        whole: HashSet::new(),
        large: BTreeMap::new(),
        found: Found::default(),
    };
    draft.find_whole(call, &written, wrong.is_truncated, keep);
    let last = written.iter().last().filter(|_| wrong.is_truncated);
    for argument in written.iter() {
        let is_truncated = last.is_some_and(|last| last.pointer == argument.pointer);
        draft.argument(argument.pointer, argument.text, is_truncated, keeper);
    }
    draft.given_on_line(call, keeper);
    draft.missing(&problems);
    draft.finish()
}

/// Returns the arguments as written. JSON without an argument marker is taken for them.
fn written<'c>(tool: &ToolSpec, call: &'c ToolCall) -> Cow<'c, Arguments> {
    let is_empty = call.arguments.is_empty();
    if let Some(object) = is_empty.then(|| json_inside(call.raw())).flatten() {
        let mut pairs = Vec::new();
        for (key, value) in object {
            let one = Map::from_iter([(key.clone(), value.clone())]);
            if let Ok(flat) = flatten(&one, Some(tool)) {
                pairs.extend(flat);
            } else {
                // It does not fit, but its text shows that it was present.
                pairs.push((escape(&key).into_owned(), value.to_string()));
            }
        }
        let pairs = pairs.iter().map(|(pointer, text)| (&**pointer, &**text));
        if let Ok(arguments) = Arguments::from_pairs_for(tool, pairs) {
            return Cow::Owned(arguments);
        }
    }
    match call.fixed(tool) {
        Some(fixed) => Cow::Owned(fixed),
        None => Cow::Borrowed(&call.arguments),
    }
}

fn json_inside(raw: &str) -> Option<Map<String, Value>> {
    let begin = raw.find('{')?;
    let end = raw.rfind('}')? + 1;
    match json_text::parse(raw.get(begin..end)?) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

struct Draft<'d, 's> {
    tool: &'d ToolSpec,
    reader: &'d SchemaReader<'s>,
    root: &'d AllowedValues<'s>,
    written: &'d Arguments,
    /// Invalid pointers, by the argument that they lead into.
    broken: HashMap<String, Vec<&'d str>>,
    /// Arguments of which no part is kept, because something in them is invalid.
    whole: HashSet<String>,
    /// Arguments that are too large to show, with the number of their values.
    large: BTreeMap<String, usize>,
    found: Found,
}

#[derive(Default)]
struct Found {
    slots: Vec<(String, Slot)>,
    by_key: HashMap<String, Vec<usize>>,
}

impl Found {
    /// Returns `true` if there is an argument at the pointer, inside it or around it.
    fn has(&self, pointer: &str) -> bool {
        let same_key = self.by_key.get(&key_of(pointer)).into_iter().flatten();
        let mut known = same_key.filter_map(|&slot| self.slots.get(slot));
        known.any(|(known, _)| is_related(known, pointer))
    }

    fn put(&mut self, pointer: &str, slot: Slot) {
        if !self.has(pointer) {
            self.add(vec![(pointer.to_owned(), slot)]);
        }
    }

    fn add(&mut self, slots: Vec<(String, Slot)>) {
        for slot in slots {
            let places = self.by_key.entry(key_of(&slot.0)).or_default();
            places.push(self.slots.len());
            self.slots.push(slot);
        }
    }
}

impl Draft<'_, '_> {
    fn find_whole(&mut self, call: &ToolCall, written: &Arguments, is_truncated: bool, keep: Keep) {
        let mut has_long_pointer = HashSet::new();
        for argument in written.iter() {
            let key = key_of(argument.pointer);
            if argument.pointer.len() > LONGEST_POINTER {
                has_long_pointer.insert(key.clone());
            }
            *self.large.entry(key).or_default() += 1;
        }
        self.large
            .retain(|key, count| *count > MOST_VALUES || has_long_pointer.contains(key));
        let is_broken = |key: &&String| self.broken.contains_key(*key);
        self.whole
            .extend(self.large.keys().filter(is_broken).cloned());
        // A value that could not be placed has no location in the example.
        let unplaced = call.arguments.unplaced_pointers();
        let is_lost = |pointer: &&str| !pointer.contains([' ', '\t']);
        self.whole.extend(unplaced.filter(is_lost).map(key_of));
        let spoiled = call
            .diagnostics
            .iter()
            .filter(|one| one.is_argument_error());
        for diagnostic in spoiled {
            let named = diagnostic.message.rsplit(": ").next().unwrap_or_default();
            if matches!(
                diagnostic.code,
                "duplicate_pointer" | "value_too_long" | "truncated_pointer"
            ) {
                self.whole.insert(key_of(named));
            }
        }
        let is_open = |pointer: &&str| is_in_union(self.reader, self.root, pointer);
        let last = written.iter().last().filter(|_| is_truncated);
        let doubtful = last.iter().map(|last| last.pointer);
        let doubtful = self
            .broken
            .values()
            .flatten()
            .copied()
            .chain(doubtful)
            .filter(is_open);
        self.whole.extend(doubtful.map(key_of));
        if keep == Keep::Arguments {
            self.whole.extend(self.broken.keys().cloned());
        }
    }

    fn expected(&mut self, pointer: &str) {
        if self.found.has(pointer) {
            return;
        }
        let allowed = allowed_at(self.reader, self.root, pointer);
        if !allowed.alternatives.is_empty() {
            self.found.add(parts_of(self.reader, pointer, &allowed));
        }
    }

    /// Returns the value under a key, as far as it can be read without its schema.
    fn value_at(&self, pointer: &str) -> Value {
        let tree = &self.written.tree;
        match tree.find(&Pointer::lenient(pointer)) {
            Some(node) => match self.written.get(pointer).map(json_text::parse) {
                Some(Ok(value)) => value,
                _ => self.written.value_of(node),
            },
            None => Value::Null,
        }
    }

    fn is_declared(&self, key: &str) -> bool {
        self.tool.get(key).is_some() || self.root.declares(key)
    }

    fn argument(&mut self, pointer: &str, text: &str, is_truncated: bool, keeper: &Keeper) {
        let key = key_of(pointer);
        if !self.is_declared(&key) {
            return;
        }
        if self.whole.contains(&key) {
            let pointer = escape(&key);
            if !self.found.has(&pointer) {
                let allowed = self.reader.member(self.root, &key);
                let allowed = narrowed(self.reader, &allowed, &self.value_at(&pointer));
                self.found.add(parts_of(self.reader, &pointer, &allowed));
            }
            return;
        }
        if let Some(count) = self.large.get(&key) {
            let slot = Slot::Placeholder(as_before(&format!("{count} values")));
            self.found.put(&escape(&key), slot);
            return;
        }
        let mut broken = self.broken.get(&key).into_iter().flatten();
        match broken.find(|one| is_related(one, pointer)) {
            None if is_truncated => {
                let allowed = allowed_at(self.reader, self.root, pointer);
                let words = ended_early(&allowed.in_words(), text.len());
                self.found.put(pointer, Slot::Placeholder(words));
            }
            None => self.found.put(pointer, keeper.slot(text)),
            Some(broken) if broken.len() > pointer.len() => self.fixed(pointer, text, keeper),
            Some(&broken) => self.expected(broken),
        }
    }

    fn fixed(&mut self, pointer: &str, text: &str, keeper: &Keeper) {
        let broken = self.broken.get(&key_of(pointer)).into_iter().flatten();
        let inner = broken.filter(|one| is_related(one, pointer));
        let inner: Vec<String> = inner.map(|one| (*one).to_owned()).collect();
        let value = match json_text::parse(text) {
            Ok(value) if value.is_array() || value.is_object() => value,
            _ => return self.expected(pointer),
        };
        let fixed = fixed(self.reader, self.root, value, pointer, &inner, keeper);
        self.found
            .put(pointer, Slot::Placeholder(fixed.to_string()));
    }

    /// Adds values on the line of their pointer, if they are valid.
    fn given_on_line(&mut self, call: &ToolCall, keeper: &Keeper) {
        for pointer in call.arguments.unplaced_pointers() {
            let Some((pointer, value)) = pointer.split_once([' ', '\t']) else {
                continue;
            };
            let allowed = allowed_at(self.reader, self.root, pointer);
            let value = value.trim_matches([' ', '\t']);
            let is_fitting = self.reader.spelling(&allowed, value).type_error.is_none();
            if is_fitting && self.is_declared(&key_of(pointer)) {
                self.found.put(pointer, keeper.slot(value));
            } else if self.is_declared(&key_of(pointer)) {
                self.expected(pointer);
            }
        }
    }

    fn missing(&mut self, problems: &[ReplyDiagnostic]) {
        for problem in problems.iter().filter(|one| one.code == "missing_argument") {
            self.expected(&problem.pointer);
        }
        for parameter in self.tool.parameters().iter().filter(|one| one.required) {
            self.expected(&parameter.pointer());
        }
    }

    /// Returns the arguments in the order of the definition, up to the limit.
    fn finish(self) -> Spelled {
        let names = self.tool.parameters().iter().zip(0..);
        let places: HashMap<&str, usize> = names.map(|(one, at)| (&*one.name, at)).collect();
        let rank = |key: &String| places.get(&**key).copied().unwrap_or(usize::MAX);
        let mut groups: Vec<(String, Vec<usize>)> = self.found.by_key.into_iter().collect();
        groups.sort_by_cached_key(|(key, slots)| (rank(key), slots.first().copied()));
        let mut slots: Vec<Option<(String, Slot)>> =
            self.found.slots.into_iter().map(Some).collect();
        let mut omitted = 0;
        let mut arguments: Vec<(String, Slot)> = Vec::new();
        for (key, group) in groups {
            let is_required = self.tool.get(&key).is_some_and(|one| one.required);
            if arguments.len() >= MOST_SHOWN && !is_required {
                omitted += group.len();
                continue;
            }
            let group = group.into_iter().filter_map(|at| slots.get_mut(at)?.take());
            arguments.extend(group);
        }
        Spelled::block(arguments, omitted)
    }
}
