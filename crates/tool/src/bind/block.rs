//! The arguments of a block call, converted according to the tool's schema (`spec/block.md` 7.7.1).

use crate::Arguments;
use crate::ReplyDiagnostic;
use crate::ToolSpec;
use crate::argument_error::enumerated;
use crate::arguments::Text;
use crate::bind::{Problems, Undeclared, first_pointer};
use crate::pointer::escape;
use crate::schema::{AllowedValues, Kinds, SchemaReader, TypeError};
use crate::text_type::{TextType, trimmed};
use crate::tree::{Node, NodeIndex, ROOT};

pub fn bind_block(tool: &ToolSpec, written: &Arguments, problems: &mut Problems) -> Arguments {
    let reader = tool.schema().reader();
    let mut given = written.clone();
    let absent = given.remove_absent(tool, &reader);
    let root = reader.narrow(reader.root(), &given, ROOT);
    let mut walk = Walk {
        reader: &reader,
        arguments: given,
        problems,
    };
    let mut undeclared = Undeclared::new(tool);
    for (key, node) in written.tree.root() {
        if matches!(written.tree.node(node), Some(Node::Leaf(leaf)) if absent.contains(leaf)) {
            continue;
        }
        if tool.get(key).is_none() && !root.declares(key) {
            let (pointer, span) = first_pointer(written, node);
            walk.problems.push(undeclared.problem(pointer, span));
            continue;
        }
        let allowed = reader.member(&root, key);
        walk.node(node, allowed, &escape(key), &root);
    }
    walk.problems.steps += reader.steps_taken();
    walk.arguments
}

struct Walk<'w, 's> {
    reader: &'w SchemaReader<'s>,
    arguments: Arguments,
    problems: &'w mut Problems,
}

impl<'s> Walk<'_, 's> {
    /// Recurses as deep as the pointers.
    fn node(
        &mut self,
        node: NodeIndex,
        allowed: AllowedValues<'s>,
        pointer: &str,
        parent: &AllowedValues<'s>,
    ) {
        if allowed.alternatives.is_empty() {
            self.not_allowed(node, pointer, parent);
            return;
        }
        let is_list = match self.arguments.tree.node(node) {
            Some(Node::Leaf(leaf)) => {
                self.leaf(*leaf, &allowed);
                return;
            }
            Some(Node::Array(_)) => true,
            Some(Node::Object(_)) => false,
            None => return,
        };
        let kinds = allowed.kinds();
        let (has_its_kind, found) = if is_list {
            (kinds.has_any(Kinds::LIST | Kinds::OBJECT), "a list")
        } else {
            (kinds.has(Kinds::OBJECT), "an object")
        };
        if !has_its_kind {
            let (_, span) = first_pointer(&self.arguments, node);
            let type_error = TypeError {
                expected: allowed.in_words(),
                found: found.to_owned(),
                is_inside: false,
            };
            self.problems.type_error(pointer, span, &type_error);
            return;
        }
        let mut allowed = self.reader.narrow(allowed, &self.arguments, node);
        if is_list && allowed.kinds().has(Kinds::LIST) && !allowed.prefers_keys() {
            allowed = allowed.only(Kinds::LIST);
        } else if is_list {
            self.arguments.tree_mut().make_object(node);
        }
        self.too_many(node, &allowed, pointer);
        match self.arguments.tree.node(node) {
            Some(Node::Array(items)) => {
                for (index, item) in items.clone().into_iter().enumerate() {
                    let below = self.reader.item(&allowed, index);
                    self.node(item, below, &format!("{pointer}/{index}"), &allowed);
                }
            }
            Some(Node::Object(object)) => {
                for (key, member) in object.clone().iter() {
                    let below = self.reader.member(&allowed, key);
                    let pointer = format!("{pointer}/{}", escape(key));
                    self.node(member, below, &pointer, &allowed);
                }
            }
            Some(Node::Leaf(_)) | None => {}
        }
    }

    fn leaf(&mut self, leaf: usize, allowed: &AllowedValues<'s>) {
        let Some(value) = self.arguments.leaves.get(leaf) else {
            return;
        };
        let text = self.arguments.text(value);
        let spelling = self.reader.spelling(allowed, text);
        if let Some(type_error) = &spelling.type_error {
            self.problems
                .type_error(&value.pointer, value.span, type_error);
        }
        let listed = (spelling.text_type == TextType::Listed).then(|| trimmed(text).into());
        if let Some(value) = self.arguments.leaves.get_mut(leaf) {
            value.text_type = spelling.text_type;
            if let Some(listed) = listed {
                (value.text, value.text_type) = (Text::Own(listed), TextType::String);
            }
            value.rule = spelling.rule;
        }
    }

    /// Reports more parts than the schema allows: no later argument can fix that.
    fn too_many(&mut self, node: NodeIndex, allowed: &AllowedValues<'s>, pointer: &str) {
        let (count, keyword, what) = match self.arguments.tree.node(node) {
            Some(Node::Array(items)) => (items.len(), "maxItems", "items"),
            Some(Node::Object(object)) => (object.len(), "maxProperties", "members"),
            Some(Node::Leaf(_)) | None => return,
        };
        let stated = allowed.alternatives.iter().map(|one| one.least(keyword));
        let most = stated.collect::<Option<Vec<usize>>>();
        let most = most.and_then(|all| all.into_iter().max());
        if let Some(most) = most.filter(|most| count > *most) {
            let (_, span) = first_pointer(&self.arguments, node);
            let message =
                format!("`{pointer}`: expected at most {most} {what}, found {count} {what}");
            let problem = ReplyDiagnostic::of_definition("wrong_value", pointer, span, message);
            self.problems.too_many(problem);
        }
    }

    fn not_allowed(&mut self, node: NodeIndex, pointer: &str, parent: &AllowedValues<'s>) {
        let (_, span) = first_pointer(&self.arguments, node);
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in parent.properties() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let takes = if names.is_empty() {
            String::new()
        } else {
            format!("; allowed: {}", enumerated(&names))
        };
        let message = format!("`{pointer}` is not allowed here{takes}");
        let code = "undeclared_argument";
        self.problems
            .push(ReplyDiagnostic::of_definition(code, pointer, span, message));
    }
}
