// Types that the scripts of the pages share. `Elements`, the elements by their ids, is generated from the pages.

/** What views listen for, and what each listener gets. */
interface Events {
  opened: [];
  chosen: [number: number | null, from: string];
  shown: [];
  view: [name: string];
  resized: [];
}
type Listeners = { [What in keyof Events]: ((...details: Events[What]) => void)[] };

interface Point { x: number; y: number }
interface Box { left: number; top: number; right: number; bottom: number }
/** Two calls of the graph: one that comes first, and one behind it. */
type Edge = [cause: number, call: number];
