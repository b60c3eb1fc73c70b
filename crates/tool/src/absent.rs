//! Parameters that a call names but does not have: null for an optional parameter that cannot be null (`spec/block.md` 7.7.1).

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::Arguments;
use crate::ConversionRule;
use crate::ToolSpec;
use crate::schema::{AllowedValues, Kinds, SchemaReader};
use crate::text_type::is_null_or_none;
use crate::tree::Node;

fn is_optional(tool: &ToolSpec, key: &str) -> bool {
    tool.get(key).is_some_and(|one| !one.required)
}

/// Returns the arguments without the members that mean that their parameter is absent.
pub fn given<'o>(object: &'o Map<String, Value>, tool: &ToolSpec) -> Cow<'o, Map<String, Value>> {
    if !object.values().any(Value::is_null) {
        return Cow::Borrowed(object);
    }
    let reader = tool.schema().reader();
    let root = reader.root();
    let members = object.iter();
    let members = members.filter(|(key, value)| !is_absent(tool, &reader, &root, key, value));
    Cow::Owned(
        members
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

/// Returns whether a member written as JSON means that its parameter is absent.
pub(crate) fn is_absent<'s>(
    tool: &ToolSpec,
    reader: &SchemaReader<'s>,
    root: &AllowedValues<'s>,
    key: &str,
    value: &Value,
) -> bool {
    value.is_null() && is_optional(tool, key) && !reader.allows(&reader.member(root, key), value)
}

/// Returns whether the text `null` means that a parameter is absent: it is optional, and neither null nor a string that is
/// not listed fits.
pub fn may_be_absent<'s>(
    tool: &ToolSpec,
    reader: &SchemaReader<'s>,
    key: &str,
    allowed: &AllowedValues<'s>,
) -> bool {
    let strings = allowed.only(Kinds::STRING);
    is_optional(tool, key)
        && (strings.alternatives.is_empty() || strings.is_listed())
        && !reader.allows(allowed, &Value::Null)
}

/// Returns whether a text means that the parameter is absent, where it [may be](may_be_absent).
pub fn is_absent_text<'s>(
    reader: &SchemaReader<'s>,
    allowed: &AllowedValues<'s>,
    text: &str,
) -> bool {
    is_null_or_none(text) && reader.spelling(allowed, text).type_error.is_some()
}

impl Arguments {
    /// Removes the values whose texts mean that their parameters are absent. Returns the indices that they had, in ascending
    /// order.
    pub(crate) fn remove_absent(
        &mut self,
        tool: &ToolSpec,
        reader: &SchemaReader<'_>,
    ) -> BTreeSet<usize> {
        let is_null = |leaf: usize| {
            let leaf = self.leaves.get(leaf);
            leaf.filter(|leaf| {
                leaf.rule != ConversionRule::Body && is_null_or_none(self.text(leaf))
            })
        };
        let nulls = self
            .tree
            .root()
            .filter_map(|(key, node)| match self.tree.node(node)? {
                Node::Leaf(leaf) => Some((key, *leaf, is_null(*leaf)?)),
                Node::Object(_) | Node::Array(_) => None,
            });
        let mut nulls = nulls.peekable();
        if nulls.peek().is_none() {
            return BTreeSet::new();
        }
        let root = reader.root();
        let absent = nulls.filter(|(key, _, leaf)| {
            let allowed = reader.member(&root, key);
            may_be_absent(tool, reader, key, &allowed)
                && is_absent_text(reader, &allowed, self.text(leaf))
        });
        let absent: BTreeSet<usize> = absent.map(|(_, leaf, _)| leaf).collect();
        if !absent.is_empty() {
            self.tree_mut().remove_members(&absent);
            let mut index = 0..;
            self.leaves
                .retain(|_| index.next().is_none_or(|index| !absent.contains(&index)));
        }
        absent
    }
}
