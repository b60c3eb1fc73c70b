//! Comparison of values and arguments with the alternatives of a schema.
//!
//! Only the keywords for reading are compared: a "no" is certain, a "yes" is not.

use serde_json::Value;

use super::allowed_values::{AllowedValues, SchemaReader};
use super::alternative::Alternative;
use super::bounds::{is_same, keeps_bounds};
use super::keywords::{Keywords, keyword};
use super::kinds::Kinds;
use super::spelling::candidates;
use crate::Arguments;
use crate::text_type::trimmed;
use crate::tree::{Node, NodeIndex};

impl<'s> SchemaReader<'s> {
    /// Returns `true` if an alternative allows the value. Recurses as deep as the value.
    pub fn allows(&self, allowed: &AllowedValues<'s>, value: &Value) -> bool {
        allowed
            .alternatives
            .iter()
            .any(|alternative| self.is_fitting(alternative, value))
    }

    pub fn is_fitting(&self, alternative: &Alternative<'s>, value: &Value) -> bool {
        if !self.step() {
            return true;
        }
        if !alternative
            .all
            .iter()
            .all(|keywords| keeps(keywords, value))
        {
            return false;
        }
        let is_fitting_below = |ways: Vec<Vec<&'s Value>>, value: &Value| {
            ways.into_iter()
                .any(|schemas| schemas.is_empty() || self.allows(&self.allowed(schemas), value))
        };
        match value {
            Value::Object(members) => {
                alternative
                    .required()
                    .all(|name| members.contains_key(name))
                    && members
                        .iter()
                        .all(|(key, member)| is_fitting_below(self.ways(alternative, key), member))
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .all(|(index, item)| is_fitting_below(alternative.item(index), item)),
            _ => true,
        }
    }

    /// Keeps the alternatives that a value matches; all if it matches none.
    pub(crate) fn narrow_to(
        &self,
        allowed: &AllowedValues<'s>,
        value: &Value,
    ) -> AllowedValues<'s> {
        let alternatives: Vec<Alternative<'s>> = allowed
            .alternatives
            .iter()
            .filter(|alternative| self.is_fitting(alternative, value))
            .cloned()
            .collect();
        if alternatives.is_empty() {
            allowed.clone()
        } else {
            AllowedValues { alternatives }
        }
    }

    /// Keeps the alternatives that the parts of a node match. If they match none, keeps those whose constants match;
    /// failing that, those with parts of the same kind.
    pub fn narrow(
        &self,
        allowed: AllowedValues<'s>,
        arguments: &Arguments,
        node: NodeIndex,
    ) -> AllowedValues<'s> {
        if allowed.alternatives.len() < 2 {
            return allowed;
        }
        let allowed = allowed.only(match arguments.tree.node(node) {
            Some(Node::Object(_)) => Kinds::OBJECT,
            _ => Kinds::LIST | Kinds::OBJECT,
        });
        if allowed.alternatives.len() < 2 {
            return allowed;
        }
        let left = |may_be: &dyn Fn(&Alternative<'s>) -> bool| -> Vec<Alternative<'s>> {
            allowed
                .alternatives
                .iter()
                .filter(|alternative| may_be(alternative))
                .cloned()
                .collect()
        };
        let mut alternatives = left(&|one| self.may_hold(one, arguments, node, false));
        if alternatives.is_empty() {
            alternatives = left(&|one| self.may_hold(one, arguments, node, true));
        }
        if alternatives.is_empty() {
            alternatives = left(&|one| self.has_constants(one, arguments, node));
        }
        if alternatives.is_empty() {
            allowed
        } else {
            AllowedValues { alternatives }
        }
    }

    /// Returns `true` if a node may match the alternative, with or without the blanks around listed strings. Recurses as deep
    /// as pointers.
    fn may_hold(
        &self,
        alternative: &Alternative<'s>,
        arguments: &Arguments,
        node: NodeIndex,
        is_trimmed: bool,
    ) -> bool {
        if !self.step() {
            return true;
        }
        let may_hold_below = |ways: Vec<Vec<&'s Value>>, node: NodeIndex| {
            ways.into_iter().any(|schemas| {
                let below = self.allowed(schemas).alternatives;
                let mut below = below.iter();
                below.any(|one| {
                    one.all.is_empty() || self.may_hold(one, arguments, node, is_trimmed)
                })
            })
        };
        let kinds = alternative.kinds().unwrap_or(Kinds::ALL);
        match arguments.tree.node(node) {
            Some(Node::Leaf(leaf)) => {
                let Some(leaf) = arguments.leaves.get(*leaf) else {
                    return true;
                };
                let text = arguments.text(leaf);
                let may_trim = is_trimmed && alternative.is_listed();
                let string = if may_trim { trimmed(text) } else { text };
                let as_string = Some(Value::from(string)).filter(|_| kinds.has(Kinds::STRING));
                alternative.kinds().is_none()
                    || candidates(kinds, text)
                        .map(|(_, value)| value)
                        .chain(as_string)
                        .any(|value| self.is_fitting(alternative, &value))
            }
            Some(Node::Object(object)) => {
                // Nodes with parts are compared last: usually a single value decides between alternatives, and nested
                // alternatives would otherwise be combined with each other.
                let is_leaf = |node| matches!(arguments.tree.node(node), Some(Node::Leaf(_)));
                let may_hold_all = |leaves: bool| {
                    let mut members = object.iter().filter(|(_, one)| is_leaf(*one) == leaves);
                    members.all(|(key, member)| may_hold_below(self.ways(alternative, key), member))
                };
                kinds.has(Kinds::OBJECT)
                    && alternative
                        .required()
                        .all(|name| object.get(name).is_some())
                    && may_hold_all(true)
                    && may_hold_all(false)
            }
            Some(Node::Array(items)) if kinds.has(Kinds::LIST) => items
                .iter()
                .enumerate()
                .all(|(index, item)| may_hold_below(alternative.item(index), *item)),
            Some(Node::Array(items)) => {
                kinds.has(Kinds::OBJECT)
                    && items.iter().enumerate().all(|(index, item)| {
                        may_hold_below(self.ways(alternative, &index.to_string()), *item)
                    })
            }
            None => true,
        }
    }

    /// Returns `true` if there are members with listed values, and all of them have one of those.
    fn has_constants(
        &self,
        alternative: &Alternative<'s>,
        arguments: &Arguments,
        node: NodeIndex,
    ) -> bool {
        let Some(Node::Object(object)) = arguments.tree.node(node) else {
            return false;
        };
        let mut listed = alternative
            .properties()
            .filter_map(|(name, schema)| Some((self.allowed([schema]), object.get(name)?)))
            .filter(|(allowed, _)| allowed.is_listed())
            .peekable();
        listed.peek().is_some()
            && listed.all(|(allowed, member)| {
                allowed
                    .alternatives
                    .iter()
                    .any(|one| self.may_hold(one, arguments, member, true))
            })
    }
}

/// Returns `true` if a value matches the keywords of one schema, without its parts.
fn keeps(keywords: &Keywords, value: &Value) -> bool {
    let by_type = || {
        let types = keyword(keywords, "type");
        let names = match types {
            Some(Value::Array(names)) => names.as_slice(),
            Some(name) => std::slice::from_ref(name),
            None => return true,
        };
        names.iter().any(|name| {
            let kinds = name.as_str().and_then(Kinds::named).unwrap_or(Kinds::ALL);
            kinds.has(Kinds::of(value))
        })
    };
    let is_one_of = |values: &[Value]| values.iter().any(|one| is_same(one, value));
    by_type()
        && keyword(keywords, "enum")
            .and_then(Value::as_array)
            .is_none_or(|values| is_one_of(values))
        && keyword(keywords, "const").is_none_or(|constant| is_same(constant, value))
        && keeps_bounds(keywords, value)
}
