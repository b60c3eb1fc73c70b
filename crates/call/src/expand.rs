//! JSON text as a tree of values, so that there is one way to read values as types.

use plaincall_syntax::Span;
use serde_json::Value;

use crate::arguments::{Arguments, Leaf, Text};
use crate::pointer::escape;
use crate::reading::Reading;
use crate::tree::{Node, NodeIndex};

/// A JSON value that stands as text in one value of a call.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    pub(crate) arguments: Arguments,
    pub(crate) node: NodeIndex,
    /// The pointers to empty lists and objects, which hold no value that would tell them.
    pub(crate) empty: Vec<(NodeIndex, String)>,
}

impl Expanded {
    /// The values of a JSON value that stands at `pointer`.
    pub(crate) fn new(value: &Value, pointer: &str, span: Span) -> Self {
        let mut expanded = Self::default();
        expanded.node = expanded.expand(value, pointer, span);
        expanded
    }

    /// Recurses as deep as the reader of JSON allows, which is 128 levels.
    fn expand(&mut self, value: &Value, pointer: &str, span: Span) -> NodeIndex {
        let mut is_empty = false;
        let node = match value {
            Value::Array(items) => {
                is_empty = items.is_empty();
                let node = |(index, item)| self.expand(item, &format!("{pointer}/{index}"), span);
                Node::Array(items.iter().enumerate().map(node).collect())
            }
            Value::Object(members) => {
                is_empty = members.is_empty();
                let node = |(key, member): (&String, _)| {
                    let pointer = format!("{pointer}/{}", escape(key));
                    (key.as_str().into(), self.expand(member, &pointer, span))
                };
                Node::Object(members.iter().map(node).collect())
            }
            Value::String(text) => self.leaf_node(text.as_str(), pointer, span, Reading::String),
            other => self.leaf_node(&other.to_string(), pointer, span, Reading::Json),
        };
        let index = self.arguments.tree_mut().push(node);
        if is_empty {
            self.empty.push((index, pointer.to_owned()));
        }
        index
    }

    fn leaf_node(&mut self, text: &str, pointer: &str, span: Span, reading: Reading) -> Node {
        Node::Leaf(self.arguments.push_leaf(Leaf {
            pointer: pointer.into(),
            pointer_span: span,
            text: Text::Own(text.into()),
            span,
            reading,
        }))
    }
}
