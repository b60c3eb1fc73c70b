// The calls of a trace: how they are named, what is chosen and what is shown.

/** @type {Trace} */
let trace = { begin: null, turns: [], calls: [], resumed: [], usage: null, end_ms: 0, problems: [] };
/** @type {Call[]} */
let calls = [];

// How calls end, and what would happen to those that have not run: sign, word. The signs are those of the terminal.
/** @type {Record<string, [string, string]>} */
const KINDS = {
  ok: ["✓", "ok"],
  error: ["✗", "failed"],
  skipped: ["↷", "skipped"],
  rejected: ["⊘", "rejected"],
  cancelled: ["■", "cancelled"],
  unknown: ["?", "unknown"],
  interrupted: ["…", "interrupted"],
  ready: ["▷", "may run"],
  held: ["◔", "needs approval"],
};
/** @type {Record<string, string>} */
const STATES = {
  writing: "while it was being written",
  waiting: "while it waited for other calls",
  ready: "while it waited for approval",
  admitted: "while it waited for a slot",
  running: "while it ran",
  back_off: "while it waited for a retry",
};
/** @type {Record<string, string>} */
const ADMITTED_BY = {
  rule: "a rule of the run",
  always: "an earlier approval of all calls of this tool",
  gate: "the gate",
};
/** @param {Call} call */
const kind = (call) => call.status ?? call.planned ?? "interrupted";
/** @param {Call} call */
const end = (call) => call.ended_ms ?? trace.end_ms;
/** @param {Call} call @returns {number | undefined} */
const firstStart = (call) => call.attempts[0]?.started_ms;
/** @param {Call} call @returns {number | undefined} */
const lastStart = (call) => call.attempts.at(-1)?.started_ms;
/** @param {Call} call */
const statusText = (call) => KINDS[kind(call)][1];

// The name of a call among those of its tool: its id, or the arguments of a call that another submitted.
/** @param {Call} call @returns {string} */
function tag(call) {
  if (call.parent === null) return call.id;
  /** @param {string} content @param {number} most */
  const short = (content, most) => (content.length > most ? `${content.slice(0, most)}…` : content);
  const list = (call.arguments ?? []).map(([pointer, content]) => `${pointer}=${short(content.trim(), 60)}`);
  return short(list.join(", ").replace(/\s+/g, " "), 120);
}

// The tool and the tag of a call.
/** @param {Call} call */
const called = (call) => `${call.name} ${tag(call)}`.trim();

// The calls that depend on each call, and those that each call submitted.
/** @type {number[][]} */
let dependents = [];
/** @type {number[][]} */
let children = [];
// All calls in the order in which they are shown: how deep each is, and where.
/** @type {number[]} */
const depth = [];
/** @type {number[]} */
const rank = [];
/** @type {number[]} */
let order = [];

/** @param {number} number @param {number} level */
function place(number, level) {
  depth[number] = level;
  rank[number] = order.push(number) - 1;
  for (const child of children[number] ?? []) place(child, level + 1);
}

function relate() {
  dependents = calls.map(() => []);
  children = calls.map(() => []);
  order = [];
  for (const call of calls) {
    for (const { call: cause } of call.dependencies) {
      if (cause !== null && cause !== call.number) dependents[cause]?.push(call.number);
    }
    if (call.parent !== null) children[call.parent]?.push(call.number);
  }
  for (const call of calls) if (call.parent === null || calls[call.parent] === undefined) place(call.number, 0);
}

/** @param {Usage} usage */
function tokens({ input, cached, output }) {
  const part = cached ? ` (${cached.toLocaleString("en")} cached)` : "";
  return `${input.toLocaleString("en")} input tokens${part}, ${output.toLocaleString("en")} output tokens`;
}

// How long a call ran, or its status if it never ran or was interrupted.
/** @param {Call} call */
function took(call) {
  const started = lastStart(call);
  return started === undefined || call.status === null ? statusText(call) : time(end(call) - started);
}

// What is chosen and shown. Views listen for changes: another trace, another call, other calls, another view, another size.
/** @type {{ chosen: number | null, isDefault: boolean, onlyCritical: boolean, kinds: Set<string>, words: string[], shown: number[], isShown: Uint8Array, prefix: string, isAddressKept: boolean }} */
const state = { chosen: null, isDefault: false, onlyCritical: false, kinds: new Set(), words: [], shown: [], isShown: new Uint8Array(), prefix: "", isAddressKept: false };
/** @type {Listeners} */
const listeners = { opened: [], chosen: [], shown: [], view: [], resized: [] };
/** @template {keyof Events} What @param {What} what @param {Events[What]} details */
const notify = (what, ...details) => listeners[what].forEach((listen) => listen(...details));

// Shows a trace.
/** @param {Trace} next */
function openTrace(next) {
  trace = next;
  calls = next.calls;
  relate();
  state.chosen = null;
  state.isDefault = false;
  state.onlyCritical = false;
  state.kinds.clear();
  notify("opened");
  filter();
  notify("chosen", null, "opened");
}

/** @param {number | null} number @param {string} from where the choice was made */
function choose(number, from) {
  if (number === state.chosen && !state.isDefault) return;
  state.chosen = number;
  state.isDefault = false;
  keepAddress();
  notify("chosen", number, from);
}

// The address names what is shown, so that it can be passed on. It may begin with more, such as a text.
function keepAddress() {
  if (state.isAddressKept) return;
  const call = state.chosen === null || state.isDefault ? "" : `/call-${state.chosen + 1}`;
  try {
    history.replaceState(null, "", `#${state.prefix}${document.body.dataset.view}${call}`);
  } catch {
    // Some places where a page can be shown have no history.
  }
}

// The next call that is shown, so many steps from the chosen one.
/** @param {number} by @param {string} from */
function step(by, from) {
  if (state.shown.length === 0) return;
  let place = state.chosen === null ? 0 : state.shown.findIndex((number) => rank[number] >= rank[state.chosen ?? 0]);
  if (place < 0) place = state.shown.length;
  const isChosen = state.chosen !== null && state.shown[place] === state.chosen;
  if (!isChosen && by > 0) place -= 1;
  const next = Math.min(Math.max(place + by, 0), state.shown.length - 1);
  choose(state.shown[next], from);
}

