//! The arguments of a call: the text of each value, and its pointer.

use std::ops::Range;
use std::sync::Arc;

use plaincall_syntax::Span;
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use crate::ArgumentError;
use crate::ConversionRule;
use crate::Limits;
use crate::pointer::{Pointer, PointerError, shown, unescape};
use crate::text_type::TextType;
use crate::tree::{Node, NodeIndex, ROOT, Tree};

/// The arguments of a call.
///
/// Each value keeps its text as written; the requested type decides how the text is parsed.
///
/// ```
/// use plaincall_tool::Arguments;
///
/// let arguments = Arguments::from_pairs([("zip", "02134"), ("tags/0", "new")])?;
/// assert_eq!(arguments.get("zip"), Some("02134"));
///
/// #[derive(serde::Deserialize)]
/// struct Letter { zip: String, tags: Vec<String> }
/// let letter: Letter = arguments.to()?;
/// assert_eq!((letter.zip.as_str(), letter.tags.len()), ("02134", 1));
///
/// #[derive(serde::Deserialize)]
/// struct Number { zip: u32 }
/// assert_eq!(arguments.to::<Number>()?.zip, 2134);
/// # Ok::<(), plaincall_tool::ArgumentError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    pub(crate) source: Arc<String>,
    #[doc(hidden)]
    pub leaves: Vec<Leaf>,
    #[doc(hidden)]
    /// Shared with the arguments of the tool, which nearly always have the same.
    pub tree: Arc<Tree>,
    #[doc(hidden)]
    /// Values that only a schema can place, each with the number of leaves before it.
    pub unplaced: Vec<(usize, Leaf)>,
    /// The locations and pointers of arguments that no schema can place.
    pub(crate) refused: Vec<(Span, Arc<str>)>,
}

#[derive(Clone, Debug)]
pub struct Leaf {
    pub pointer: Arc<str>,
    pub pointer_span: Span,
    pub text: Text,
    pub span: Span,
    pub text_type: TextType,
    pub rule: ConversionRule,
}

impl Leaf {
    pub(crate) fn own(pointer: &str, text: &str) -> Self {
        Self {
            pointer: pointer.into(),
            pointer_span: Span::default(),
            text: Text::Own(text.into()),
            span: Span::default(),
            text_type: TextType::Coerced,
            rule: ConversionRule::Undeclared,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Text {
    /// A range of the call's source.
    Source(Range<usize>),
    /// A separate text, for a value that is not contiguous in the source.
    Own(Box<str>),
}

/// An argument as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument<'a> {
    /// The pointer: trimmed, without a leading `/`, with the escapes `~0` and `~1` as written.
    pub pointer: &'a str,
    /// The location of the pointer: the argument marker's line in the block syntax.
    pub pointer_span: Span,
    /// The text of the value, exactly as written.
    pub text: &'a str,
    /// The location of the value; empty for an empty value.
    pub span: Span,
    /// The rule by which [`to_value`](Arguments::to_value) converts the text.
    pub rule: ConversionRule,
}

impl Arguments {
    /// Creates arguments from pairs of pointer and text.
    ///
    /// # Errors
    /// Returns an error for pointers that a call may not have either, such as a duplicate or a gap in an array, with
    /// the same message (`spec/block.md` 7.9).
    pub fn from_pairs<'t>(
        pairs: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Result<Self, ArgumentError> {
        let mut arguments = Self::default();
        let depth = Limits::default().depth();
        for (pointer, text) in pairs {
            let leaf = Leaf::own(shown(pointer).0, text);
            arguments
                .place(leaf, depth)
                .map_err(|error| ArgumentError::at(pointer, error.message))?;
        }
        Ok(arguments)
    }

    /// Returns `true` if there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Returns the text of the value at `pointer`, exactly as written.
    pub fn get(&self, pointer: &str) -> Option<&str> {
        self.argument(pointer).map(|argument| argument.text)
    }

    /// Returns the argument at `pointer`.
    pub fn argument(&self, pointer: &str) -> Option<Argument<'_>> {
        let pointer = Pointer::lenient(pointer);
        let node = self.tree.find(&pointer)?;
        match self.tree.node(node)? {
            Node::Leaf(leaf) => Some(self.view(self.leaves.get(*leaf)?)),
            Node::Object(_) | Node::Array(_) => None,
        }
    }

    /// Returns the arguments in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = Argument<'_>> {
        self.leaves.iter().map(|leaf| self.view(leaf))
    }

    /// Converts the arguments to one JSON object.
    ///
    /// [`coerce`](crate::json::coerce) converts each value; after binding, its parameter's type decides.
    pub fn to_value(&self) -> Value {
        self.value_of(ROOT)
    }

    #[doc(hidden)]
    pub fn value_of(&self, node: u32) -> Value {
        match self.tree.node(node) {
            Some(Node::Object(object)) => object
                .iter()
                .map(|(key, child)| (key.to_owned(), self.value_of(child)))
                .collect(),
            Some(Node::Array(items)) => items.iter().map(|&item| self.value_of(item)).collect(),
            Some(Node::Leaf(leaf)) => match self.leaves.get(*leaf) {
                Some(leaf) => leaf.text_type.value(self.text(leaf)),
                None => Value::Null,
            },
            None => Value::Null,
        }
    }

    fn view<'a>(&'a self, leaf: &'a Leaf) -> Argument<'a> {
        Argument {
            pointer: &leaf.pointer,
            pointer_span: leaf.pointer_span,
            text: self.text(leaf),
            span: leaf.span,
            rule: leaf.rule,
        }
    }

    #[doc(hidden)]
    pub fn text<'a>(&'a self, leaf: &'a Leaf) -> &'a str {
        match &leaf.text {
            Text::Source(range) => self.source.get(range.clone()).unwrap_or_default(),
            Text::Own(text) => text,
        }
    }

    pub(crate) fn has_member(&self, key: &str) -> bool {
        self.tree.member(key).is_some()
    }

    pub(crate) fn leaf_of_member(&self, key: &str) -> Option<usize> {
        match self.tree.node(self.tree.member(key)?)? {
            Node::Leaf(leaf) => Some(*leaf),
            Node::Object(_) | Node::Array(_) => None,
        }
    }

    #[doc(hidden)]
    pub fn refuse_too_long(&mut self, leaf: &Leaf, depth: usize) -> PointerError {
        let placed = Pointer::parse(&leaf.pointer, depth)
            .and_then(|pointer| self.tree.locate(&pointer).map(drop));
        self.refuse(leaf);
        match placed {
            Ok(()) => PointerError::value_too_long(&leaf.pointer),
            Err(error) => error,
        }
    }

    fn refuse(&mut self, leaf: &Leaf) {
        let pointer = leaf.pointer.clone();
        self.refused.push((leaf.pointer_span, pointer));
    }

    #[doc(hidden)]
    /// Adds a value whose pointer is already trimmed. A value that a schema may still place is kept separately.
    pub fn place(&mut self, leaf: Leaf, depth: usize) -> Result<(), PointerError> {
        let number = self.leaves.len();
        let placed = Pointer::parse(&leaf.pointer, depth)
            .and_then(|pointer| self.tree_mut().insert(&pointer, number));
        match &placed {
            Ok(()) => self.leaves.push(leaf),
            Err(error) if PointerError::is_fixable(error.code) => {
                self.unplaced.push((number, leaf));
            }
            Err(_) => self.refuse(&leaf),
        }
        placed
    }

    #[doc(hidden)]
    pub fn unplaced_pointers(&self) -> impl Iterator<Item = &str> {
        self.unplaced.iter().map(|(_, leaf)| &*leaf.pointer)
    }

    #[doc(hidden)]
    /// Returns the pointer at this location if its value could not be placed and a schema may still place it.
    pub fn unplaced_at(&self, span: Span) -> Option<&str> {
        // They are in text order.
        let behind = |(_, leaf): &(usize, Leaf)| leaf.pointer_span.start < span.start;
        let (_, leaf) = self.unplaced.get(self.unplaced.partition_point(behind))?;
        (leaf.pointer_span == span).then_some(&*leaf.pointer)
    }

    #[doc(hidden)]
    /// Returns the pointer at this location if its value could not be placed.
    pub fn misplaced_at(&self, span: Span) -> Option<&str> {
        let refused = || {
            let behind = |(at, _): &(Span, Arc<str>)| at.start < span.start;
            let (at, pointer) = self.refused.get(self.refused.partition_point(behind))?;
            (*at == span).then_some(&**pointer)
        };
        self.unplaced_at(span).or_else(refused)
    }

    #[doc(hidden)]
    pub fn in_order(&self) -> impl Iterator<Item = &Leaf> {
        let mut unplaced = self.unplaced.iter().peekable();
        (0..=self.leaves.len()).flat_map(move |at| {
            let waiting = std::iter::from_fn(|| {
                let waiting = unplaced.next_if(|(before, _)| *before == at);
                waiting.map(|(_, leaf)| leaf)
            });
            let here: Vec<&Leaf> = waiting.chain(self.leaves.get(at)).collect();
            here
        })
    }

    /// Returns the location of the longest prefix of a pointer that leads to a value; `None` for the root.
    pub(crate) fn span_near(&self, pointer: &str) -> Option<Span> {
        let mut node = ROOT;
        for segment in pointer.split('/') {
            let below = match self.tree.node(node)? {
                Node::Object(object) => object.get(&unescape(segment)),
                Node::Array(items) => segment
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get(index).copied()),
                Node::Leaf(_) => None,
            };
            let Some(below) = below else { break };
            node = below;
        }
        if node == ROOT {
            return None;
        }
        let first = self.leaves.get(self.tree.first_leaf(node)?)?;
        Some(match self.tree.node(node)? {
            Node::Leaf(_) => first.span,
            _ => first.pointer_span,
        })
    }

    pub(crate) fn tree_mut(&mut self) -> &mut Tree {
        Arc::make_mut(&mut self.tree)
    }

    /// Adds a value as a member of the root; the name is not parsed as a pointer.
    pub(crate) fn place_member(&mut self, name: &str, leaf: Leaf) -> Result<(), PointerError> {
        let number = self.leaves.len();
        self.tree_mut()
            .insert(&Pointer::member(name, &leaf.pointer), number)?;
        self.leaves.push(leaf);
        Ok(())
    }

    #[doc(hidden)]
    pub fn with_source(mut self, source: Arc<String>) -> Self {
        self.source = source;
        self
    }
}

/// Arguments are equal if they have the same texts at the same pointers in the same order. Locations do not count.
impl PartialEq for Arguments {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self
                .iter()
                .zip(other.iter())
                .all(|(one, two)| one.pointer == two.pointer && one.text == two.text)
    }
}

impl Eq for Arguments {}

/// Serializes one JSON object, like [`to_value`](Arguments::to_value).
impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        View {
            arguments: self,
            node: ROOT,
        }
        .serialize(serializer)
    }
}

struct View<'a> {
    arguments: &'a Arguments,
    node: NodeIndex,
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let view = |node| View {
            arguments: self.arguments,
            node,
        };
        match self.arguments.tree.node(self.node) {
            Some(Node::Object(object)) => {
                serializer.collect_map(object.iter().map(|(key, node)| (key, view(node))))
            }
            Some(Node::Array(items)) => {
                serializer.collect_seq(items.iter().map(|&node| view(node)))
            }
            Some(Node::Leaf(_)) | None => self.arguments.value_of(self.node).serialize(serializer),
        }
    }
}
