/** The inspector: an input, and the views of what the core knows about it. */

import { Core, encode } from "./core.js";
import { Diagnostics } from "./diagnostics.js";
import { Input, isSample, type Samples } from "./input.js";
import { DEFAULT, fromFragment, toFragment, toGiven } from "./link.js";
import type { Calls, Detected, Given, Reply, Settings, Shown } from "./model.js";
import { Panels } from "./panels.js";
import { prose } from "./prose.js";
import { Replay } from "./replay.js";
import { Source } from "./source.js";
import { Texts } from "./texts.js";
import { Tree } from "./tree.js";

/** What the page shows: tools alone have a prompt and a grammar. */
type Mode = "empty" | "tools" | "reply" | "log";

class Page {
  readonly #core: Core;
  readonly #input: Input;
  readonly #source = new Source();
  readonly #diagnostics: Diagnostics;
  readonly #tree: Tree;
  readonly #texts: Texts;
  readonly #panels: Panels;
  readonly #replay: Replay;
  /** Counts inputs, because a link is made meanwhile. */
  #version = 0;
  #hasCalls = false;
  /** A reply whose calls have not been read. */
  #unread: Shown | null = null;
  /** Where each call starts. */
  #starts: number[] = [];

  constructor(core: Core) {
    this.#core = core;
    const detect = (bytes: Uint8Array): Detected => this.#detect({ bytes, tools: "", settings: DEFAULT });
    const onChange = (): void => {
      state.isAddressKept = false;
      this.#inspect();
    };
    this.#input = new Input(onChange, detect, JSON.parse(byId("sample").textContent) as Samples);
    this.#input.onNew = () => view(this.firstView);
    this.#input.onProblem = (problem) => this.#report(problem);
    const goTo = (byte: number): void => {
      if (isNarrow.matches) view("transcript");
      this.#source.goTo(byte);
      byId("transcript").focus({ preventScroll: true });
    };
    this.#diagnostics = new Diagnostics(goTo);
    this.#tree = new Tree(goTo);
    this.#texts = new Texts(core);
    this.#replay = new Replay(core);
    listeners.view.push((name) => this.#readCallsFor(name));
    this.#source.onCall = () => this.#readCalls();
    document.addEventListener("keydown", (event) => {
      if (["j", "k"].includes(event.key) && isShortcut(event)) this.#readCalls();
    }, { capture: true });
    this.#panels = new Panels({
      diagnostics: (shown) => this.#diagnostics.show(shown),
      calls: (shown) => this.#tree.show(shown),
      json: (shown) => this.#texts.json(shown),
      prompt: (shown) => this.#texts.prompt(shown),
      repair: (shown) => this.#texts.repair(shown),
      grammar: (shown) => this.#texts.grammar(shown),
    });
    this.#source.onDiagnostic = (diagnostic) => this.#diagnostics.focus(diagnostic);
    listeners.chosen.push((number, from) => {
      this.#source.markCall(number);
      const start = number === null ? undefined : this.#starts[number];
      if (start !== undefined && (from === "graph" || from === "key" || from === "details")) this.#source.reveal(start);
    });
    byId("copy-link").addEventListener("click", () => void this.#copyLink());
    addEventListener("hashchange", () => void this.open(false));
  }

  /** Shows what the address names, and at first what the command gave. */
  async open(isFirst: boolean): Promise<void> {
    const { given, view: wanted, call, damage } = await fromFragment(location.hash);
    let first = given;
    if (isFirst && first === null) {
      const stored: unknown = JSON.parse(byId("given").textContent);
      first = stored === null ? null : toGiven(stored);
    }
    if (first !== null) this.#input.set(first);
    else if (isFirst) this.#input.showSample("valid");
    // A person can still look at the address of a damaged link, and repair it. The first example needs no address.
    state.isAddressKept = damage !== null || (isFirst && first === null);
    if (damage !== null) this.#report(damage);
    const tab = document.getElementById(`tab-${wanted}`);
    if (wanted !== null && tab !== null && tab.offsetParent !== null) view(wanted);
    else if (isFirst || first !== null) view(this.firstView);
    if (call !== null) this.#readCalls();
    if (call !== null && calls[call]) choose(call, "address");
  }

  /** The view that the page shows without another wish. */
  get firstView(): string {
    const mode = document.body.dataset["mode"] as Mode;
    if (mode === "empty") return "input";
    if (mode === "tools") return "prompt";
    if (mode === "reply" && !this.#hasCalls) return "diagnostics";
    if (isNarrow.matches) return "transcript";
    return mode === "log" ? "timeline" : "calls";
  }

  #detect(given: Given): Detected {
    return this.#core.perform<Detected>({ operation: "detect", no_reasoning: given.settings.no_reasoning }, given);
  }

  #inspect(): void {
    const { given } = this.#input;
    this.#version += 1;
    byId("problems").hidden = true;
    const sample = isSample(given);
    byId("about").hidden = sample === null && given.bytes.length > 0;
    for (const button of byId("samples").querySelectorAll("button")) button.ariaPressed = `${button.dataset["sample"] === sample}`;
    try {
      const detected = this.#detect(given);
      const { dialect, ...rest } = given.settings;
      this.#input.note(dialect === null || detected.is_log ? detected : null);
      if (given.bytes.length === 0 && given.tools === "") this.#showNothing();
      else if (detected.is_log) this.#showLog(given);
      else this.#showReply(given, { ...rest, dialect: dialect ?? detected.dialect });
    } catch (error) {
      // Nothing of an earlier input stays.
      this.#showNothing();
      if (given.bytes.length > 0) byId("meta").textContent = "The input cannot be shown.";
      this.#report(error);
    }
    void this.#keepLink(given);
  }

  #setMode(mode: Mode): void {
    const isNew = document.body.dataset["mode"] !== mode;
    document.body.dataset["mode"] = mode;
    if (isNew && mode === "log") view(this.firstView);
    const current = document.getElementById(`tab-${document.body.dataset["view"]}`);
    // It needs no layout, which takes long for a long reply.
    if (current === null || getComputedStyle(current).display === "none") view(mode === "reply" ? this.firstView : "input");
  }

  #showNothing(): void {
    this.#clear();
    openTrace({ ...EMPTY });
    byId("title").textContent = document.title = "Plaincall inspector";
    byId("meta").textContent = "Nothing leaves this page.";
    this.#setMode("empty");
  }

  #clear(): void {
    this.#starts = [];
    this.#unread = null;
    this.#panels.show(null);
    for (const part of [this.#source, this.#tree, this.#diagnostics, this.#texts, this.#replay]) part.clear();
  }

  #showLog(given: Given): void {
    const trace = this.#core.perform<Trace>({ operation: "log" }, given);
    this.#clear();
    openTrace(trace);
    showReply();
    buildHead();
    this.#setMode("log");
  }

  #showReply(given: Given, settings: Settings): void {
    let read = given;
    let reply: Reply;
    try {
      reply = this.#core.about<Reply>("reply", settings, read);
    } catch (error) {
      // Without the tools, the reply can be shown all the same. The texts about tools show the error.
      if (given.tools === "") throw error;
      read = { ...given, tools: "" };
      reply = this.#core.about<Reply>("reply", settings, read);
      this.#report(error);
    }
    const bytes = reply.text === null ? given.bytes : encode(reply.text);
    const shown: Shown = { given, read, settings, bytes, reply };
    openTrace({ ...EMPTY });
    this.#unread = shown;
    this.#hasCalls = reply.calls > 0;
    this.#starts = [];
    byId("tab-diagnostics").textContent = numbered("Diagnostics", reply.diagnostics.length);
    byId("tab-calls").textContent = numbered("Calls", reply.calls);
    const errors = reply.diagnostics.filter(({ severity }) => severity === "error").length;
    byId("title").textContent = document.title = "Plaincall inspector";
    const isReply = given.bytes.length > 0;
    byId("meta").textContent = !isReply ? count(reply.tools ?? 0, "tool") : [
      count(reply.calls, "call"),
      count(errors, "error"),
      count(reply.diagnostics.length - errors, "warning"),
      reply.tools === null ? "no tools" : count(reply.tools, "tool"),
      ...(reply.syntax === null ? [] : [`${reply.syntax} syntax`]),
    ].join(" · ");
    this.#readCallsFor(document.body.dataset["view"] ?? "");
    this.#panels.show(shown);
    this.#setMode(isReply ? "reply" : "tools");
    this.#source.show(shown);
    this.#replay.show(shown);
  }

  /** Reads the calls if a view shows them. The input and the source do not, so that an edit need not wait for them. */
  #readCallsFor(name: string): void {
    if (name !== "input" && name !== "transcript") this.#readCalls();
  }

  /** Reads the calls of the reply, unless they have been read. */
  #readCalls(): void {
    const shown = this.#unread;
    if (shown === null) return;
    this.#unread = null;
    const { trace, views } = this.#core.about<Calls>("calls", shown.settings, shown.read);
    trace.calls.forEach((call, number) => {
      call.arguments = views[number]!.values.map(({ pointer, text }) => [pointer, text]);
    });
    this.#starts = views.map(({ start }) => start);
    this.#tree.prepare(views);
    openTrace(trace);
  }

  /** Says what is wrong. */
  #report(problem: unknown): void {
    report(problem, Boolean(byId("problems").hidden));
  }

  /** Keeps the input in the address. */
  async #keepLink(given: Given): Promise<void> {
    const version = this.#version;
    // The reply is drawn first.
    await new Promise((resolve) => setTimeout(resolve));
    if (version !== this.#version) return;
    const prefix = await toFragment(given);
    if (version !== this.#version) return;
    state.prefix = prefix;
    if (!state.isAddressKept) keepAddress();
    byId("link-note").textContent = prefix === "" && given.bytes.length > 0 ? "too long for a link" : "";
    byId("copy-link").disabled = prefix === "";
  }

  async #copyLink(): Promise<void> {
    const note = byId("link-note");
    try {
      await navigator.clipboard.writeText(location.href);
      note.textContent = "copied: it holds the reply, the tools and the settings";
    } catch {
      note.textContent = "copy the address of this page: it holds the reply";
    }
  }
}

/** The name of a tab, with a number. */
const numbered = (name: string, number: number): string => (number === 0 ? name : `${name} (${number.toLocaleString("en")})`);

/** Whether a key is no text, and no shortcut of the browser. */
const isShortcut = (event: KeyboardEvent): boolean =>
  !event.ctrlKey && !event.metaKey && !event.altKey && around(event, "input, textarea, select") === null;

const EMPTY: Trace = { begin: null, turns: [], calls: [], resumed: [], usage: null, end_ms: 0, problems: [] };

/** Shows a problem above the views, alone or below those that are there. */
function report(problem: unknown, isFirst: boolean): void {
  const element = prose("p", "", problem instanceof Error ? problem.message : String(problem));
  if (isFirst) byId("problems").replaceChildren(element);
  else byId("problems").append(element);
  byId("problems").hidden = false;
}

async function start(): Promise<void> {
  buildFilters();
  buildTranscript();
  buildViews();
  listeners.chosen.push(details);
  buildTimeline();
  buildGraph();
  const page = new Page(await Core.load(byId("module").textContent));
  defaultView = () => page.firstView;
  await page.open(true);
  performance.mark("shown");
}

addEventListener("DOMContentLoaded", () => void start().catch((error: unknown) => report(error, true)));
