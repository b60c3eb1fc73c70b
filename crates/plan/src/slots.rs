//! Decides which admitted call starts next: overall limit, limits of tools, exclusive tools.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use crate::NONE;
use crate::policy::Tool;

/// The admitted calls and the slots (`spec/running.md`, "Slots").
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    pub(crate) limit: Option<NonZeroU32>,
    running: u32,
    exclusive_runs: bool,
    tools: Vec<ToolSlots>,
    /// The first queued call of every tool that is below its limit, with the tool. A tool at its limit is not in this set, so
    /// it does not delay other tools.
    heads: BTreeSet<(u32, u32)>,
}

#[derive(Clone, Debug)]
struct ToolSlots {
    tool: Tool,
    running: u32,
    queue: BTreeSet<u32>,
}

impl ToolSlots {
    /// Returns the entry of this tool in `heads`.
    fn head(&self, number: u32) -> Option<(u32, u32)> {
        let limit = self.tool.max_concurrent;
        let at_limit = limit.is_some_and(|limit| self.running >= limit.get());
        let first = self.queue.first().filter(|_| !at_limit)?;
        Some((*first, number))
    }
}

impl Slots {
    /// Registers a tool. Returns `None` if there is no number left.
    pub(crate) fn add_tool(&mut self, tool: Tool) -> Option<u32> {
        let number = u32::try_from(self.tools.len()).ok();
        let number = number.filter(|&number| number != NONE)?;
        self.tools.push(ToolSlots {
            tool,
            running: 0,
            queue: BTreeSet::new(),
        });
        Some(number)
    }

    pub(crate) fn tool(&self, number: u32) -> Option<Tool> {
        self.tools.get(number as usize).map(|slots| slots.tool)
    }

    /// Queues an admitted call.
    pub(crate) fn queue(&mut self, call: u32, tool: u32) {
        self.change(tool, |slots| {
            slots.queue.insert(call);
        });
    }

    /// Removes a call from the queue.
    pub(crate) fn withdraw(&mut self, call: u32, tool: u32) {
        self.change(tool, |slots| {
            slots.queue.remove(&call);
        });
    }

    /// Removes the next call that can start from the queue, and takes a slot for it.
    pub(crate) fn start(&mut self) -> Option<u32> {
        let &(call, tool) = self.heads.first()?;
        let Tool {
            exclusive,
            delegates,
            ..
        } = self.tool(tool)?;
        let exclusive = exclusive && !delegates;
        let limit = self.limit.filter(|_| !delegates);
        let full = limit.is_some_and(|limit| self.running >= limit.get());
        // An exclusive call at the head also holds back the calls behind it. Otherwise it might never start.
        if full || self.exclusive_runs || (exclusive && self.running > 0) {
            return None;
        }
        self.running += u32::from(!delegates);
        self.exclusive_runs = exclusive;
        self.change(tool, |slots| {
            slots.queue.remove(&call);
            slots.running += 1;
        });
        Some(call)
    }

    /// Frees the slot of a call of this tool.
    pub(crate) fn release(&mut self, tool: u32) {
        if self.tool(tool).is_some_and(|tool| !tool.delegates) {
            self.running = self.running.saturating_sub(1);
            // Beside an exclusive call, only delegating calls run, so if one was running, it is this one.
            self.exclusive_runs = false;
        }
        self.change(tool, |slots| {
            slots.running = slots.running.saturating_sub(1);
        });
    }

    /// Changes the queue or count of a tool and updates its entry in `heads`.
    fn change(&mut self, tool: u32, change: impl FnOnce(&mut ToolSlots)) {
        let Some(slots) = self.tools.get_mut(tool as usize) else {
            return;
        };
        let before = slots.head(tool);
        change(slots);
        let after = slots.head(tool);
        if before != after {
            if let Some(entry) = before {
                self.heads.remove(&entry);
            }
            self.heads.extend(after);
        }
    }
}
