//! The line and the body of an emoji call, for the example.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::repair::fixed::fixed;
use crate::repair::kept::{Keep, Keeper, Slot, Spelled, Texts, Wrong, by_key, key_of, pointers_of};
use crate::repair::placeholder::{ended_early, placeholder, skeleton, word_on_line};
use plaincall_names::pointers::escape;
use plaincall_reply::ToolCall;
use plaincall_reply::bind;
use plaincall_tool::Arguments;
use plaincall_tool::bind::Problems;
use plaincall_tool::bind::emoji::bind_emoji;
use plaincall_tool::schema::{AllowedValues, SchemaReader};
use plaincall_tool::usage::{Usage, UsageBody};
use plaincall_tool::{Parameter, ToolSpec};

/// Optional members of a JSON body over this number are not shown.
const MOST_MEMBERS: usize = 32;

pub(super) fn blank(tool: &ToolSpec) -> Spelled {
    Draft::new(tool, &tool.schema().reader(), HashMap::new()).spelled(
        &Arguments::default(),
        None,
        false,
    )
}

pub(super) fn spelled(
    tool: &ToolSpec,
    call: &ToolCall,
    wrong: Wrong,
    keep: Keep,
    keeper: &Keeper,
) -> Spelled {
    let problems = bind(tool, call).err().unwrap_or_default();
    let broken = by_key(pointers_of(&problems)).into_iter();
    let broken = broken.map(|(key, pointers)| {
        let whole = vec![escape(&key).into_owned()];
        let parts = pointers.into_iter().map(str::to_owned).collect();
        let is_kept = keep == Keep::Parts;
        (key, if is_kept { parts } else { whole })
    });
    let written = bind_emoji(tool, call.emoji_parts(), &mut Problems::default());
    let reader = tool.schema().reader();
    Draft::new(tool, &reader, broken.collect()).spelled(&written, Some(keeper), wrong.is_truncated)
}

struct Draft<'d, 's> {
    usage: Usage<'d>,
    tool: &'d ToolSpec,
    reader: &'d SchemaReader<'s>,
    root: AllowedValues<'s>,
    broken: HashMap<String, Vec<String>>,
    placeholders: Vec<String>,
    omitted: usize,
}

impl<'d, 's> Draft<'d, 's> {
    fn new(
        tool: &'d ToolSpec,
        reader: &'d SchemaReader<'s>,
        broken: HashMap<String, Vec<String>>,
    ) -> Self {
        Self {
            usage: tool.usage(),
            tool,
            reader,
            root: reader.root(),
            broken,
            placeholders: Vec::new(),
            omitted: 0,
        }
    }

    fn is_broken(&self, pointer: &str) -> bool {
        self.broken.contains_key(&key_of(pointer))
    }

    fn spelled(
        mut self,
        written: &Arguments,
        keeper: Option<&Keeper>,
        is_truncated: bool,
    ) -> Spelled {
        let raw_args = self.line(written, keeper);
        let body = match self.usage.body {
            UsageBody::Nothing => String::new(),
            UsageBody::Parameter(parameter) => self.body(parameter, written, keeper, is_truncated),
            UsageBody::Json => self.json(written, keeper).to_string(),
        };
        Spelled {
            texts: Texts::Emoji { raw_args, body },
            placeholders: self.placeholders,
            omitted: self.omitted,
        }
    }

    fn allowed(&self, parameter: &Parameter) -> AllowedValues<'s> {
        self.reader.member(&self.root, &parameter.name)
    }

    fn text(&mut self, pointer: &str, slot: Slot) -> String {
        match slot {
            Slot::Kept(text) => text,
            Slot::Placeholder(text) => {
                self.placeholders.push(pointer.to_owned());
                text
            }
        }
    }

    fn line(&mut self, written: &Arguments, keeper: Option<&Keeper>) -> String {
        let mut words = Vec::new();
        for item in self.usage.line.clone() {
            let pointer = item.parameter.pointer();
            let text = written.get(&pointer);
            if text.is_none() && !item.parameter.required {
                break;
            }
            let word = |what: &str| {
                let name = &item.parameter.name;
                Slot::Placeholder(word_on_line(name, what, item.takes_rest))
            };
            let kept = text.filter(|_| !self.is_broken(&pointer)).zip(keeper);
            let slot = match kept.map(|(text, keeper)| keeper.slot(text)) {
                Some(Slot::Kept(text)) if !text.is_empty() => Slot::Kept(text),
                Some(Slot::Placeholder(text)) => word(text.trim_matches(['<', '>'])),
                _ => word(&self.allowed(item.parameter).in_words()),
            };
            words.push(self.text(&pointer, slot));
        }
        words.join(" ")
    }

    fn body(
        &mut self,
        parameter: &Parameter,
        written: &Arguments,
        keeper: Option<&Keeper>,
        is_truncated: bool,
    ) -> String {
        let pointer = parameter.pointer();
        let name = &parameter.name;
        let text = written.get(&pointer).filter(|_| !self.is_broken(&pointer));
        let slot = match text.zip(keeper) {
            _ if is_truncated => {
                let len = text.map_or(0, str::len);
                Slot::Placeholder(ended_early(&format!("{name}: a string"), len))
            }
            Some((text, keeper)) => keeper.slot(text),
            None if !parameter.required && written.get(&pointer).is_none() => {
                return String::new();
            }
            None => {
                let expected = self.allowed(parameter).in_words();
                Slot::Placeholder(placeholder(&format!("{name}: {expected}")))
            }
        };
        self.text(&pointer, slot)
    }

    fn json(&mut self, written: &Arguments, keeper: Option<&Keeper>) -> Value {
        let mut object = Map::new();
        for (key, node) in written.tree.root() {
            let Some(keeper) = keeper.filter(|_| self.declares(key)) else {
                continue;
            };
            let is_required = self.tool.get(key).is_some_and(|one| one.required);
            if object.len() >= MOST_MEMBERS && !is_required {
                self.omitted += 1;
                continue;
            }
            let pointer = escape(key);
            let value = written.value_of(node);
            let inner = self.broken.remove(key).unwrap_or_default();
            let value = if inner.is_empty() {
                match keeper.slot(&value.to_string()) {
                    Slot::Kept(_) => value,
                    slot @ Slot::Placeholder(_) => self.text(&pointer, slot).into(),
                }
            } else {
                self.placeholders.push(pointer.to_string());
                fixed(self.reader, &self.root, value, &pointer, &inner, keeper)
            };
            object.insert(key.to_owned(), value);
        }
        for parameter in self.tool.parameters().iter().filter(|one| one.required) {
            if !object.contains_key(&parameter.name) {
                self.placeholders.push(parameter.pointer().into_owned());
                let value = skeleton(self.reader, &self.allowed(parameter));
                object.insert(parameter.name.clone(), value);
            }
        }
        object.into()
    }

    fn declares(&self, key: &str) -> bool {
        self.tool.get(key).is_some() || self.root.declares(key)
    }
}
