//! The simulated world of an attempt: its state, and the tools that change it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plaincall::tool::Arguments;
use plaincall::{Context, Tool};
use plaincall_agent::model::NativeTool;
use serde_json::{Value, json};

use crate::operations;
use crate::task::Task;
use crate::tool::definition;

/// A world. Every arm gets the same one.
pub(crate) struct World {
    pub(crate) task: Task,
    scene: Mutex<Scene>,
}

/// The changing part of a world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    /// Objects by section: `files`, `directories`, `tables`, `gauges`, `tests`, and the lists of `append` tools.
    pub(crate) state: Value,
    /// The calls that succeeded: the tool, and the number of the reply.
    pub(crate) done: Vec<(String, u32)>,
    /// The number of replies so far.
    reply: u32,
}

impl World {
    pub(crate) fn new(task: Task) -> Arc<Self> {
        let state = if task.world.is_null() {
            json!({})
        } else {
            task.world.clone()
        };
        let scene = Scene {
            state,
            ..Scene::default()
        };
        Arc::new(Self {
            task,
            scene: Mutex::new(scene),
        })
    }

    fn locked(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a reply of the model.
    pub(crate) fn begin_reply(&self) {
        self.locked().reply += 1;
    }

    pub(crate) fn scene(&self) -> Scene {
        self.locked().clone()
    }

    pub(crate) fn tools(world: &Arc<Self>) -> Vec<Tool> {
        let definitions = world.task.tools.iter().filter_map(|name| definition(name));
        let tools = definitions.filter_map(|definition| {
            let world = Arc::clone(world);
            let spec = definition.spec(world.task.is_agent_sized)?;
            Some(Tool::raw(spec, move |arguments: Arguments, _: Context| {
                let mut scene = world.locked();
                let result = operations::apply(definition, &mut scene.state, &arguments.to_value());
                if result.is_ok() {
                    let reply = scene.reply;
                    scene.done.push((definition.name.clone(), reply));
                }
                drop(scene);
                async { result.map_err(Into::into) }
            }))
        });
        tools.collect()
    }

    pub(crate) fn native_tools(&self) -> Vec<NativeTool> {
        let names = self.task.tools.iter();
        names
            .filter_map(|name| Some(definition(name)?.native(self.task.is_agent_sized)))
            .collect()
    }
}
