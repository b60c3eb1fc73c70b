// The page: its data, the reply, the details of the chosen call, search and filters.
// Every text of the record goes in as text (`textContent`), never as markup.
"use strict";

const byId = (id) => document.getElementById(id);
const trace = JSON.parse(byId("data").textContent);
const calls = trace.calls;

// How calls end: sign, word. The signs are those of the terminal.
const KINDS = {
  ok: ["✓", "ok"],
  error: ["✗", "failed"],
  skipped: ["↷", "skipped"],
  rejected: ["⊘", "rejected"],
  cancelled: ["■", "cancelled"],
  unknown: ["?", "unknown"],
  interrupted: ["…", "interrupted"],
};
const STATES = {
  writing: "while it was being written",
  waiting: "while it waited for other calls",
  ready: "while it waited for approval",
  admitted: "while it waited for a slot",
  running: "while it ran",
  back_off: "while it waited for a retry",
};
const ADMITTED_BY = {
  rule: "a rule of the run",
  always: "an earlier approval of all calls of this tool",
  gate: "the gate",
};
// How much of a long text is shown at first.
const LONG = 20000;
// How many calls are named in one place.
const MANY = 200;

const kind = (call) => call.status ?? "interrupted";
const end = (call) => call.ended_ms ?? trace.end_ms;
const firstStart = (call) => call.attempts[0]?.started_ms;
const lastStart = (call) => call.attempts.at(-1)?.started_ms;
const statusText = (call) => KINDS[kind(call)][1];

// The name of a call among those of its tool: its id, or the arguments of a call that another submitted.
function tag(call) {
  if (call.parent === null) return call.id;
  const short = (content, most) => (content.length > most ? `${content.slice(0, most)}…` : content);
  const list = (call.arguments ?? []).map(([pointer, content]) => `${pointer}=${short(content.trim(), 60)}`);
  return short(list.join(", ").replace(/\s+/g, " "), 120);
}

// The tool and the tag of a call.
const called = (call) => `${call.name} ${tag(call)}`.trim();

// The calls that depend on each call.
const dependents = calls.map(() => []);
for (const call of calls) {
  for (const { call: cause } of call.dependencies) {
    if (cause !== null && cause !== call.number) dependents[cause].push(call.number);
  }
}

// The calls that each call submitted, and all calls in the order in which they are shown.
const children = calls.map(() => []);
for (const call of calls) children[call.parent]?.push(call.number);
const depth = [];
const rank = [];
function place(number, level) {
  depth[number] = level;
  rank[number] = order.push(number) - 1;
  for (const child of children[number]) place(child, level + 1);
}
const order = [];
for (const call of calls) if (calls[call.parent] === undefined) place(call.number, 0);

// A text in which nothing is hidden: control characters, those that turn the direction of writing, and those that take
// no place are shown as signs.
const HIDDEN = /[\0-\x08\v\f\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\r(?!\n)/gu;
function seen(text) {
  return text.replace(HIDDEN, (c) => {
    const code = c.codePointAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : `\\u{${code.toString(16)}}`;
  });
}

// An element with a class, a text, and children. All texts go in here, and `seen`.
function make(tag, className, text, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined && text !== null) element.textContent = seen(text);
  element.append(...children.map((child) => (typeof child === "string" ? seen(child) : child)));
  return element;
}

function time(ms) {
  if (ms < 100) return `${ms} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
}

// The same to the millisecond.
const moment = (ms) => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(3)} s`);

const count = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;

function tokens({ input, cached, output }) {
  const part = cached ? ` (${cached.toLocaleString("en")} cached)` : "";
  return `${input.toLocaleString("en")} input tokens${part}, ${output.toLocaleString("en")} output tokens`;
}

// How long a call ran, or its status if it never ran or was interrupted.
function took(call) {
  const started = lastStart(call);
  return started === undefined || call.status === null ? statusText(call) : time(end(call) - started);
}

// What is chosen and shown. Views listen for changes.
const state = { chosen: null, onlyCritical: false, kinds: new Set(), words: [], shown: [], isShown: new Uint8Array(calls.length) };
const listeners = { chosen: [], shown: [], view: [], resized: [] };
const notify = (what, ...details) => listeners[what].forEach((listen) => listen(...details));

function choose(number, from) {
  if (number === state.chosen) return;
  state.chosen = number;
  keepAddress();
  notify("chosen", number, from);
}

// The address names what is shown, so that it can be passed on.
function keepAddress() {
  const call = state.chosen === null ? "" : `/call-${state.chosen}`;
  try {
    history.replaceState(null, "", `#${document.body.dataset.view}${call}`);
  } catch {
    // Some places where a page can be shown have no history.
  }
}

// The next call that is shown, so many steps from the chosen one.
function step(by, from) {
  if (state.shown.length === 0) return;
  let place = state.chosen === null ? 0 : state.shown.findIndex((number) => rank[number] >= rank[state.chosen]);
  if (place < 0) place = state.shown.length;
  const isChosen = state.chosen !== null && state.shown[place] === state.chosen;
  if (!isChosen && by > 0) place -= 1;
  const next = Math.min(Math.max(place + by, 0), state.shown.length - 1);
  choose(state.shown[next], from);
}

// Search and filters.

const texts = [];
function text(call) {
  texts[call.number] ??= [
    call.id,
    call.name,
    call.source,
    call.output,
    call.error,
    call.note,
    ...(call.replies ?? []).map((reply) => reply.text),
    ...(call.arguments ?? []).flat(),
    ...(call.edited ?? []).flat(),
  ].filter(Boolean).join("\n").toLowerCase();
  return texts[call.number];
}

function filter() {
  const isFound = (call) => (!state.onlyCritical || call.is_critical)
    && (state.kinds.size === 0 || state.kinds.has(kind(call)))
    && state.words.every((word) => text(call).includes(word));
  state.shown = [];
  for (const number of order) {
    const found = isFound(calls[number]);
    state.isShown[number] = found ? 1 : 0;
    if (found) state.shown.push(number);
  }
  const isAll = state.shown.length === calls.length;
  byId("found").textContent = isAll ? "" : `${state.shown.length.toLocaleString("en")} of ${count(calls.length, "call")}`;
  notify("shown");
}

function chip(className, sign, words, change) {
  const button = make("button", `chip ${className}`, null, make("b", "sign", sign), words);
  button.type = "button";
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(change()));
    filter();
  });
  byId("statuses").append(button);
}

function buildFilters() {
  const numbers = {};
  for (const call of calls) numbers[kind(call)] = (numbers[kind(call)] ?? 0) + 1;
  for (const [name, [sign, word]] of Object.entries(KINDS)) {
    if (!numbers[name]) continue;
    chip(name, sign, `${numbers[name].toLocaleString("en")} ${word}`, () => {
      const isOn = !state.kinds.delete(name);
      if (isOn) state.kinds.add(name);
      return isOn;
    });
  }
  const critical = calls.filter((call) => call.is_critical).length;
  if (critical > 0) {
    chip("critical", "◆", `${critical.toLocaleString("en")} on the critical path`, () => {
      state.onlyCritical = !state.onlyCritical;
      return state.onlyCritical;
    });
  }
  let waiting;
  byId("search").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      filter();
    }, calls.length > 500 ? 120 : 0);
  });
}

// The head.

function buildHead() {
  const begin = trace.begin;
  const date = begin ? new Date(begin.began_unix_ms) : new Date(NaN);
  const when = Number.isNaN(date.getTime()) ? "" : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  byId("title").textContent = `Run${when && ` of ${when}`}`;
  document.title = byId("title").textContent;
  const parts = [count(calls.length, "call"), time(trace.end_ms)];
  if (trace.turns.length > 1) parts.push(count(trace.turns.length, "turn"));
  if (begin) parts.push(count(Object.keys(begin.tools).length, "tool"), `plaincall ${begin.plaincall}`);
  if (trace.usage) parts.push(tokens(trace.usage));
  for (const at of trace.resumed) parts.push(`resumed at ${time(at)}`);
  byId("meta").textContent = parts.join(" · ");
  byId("problems").hidden = trace.problems.length === 0;
  byId("problems").append(...trace.problems.map((problem) => make("p", "", problem)));
}

// The reply, with its calls in their places.

const cards = new Map();

function card(call) {
  const button = make("button", `call ${kind(call)}`, null,
    make("span", "sign", KINDS[kind(call)][0]),
    make("span", "title", null, make("span", "name", call.name), " ", make("span", "id", tag(call))),
  );
  button.type = "button";
  button.dataset.call = call.number;
  if (call.dependencies.length > 0) {
    button.append(make("span", "needs", `← ${call.dependencies.map(({ id }) => id).join(", ")}`));
  }
  button.append(make("span", "took", took(call)));
  const reason = why(call);
  if (reason) button.append(make("span", "reason", reason));
  cards.set(call.number, button);
  return button;
}

// The card of a call, and those of the calls that it submitted.
function cardsOf(call) {
  const own = card(call);
  const indent = `${depth[call.number] * 16}px`;
  own.style.marginLeft = indent;
  own.style.width = `calc(100% - ${indent})`;
  return [own, ...children[call.number].flatMap((child) => cardsOf(calls[child]))];
}

// Why a call has no good end, on a line.
function why(call) {
  if (call.because) {
    const { call: direct, id, root } = call.because;
    return root.call === direct ? `because of ${id}` : `because of ${id}, which goes back to ${root.id}`;
  }
  if (call.open) return STATES[call.open.state];
  return call.error?.split("\n", 1)[0].slice(0, 300);
}

function ending(turn) {
  const notes = [];
  if (turn.over_ms === null) notes.push("the log ends before the reply");
  if (turn.stop === "length") notes.push("the reply reached its length limit");
  if (turn.stop === "broken") notes.push("the reply was truncated, or its end is unknown");
  if (turn.cancel) notes.push(`all calls were cancelled at ${time(turn.cancel.t_ms)}: ${turn.cancel.reason}`);
  if (!turn.is_exact && turn.segments.length > 1) {
    notes.push("the reply is shown as received: its calls could not be located");
  }
  return notes.map((note) => make("p", "note", note));
}

function buildTranscript() {
  // Parts that are out of sight cost no layout.
  const PART = 40;
  const parts = [];
  for (const turn of trace.turns) {
    if (trace.turns.length > 1) {
      parts.push(make("h2", "", `Turn ${turn.number + 1}`, make("small", "", [`at ${time(turn.opened_ms)}`, turn.usage && tokens(turn.usage)].filter(Boolean).join(" · "))));
    }
    let isBehindCall = false;
    for (let at = 0; at < turn.segments.length; at += PART) {
      const part = make("div", "part");
      for (const segment of turn.segments.slice(at, at + PART)) {
        if (segment.type === "call") {
          const call = calls[segment.call];
          if (call) part.append(...cardsOf(call));
        } else {
          // The line end behind a call belongs to its end marker.
          const shown = isBehindCall ? segment.text.replace(/^\r?\n/, "") : segment.text;
          if (shown) part.append(make("div", segment.type, shown));
        }
        isBehindCall = segment.type === "call";
      }
      parts.push(part);
    }
    parts.push(...ending(turn));
  }
  const transcript = byId("transcript");
  transcript.append(...parts);
  transcript.addEventListener("click", (event) => {
    const button = event.target.closest("[data-call]");
    if (button) choose(Number(button.dataset.call), "transcript");
  });
  let last;
  listeners.chosen.push((number, from) => {
    last?.removeAttribute("aria-current");
    last = cards.get(number);
    last?.setAttribute("aria-current", "true");
    if (from !== "transcript") last?.scrollIntoView({ block: "center" });
  });
  listeners.shown.push(() => {
    for (const [number, button] of cards) button.classList.toggle("off", !state.isShown[number]);
  });
}

// The details of the chosen call.

function value(content, className = "") {
  const pre = make("pre", className, content.length > LONG ? content.slice(0, LONG) : content);
  if (content === "") pre.classList.add("empty");
  if (content.length <= LONG) return [pre];
  const more = make("button", "more", `show all ${content.length.toLocaleString("en")} characters`);
  more.type = "button";
  more.addEventListener("click", () => {
    pre.textContent = seen(content);
    more.remove();
  });
  return [pre, more];
}

function part(title, ...children) {
  return make("section", "", null, make("h3", "", title), ...children);
}

function argumentList(list) {
  if (list.length === 0) return [make("p", "hint", "none")];
  return [make("dl", "arguments", null, ...list.flatMap(([pointer, content]) => [
    make("dt", "", pointer),
    make("dd", "", null, ...value(content)),
  ]))];
}

function link(number, id) {
  const call = number === null ? undefined : calls[number];
  if (!call) return make("span", "link gone", `${id} (no such call)`);
  const button = make("button", `link ${kind(call)}`, null, make("span", "sign", KINDS[kind(call)][0]), id);
  button.type = "button";
  button.addEventListener("click", () => choose(number, "details"));
  return button;
}

function attemptRow(call, attempt, isLast) {
  const length = attempt.ended_ms === null ? null : attempt.ended_ms - attempt.started_ms;
  const outcome = attempt.error ?? (attempt.is_interrupted ? "interrupted" : isLast ? KINDS[kind(call)][1] : "");
  const wait = attempt.wait_ms === null ? "" : `then waits ${time(attempt.wait_ms)}`;
  return make("tr", "", null,
    make("th", "", String(attempt.number)),
    make("td", "", moment(attempt.started_ms)),
    make("td", "", length === null ? "no end" : time(length)),
    make("td", "wide", outcome),
    make("td", "", wait),
  );
}

function attemptTable(call) {
  const rows = call.attempts.map((attempt, at) => attemptRow(call, attempt, at === call.attempts.length - 1));
  const titles = ["", "started", "took", "outcome", ""].map((title) => make("th", "", title));
  return make("table", "", null, make("thead", "", null, make("tr", "", null, ...titles)), make("tbody", "", null, ...rows));
}

function stations(call) {
  const times = [
    ["appeared", call.appeared_ms],
    ["complete", call.complete_ms],
    ["ready", call.ready_ms],
    ["admitted", call.admission?.t_ms],
    ["started", lastStart(call)],
    ["ended", call.ended_ms],
  ].filter(([, at]) => at !== null && at !== undefined);
  return make("ol", "stations", null, ...times.map(([name, at]) => make("li", "", null, make("b", "", name), moment(at))));
}

function because(call) {
  const { link: tie, call: direct, id, root } = call.because;
  const sentence = make("p", "sentence", null, tie === "order" ? "It follows " : "It depends on ", link(direct, id));
  if (root.call !== direct) sentence.append("; the first failure was ", link(root.call, root.id));
  return part("Why it was skipped", sentence);
}

function admission(call) {
  const { by, reason, always, t_ms } = call.admission;
  const waited = call.ready_ms === null ? 0 : t_ms - call.ready_ms;
  const sentence = `by ${ADMITTED_BY[by] ?? by}${waited > 0 ? ` after ${time(waited)}` : ""}`;
  const scope = always ? ", with all later calls of this tool" : "";
  return part("Allowed", make("p", "", sentence + scope + (reason ? `: ${reason}` : "")));
}

function details(number) {
  const panel = byId("details");
  const call = number === null ? undefined : calls[number];
  panel.classList.toggle("open", Boolean(call));
  if (!call) {
    panel.replaceChildren(make("p", "hint", calls.length === 0
      ? "This run has no calls."
      : "Select a call to see its arguments, its result and its status. Keys: j and k for the next and previous call, / to search, 1 and 2 for the views."));
    return;
  }
  const close = make("button", "close", "×");
  close.type = "button";
  close.setAttribute("aria-label", "Close the details");
  close.addEventListener("click", () => choose(null, "details"));
  const facts = [`call ${call.number}`, call.effect, trace.turns.length > 1 ? `turn ${trace.turns[call.turn].number + 1}` : null];
  if (call.is_critical) facts.push("on the critical path");
  const parts = [
    make("h2", "", null, make("span", "name", call.name), make("span", "id", tag(call)), close),
    make("p", "facts", null,
      make("b", `badge ${kind(call)}`, `${KINDS[kind(call)][0]} ${statusText(call)}${took(call) === statusText(call) ? "" : ` · ${took(call)}`}`),
      make("span", "", facts.filter(Boolean).join(" · "))),
  ];
  if (call.open) parts.push(part("Interrupted", make("p", "", `The log ends ${STATES[call.open.state]}. Resuming the run (plaincall run --resume) ${call.open.resume}.`)));
  if (call.because) parts.push(because(call));
  if (call.error !== null) parts.push(part("Error", ...value(call.error, kind(call))));
  if (call.output !== null) parts.push(part("Output", ...value(call.output)));
  if (call.note !== null) parts.push(part("Note", ...value(call.note)));
  if (call.arguments) parts.push(part("Arguments", ...argumentList(call.arguments)));
  for (const [at, reply] of (call.replies ?? []).entries()) {
    const title = call.replies.length > 1 ? `Reply ${at + 1} of the subagent` : "Reply of the subagent";
    parts.push(part(reply.usage ? `${title} · ${tokens(reply.usage)}` : title, ...value(reply.text)));
  }
  if (calls[call.parent]) parts.push(part("Submitted by", make("p", "links", null, link(call.parent, called(calls[call.parent])))));
  if (children[number].length > 0) {
    const links = children[number].slice(0, MANY).map((child) => link(child, called(calls[child])));
    parts.push(part("Submitted calls", make("p", "links", null, ...links)));
  }
  if (call.edited) parts.push(part("Edited arguments", ...argumentList(call.edited)));
  if (call.source) parts.push(part(call.parent === null ? "As written" : "As submitted", ...value(call.source)));
  if (call.dependencies.length > 0) {
    parts.push(part("Depends on", make("p", "links", null, ...call.dependencies.map(({ id, call: cause }) => link(cause, id)))));
  }
  const needing = dependents[number];
  if (needing.length > 0) {
    const more = needing.length > MANY ? [`and ${count(needing.length - MANY, "more call")}`] : [];
    const links = needing.slice(0, MANY).map((other) => link(other, calls[other].id));
    parts.push(part("Needed by", make("p", "links", null, ...links, ...more)));
  }
  if (call.held) parts.push(part("Held", make("p", "", `It ${call.held}.`)));
  if (call.admission) parts.push(admission(call));
  if (call.attempts.length > 1 || call.attempts.some(({ error, is_interrupted }) => error !== null || is_interrupted)) {
    parts.push(part("Attempts", attemptTable(call)));
  }
  parts.push(part("Times", stations(call)));
  panel.replaceChildren(...parts);
  panel.scrollTop = 0;
}

// Views.

const isNarrow = matchMedia("(max-width: 820px)");

function view(name) {
  document.body.dataset.view = name;
  keepAddress();
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const isOn = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(isOn));
    tab.tabIndex = isOn ? 0 : -1;
  }
  notify("view", name);
}

function buildViews() {
  const tabs = () => [...document.querySelectorAll("[role=tab]")].filter((tab) => tab.offsetParent !== null);
  byId("views").addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) view(tab.id.slice(4));
  });
  byId("views").addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    const all = tabs();
    const next = all[(all.indexOf(document.activeElement) + by + all.length) % all.length];
    view(next.id.slice(4));
    next.focus();
  });
  isNarrow.addEventListener("change", () => {
    if (!isNarrow.matches && document.body.dataset.view === "transcript") view("timeline");
  });
  addEventListener("resize", () => notify("resized"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => notify("resized"));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      if (document.activeElement === byId("search")) byId("search").blur();
      else choose(null, "key");
      return;
    }
    if (event.target.closest("input")) return;
    const acts = {
      "/": () => byId("search").focus(),
      j: () => step(1, "key"),
      k: () => step(-1, "key"),
      1: () => view("timeline"),
      2: () => view("graph"),
    };
    if (acts[event.key]) {
      event.preventDefault();
      acts[event.key]();
    }
  });
}

// The other scripts add their views; then all of them are notified of what is shown.
addEventListener("DOMContentLoaded", () => {
  buildHead();
  buildFilters();
  buildTranscript();
  buildViews();
  listeners.chosen.push(details);
  details(null);
  buildTimeline();
  buildGraph();
  filter();
  const [, wantedView, wanted] = /^#(transcript|timeline|graph)?\/?(?:call-(\d+))?$/.exec(location.hash) ?? [];
  view(isNarrow.matches ? wantedView ?? "transcript" : wantedView === "graph" ? "graph" : "timeline");
  if (wanted !== undefined && calls[wanted]) choose(Number(wanted), "address");
  performance.mark("shown");
});
