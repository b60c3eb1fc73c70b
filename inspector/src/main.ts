/** The inspector: an input, and the views of what the core knows about it. */

import { Core, encode } from "./core.js";
import { Diagnostics } from "./diagnostics.js";
import { Input } from "./input.js";
import { fromFragment, type Stored, toFragment, toGiven } from "./link.js";
import type { Detected, Given, Reply, Settings, Shown } from "./model.js";
import { Replay } from "./replay.js";
import { Source } from "./source.js";
import { Texts } from "./texts.js";
import { Tree } from "./tree.js";

type Mode = "empty" | "reply" | "log";

class Page {
  readonly #core: Core;
  readonly #input: Input;
  readonly #source = new Source();
  readonly #diagnostics = new Diagnostics();
  readonly #tree = new Tree();
  readonly #texts: Texts;
  readonly #replay: Replay;
  /** Counts inputs, because a link is made meanwhile. */
  #version = 0;

  constructor(core: Core) {
    this.#core = core;
    this.#input = new Input(() => this.#inspect(), toGiven(JSON.parse(byId("sample").textContent) as Stored));
    this.#texts = new Texts(core);
    this.#replay = new Replay(core);
    this.#source.onDiagnostic = (diagnostic) => this.#diagnostics.focus(diagnostic);
    listeners.chosen.push((number: number | null, from: string) => {
      this.#source.markCall(number);
      const start = number === null ? undefined : this.#starts[number];
      if (start !== undefined && (from === "graph" || from === "key" || from === "details")) this.#source.reveal(start);
    });
    byId("copy-link").addEventListener("click", () => void this.#copyLink());
    addEventListener("hashchange", () => void this.open());
  }

  #starts: number[] = [];

  /** Shows what the address or the command gave. */
  async open(): Promise<void> {
    try {
      const { given, view: wanted, call } = await fromFragment(location.hash);
      const stored = JSON.parse(byId("given").textContent) as Stored | null;
      const first = given ?? (stored === null ? null : toGiven(stored));
      if (first !== null) this.#input.set(first);
      else this.#inspect();
      const tab = document.getElementById(`tab-${wanted}`);
      view(wanted !== null && tab !== null && tab.offsetParent !== null ? wanted : this.#firstView());
      if (call !== null && calls[call]) choose(call, "address");
    } catch (error) {
      this.#fail(error);
    }
  }

  #firstView(): string {
    const mode = document.body.dataset["mode"] as Mode;
    if (mode === "empty") return "input";
    if (isNarrow.matches) return "transcript";
    return mode === "log" ? "timeline" : "calls";
  }

  #inspect(): void {
    const { given } = this.#input;
    this.#version += 1;
    byId("problems").hidden = true;
    try {
      const detected = this.#core.perform<Detected>({ operation: "detect" }, given);
      this.#input.note(given.settings === null || detected.is_log ? detected : null);
      if (given.bytes.length === 0) this.#showNothing();
      else if (detected.is_log) this.#showLog(given);
      else this.#showReply(given, given.settings ?? this.#input.settingsWith(detected.dialect));
    } catch (error) {
      this.#fail(error);
    }
    void this.#keepLink(given);
  }

  #setMode(mode: Mode): void {
    document.body.dataset["mode"] = mode;
    const current = document.getElementById(`tab-${document.body.dataset["view"]}`);
    if (current?.offsetParent == null) view("input");
  }

  #showNothing(): void {
    this.#source.clear();
    this.#starts = [];
    openTrace({ ...EMPTY });
    byId("title").textContent = document.title = "Plaincall inspector";
    byId("meta").textContent = "Nothing leaves this page.";
    this.#setMode("empty");
  }

  #showLog(given: Given): void {
    const trace = this.#core.perform<Trace>({ operation: "log" }, given);
    this.#source.clear();
    this.#tree.clear();
    this.#starts = [];
    openTrace(trace);
    buildHead();
    this.#setMode("log");
  }

  #showReply(given: Given, settings: Settings): void {
    let reply: Reply;
    try {
      reply = this.#core.about<Reply>("reply", settings, given);
    } catch (error) {
      // Without the tools, the reply can be shown all the same.
      if (given.tools === "") throw error;
      given = { ...given, tools: "" };
      reply = this.#core.about<Reply>("reply", settings, given);
      this.#fail(error);
    }
    const bytes = reply.text === null ? given.bytes : encode(reply.text);
    const shown: Shown = { given, settings, bytes, reply };
    const goTo = (byte: number): void => {
      if (isNarrow.matches) view("transcript");
      this.#source.goTo(byte);
    };
    this.#starts = reply.calls.map(({ start }) => start);
    reply.trace.calls.forEach((call, number) => {
      call.arguments = reply.calls[number]!.values.map(({ pointer, text }) => [pointer, text]);
    });
    this.#tree.prepare(shown, goTo);
    openTrace(reply.trace);
    this.#tree.show(shown);
    this.#source.show(shown);
    this.#diagnostics.show(shown, goTo);
    this.#texts.show(shown);
    this.#replay.show(shown);
    const errors = reply.diagnostics.filter(({ severity }) => severity === "error").length;
    byId("title").textContent = document.title = "Plaincall inspector";
    byId("meta").textContent = [
      count(calls.length, "call"),
      count(errors, "error"),
      count(reply.diagnostics.length - errors, "warning"),
      reply.tools === null ? "no tools" : count(reply.tools, "tool"),
      reply.syntax === null ? "no syntax" : `${reply.syntax} syntax`,
    ].join(" · ");
    this.#setMode("reply");
  }

  #fail(error: unknown): void {
    byId("problems").replaceChildren(make("p", "", error instanceof Error ? error.message : String(error)));
    byId("problems").hidden = false;
  }

  /** Keeps the input in the address. */
  async #keepLink(given: Given): Promise<void> {
    const version = this.#version;
    const prefix = await toFragment(given);
    if (version !== this.#version) return;
    state.prefix = prefix;
    keepAddress();
    byId("link-note").textContent = prefix === "" && given.bytes.length > 0 ? "too long for a link" : "";
    byId("copy-link").disabled = prefix === "";
  }

  async #copyLink(): Promise<void> {
    const note = byId("link-note") as HTMLElement;
    try {
      await navigator.clipboard.writeText(location.href);
      note.textContent = "copied: it holds the reply, the tools and the settings";
    } catch {
      note.textContent = "copy the address of this page: it holds the reply";
    }
  }
}

const EMPTY: Trace = { begin: null, turns: [], calls: [], resumed: [], usage: null, end_ms: 0, problems: [] };

async function start(): Promise<void> {
  buildFilters();
  // The cards of a log; the source of a reply replaces them.
  buildTranscript();
  buildViews();
  listeners.chosen.push(details);
  buildTimeline();
  buildGraph();
  const page = new Page(await Core.load(byId("module").textContent));
  await page.open();
  performance.mark("shown");
}

addEventListener("DOMContentLoaded", () => void start());
