//! Random graphs: each call starts as soon as it can, and limits always hold.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plaincall::{Context, Effect, Run, Stop, Tool, ToolResult, Toolbox};
use plaincall_oracle::arbitrary_texts::Random;
use tokio::time::{Instant, sleep};

use crate::runs::scene::{Milliseconds, builder, written};

/// One reply: the duration of each call, its dependencies, and the pause of the model after it.
struct Graph {
    ms: Vec<u64>,
    dependencies: Vec<Vec<usize>>,
    pauses: Vec<u64>,
}

impl Graph {
    /// Calls depend on earlier ones in a random order, so some depend on calls that are written later.
    fn new(random: &mut Random) -> Self {
        let count = random.below(30) + 1;
        let mut order: Vec<usize> = (0..count).collect();
        for place in (1..count).rev() {
            // In some graphs all dependencies are on earlier calls.
            if random.below(3) > 0 {
                let other = random.below(place + 1);
                order.swap(place, other);
            }
        }
        let mut dependencies = vec![Vec::new(); count];
        for (place, call) in order.iter().enumerate() {
            for earlier in &order[..place] {
                if random.below(6) == 0 && dependencies[*call].len() < 5 {
                    dependencies[*call].push(*earlier);
                }
            }
        }
        let is_slow = random.below(2) == 0;
        Self {
            ms: (0..count).map(|_| random.below(100) as u64).collect(),
            dependencies,
            pauses: (0..count)
                .map(|_| if is_slow { random.below(40) as u64 } else { 0 })
                .collect(),
        }
    }

    fn scene(&self) -> String {
        let mut scene = String::new();
        for (call, ms) in self.ms.iter().enumerate() {
            let names: Vec<String> = self.dependencies[call]
                .iter()
                .map(|one| format!("c{one}"))
                .collect();
            write!(scene, "c{call}=sleep,{ms}<{} ", names.join(",")).unwrap();
        }
        scene
    }

    /// Returns the start of each call, in milliseconds: when it has been written and all its dependencies have ended.
    fn starts(&self) -> Vec<u64> {
        let mut written = 0;
        let mut arrivals = Vec::new();
        for pause in &self.pauses {
            arrivals.push(written);
            written += pause;
        }
        let mut starts: Vec<Option<u64>> = vec![None; self.ms.len()];
        while starts.contains(&None) {
            for call in 0..starts.len() {
                let ends: Option<Vec<u64>> = self.dependencies[call]
                    .iter()
                    .map(|one| Some(starts[*one]? + self.ms[*one]))
                    .collect();
                if let Some(ends) = ends {
                    starts[call] = ends.into_iter().chain([arrivals[call]]).max();
                }
            }
        }
        starts.into_iter().flatten().collect()
    }
}

/// Exact to the nanosecond.
#[tokio::test(start_paused = true)]
async fn every_call_starts_as_soon_as_it_can() {
    let mut random = Random::new(1);
    let mut forward = 0;
    for round in 0..1000 {
        let graph = Graph::new(&mut random);
        let mut run = builder()
            .policy(plaincall::Policy::default().concurrent(0))
            .build()
            .unwrap();
        let begun = Instant::now();
        let mut turn = run.turn();
        for (piece, pause) in written(&graph.scene(), false).iter().zip(&graph.pauses) {
            turn.feed(piece);
            sleep(Duration::from_millis(*pause)).await;
        }
        let results = turn.finish(Stop::Natural).await;
        let makespan = begun.elapsed();
        let mut last: u64 = graph.pauses.iter().sum();
        for ((result, start), ms) in results.iter().zip(graph.starts()).zip(&graph.ms) {
            let times = (result.times.started, result.times.ended);
            let end = start + ms;
            let expected = (
                Some(Duration::from_millis(start)),
                Duration::from_millis(end),
            );
            assert_eq!(
                times,
                expected,
                "round {round}, {}: {}",
                result.id,
                graph.scene()
            );
            last = last.max(end);
        }
        assert!(results.all_ok() && results.len() == graph.ms.len());
        assert_eq!(makespan, Duration::from_millis(last), "round {round}");
        let later = graph.dependencies.iter().enumerate();
        forward += later
            .filter(|(call, all)| all.iter().any(|one| one > call))
            .count();
    }
    assert!(forward > 1000, "{forward}");
}

/// The number of running calls, in total and for each tool.
#[derive(Clone, Debug, Default)]
struct Running(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    now: BTreeMap<&'static str, u32>,
    most: BTreeMap<&'static str, u32>,
    most_of_all: u32,
    /// Whether a call ran beside an exclusive one.
    was_disturbed: bool,
}

impl Running {
    fn tool(&self, name: &'static str) -> Tool {
        let running = self.clone();
        Tool::new(name, move |Milliseconds { ms }, _: Context| {
            let running = running.clone();
            async move {
                running.enter(name);
                sleep(Duration::from_millis(ms)).await;
                *running.0.lock().unwrap().now.entry(name).or_default() -= 1;
                let result: ToolResult = Ok(String::new());
                result
            }
        })
        .effect(Effect::Read)
    }

    fn enter(&self, name: &'static str) {
        let mut counts = self.0.lock().unwrap();
        let now = counts.now.entry(name).or_default();
        *now += 1;
        let now = *now;
        let all = counts.now.values().sum();
        let most = counts.most.entry(name).or_default();
        *most = now.max(*most);
        counts.most_of_all = counts.most_of_all.max(all);
        let alone = counts.now.get("alone").copied().unwrap_or(0);
        counts.was_disturbed |= alone > 0 && all > 1;
    }
}

#[tokio::test(start_paused = true)]
async fn limits_hold_all_the_time() {
    let names = ["any", "any", "one", "three", "alone"];
    let mut random = Random::new(2);
    let mut reached = [false; 3];
    for round in 0..300 {
        let graph = Graph::new(&mut random);
        let running = Running::default();
        let tools = [
            running.tool("any"),
            running.tool("one").max_concurrent(1),
            running.tool("three").max_concurrent(3),
            running.tool("alone").exclusive(),
        ];
        let limit = [1, 2, 4, 0][round % 4];
        let run = Run::builder(Toolbox::new(tools).unwrap())
            .policy(plaincall::Policy::default().concurrent(limit));
        let mut run = run.build().unwrap();
        let mut turn = run.turn();
        let mut scene = graph.scene();
        for call in 0..graph.ms.len() {
            let name = random.pick(&names);
            scene = scene.replace(&format!("c{call}=sleep"), &format!("c{call}={name}"));
        }
        for (piece, pause) in written(&scene, false).iter().zip(&graph.pauses) {
            turn.feed(piece);
            sleep(Duration::from_millis(*pause)).await;
        }
        let results = turn.finish(Stop::Natural).await;
        assert!(
            results.all_ok() && results.len() == graph.ms.len(),
            "{scene}"
        );
        let counts = running.0.lock().unwrap();
        assert!(
            limit == 0 || counts.most_of_all <= limit,
            "{counts:?}: {scene}"
        );
        let most = |name| counts.most.get(name).copied().unwrap_or(0);
        assert!(
            most("one") <= 1 && most("three") <= 3,
            "{counts:?}: {scene}"
        );
        assert!(!counts.was_disturbed, "{scene}");
        assert_eq!(counts.now.values().sum::<u32>(), 0);
        reached[0] |= limit == 4 && counts.most_of_all == 4;
        reached[1] |= most("three") == 3;
        reached[2] |= limit == 0 && counts.most_of_all > 4;
    }
    assert_eq!(reached, [true; 3]);
}
