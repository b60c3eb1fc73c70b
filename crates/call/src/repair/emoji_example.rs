//! The line and the body of an emoji call as they would look right.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::arguments::Arguments;
use crate::bind::emoji::bind_emoji;
use crate::bind::{Problems, bind};
use crate::call::ToolCall;
use crate::pointer::escape;
use crate::repair::example::{Keep, Keeper, Slot, Spelled, Wrong, by_key, key_of, pointers_of};
use crate::repair::mended::mended;
use crate::repair::placeholder::{ended_early, placeholder, skeleton, word_on_line};
use crate::schema::{Place, SchemaReader};
use crate::tool::usage::{Usage, UsageBody};
use crate::tool::{Parameter, ToolSpec};

/// Optional members of a JSON body beyond so many are not shown.
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
    if keep == Keep::Nothing {
        return blank(tool);
    }
    let problems = bind(tool, call).err().unwrap_or_default();
    let broken = by_key(pointers_of(&problems)).into_iter();
    let broken = broken.map(|(key, pointers)| {
        let whole = vec![escape(&key).into_owned()];
        let parts = pointers.into_iter().map(str::to_owned).collect();
        let is_kept = keep == Keep::Parts;
        (key, if is_kept { parts } else { whole })
    });
    let written = bind_emoji(tool, call, &mut Problems::default());
    let reader = tool.schema().reader();
    Draft::new(tool, &reader, broken.collect()).spelled(&written, Some(keeper), wrong.is_cut)
}

struct Draft<'d, 's> {
    usage: Usage<'d>,
    tool: &'d ToolSpec,
    reader: &'d SchemaReader<'s>,
    root: Place<'s>,
    /// Pointers at which something is wrong, by the argument that they lead into.
    broken: HashMap<String, Vec<String>>,
    placeholders: Vec<String>,
    left_out: usize,
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
            left_out: 0,
        }
    }

    fn is_broken(&self, pointer: &str) -> bool {
        self.broken.contains_key(&key_of(pointer))
    }

    fn spelled(mut self, written: &Arguments, keeper: Option<&Keeper>, is_cut: bool) -> Spelled {
        let raw_args = self.line(written, keeper);
        let body = match self.usage.body {
            UsageBody::Nothing => String::new(),
            UsageBody::Parameter(parameter) => self.body(parameter, written, keeper, is_cut),
            UsageBody::Json => self.json(written, keeper).to_string(),
        };
        Spelled::Emoji {
            raw_args,
            body,
            placeholders: self.placeholders,
            left_out: self.left_out,
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
            let kept = text
                .filter(|_| !self.is_broken(&pointer))
                .zip(keeper)
                .map(|(text, keeper)| keeper.slot(text));
            words.push(match kept {
                Some(Slot::Kept(text)) if !text.is_empty() => text,
                Some(Slot::Placeholder(text)) => {
                    self.placeholders.push(pointer.into_owned());
                    let words = text.trim_matches(['<', '>']);
                    word_on_line(&item.parameter.name, words, item.takes_rest)
                }
                _ => {
                    let place = self.reader.member(&self.root, &item.parameter.name);
                    self.placeholders.push(pointer.into_owned());
                    word_on_line(&item.parameter.name, &place.in_words(), item.takes_rest)
                }
            });
        }
        words.join(" ")
    }

    fn body(
        &mut self,
        parameter: &Parameter,
        written: &Arguments,
        keeper: Option<&Keeper>,
        is_cut: bool,
    ) -> String {
        let pointer = parameter.pointer();
        let text = written.get(&pointer).filter(|_| !self.is_broken(&pointer));
        let slot = match text.zip(keeper) {
            _ if is_cut => {
                let words = format!("{}: a text", parameter.name);
                let len = text.map_or(0, str::len);
                Slot::Placeholder(ended_early(&words, len))
            }
            Some((text, keeper)) => keeper.slot(text),
            None if !parameter.required && written.get(&pointer).is_none() => {
                return String::new();
            }
            None => {
                let place = self.reader.member(&self.root, &parameter.name);
                let words = format!("{}: {}", parameter.name, place.in_words());
                Slot::Placeholder(placeholder(&words))
            }
        };
        if matches!(slot, Slot::Placeholder(_)) {
            self.placeholders.push(pointer.into_owned());
        }
        slot.text().to_owned()
    }

    fn json(&mut self, written: &Arguments, keeper: Option<&Keeper>) -> Value {
        let mut object = Map::new();
        for (key, node) in written.tree().root() {
            let pointer = escape(key);
            let Some(keeper) =
                keeper.filter(|_| self.tool.get(key).is_some() || self.root.declares(key))
            else {
                continue;
            };
            let value = written.value_of(node);
            let is_required = self.tool.get(key).is_some_and(|one| one.required);
            if object.len() >= MOST_MEMBERS && !is_required {
                self.left_out += 1;
                continue;
            }
            let inner = self.broken.remove(key).unwrap_or_default();
            if inner.is_empty() {
                let slot = keeper.slot(&value.to_string());
                if let Slot::Placeholder(text) = slot {
                    self.placeholders.push(pointer.into_owned());
                    object.insert(key.to_owned(), text.into());
                } else {
                    object.insert(key.to_owned(), value);
                }
            } else {
                let mended = mended(self.reader, &self.root, value, &pointer, &inner, keeper);
                self.placeholders.push(pointer.into_owned());
                object.insert(key.to_owned(), mended);
            }
        }
        for parameter in self.tool.parameters().iter().filter(|one| one.required) {
            if !object.contains_key(&parameter.name) {
                let place = self.reader.member(&self.root, &parameter.name);
                self.placeholders.push(parameter.pointer().into_owned());
                object.insert(parameter.name.clone(), skeleton(self.reader, &place));
            }
        }
        object.into()
    }
}
