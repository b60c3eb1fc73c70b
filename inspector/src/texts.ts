import type { Core } from "./core.js";
import type { GrammarView, Shown } from "./model.js";

/** A text with a button that copies it. */
function copyable(text: string, label: string): HTMLElement[] {
  const button = make("button", "copy", "Copy");
  button.type = "button";
  button.addEventListener("click", () => {
    void navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Not allowed here"; });
  });
  const pre = make("pre", "whole", text);
  pre.tabIndex = 0;
  pre.setAttribute("aria-label", label);
  return [make("div", "bar", null, button, make("span", "hint", `${text.length.toLocaleString("en")} characters`)), pre];
}

/** What `make` returns or throws, as elements. */
function attempt(build: () => HTMLElement[]): HTMLElement[] {
  try {
    return build();
  } catch (error) {
    return [make("p", "message error", error instanceof Error ? error.message : String(error))];
  }
}

/** The calls for a client, and the texts that the model gets. Each is made when its view is shown. */
export class Texts {
  readonly #core: Core;
  #shown: Shown | null = null;
  #fresh = new Set<string>();
  readonly #engine = byId("engine");

  constructor(core: Core) {
    this.#core = core;
    this.#engine.addEventListener("change", () => this.#showGrammar());
    listeners.view.push((name) => this.#make(name));
  }

  show(shown: Shown): void {
    this.#shown = shown;
    this.#fresh.clear();
    if (this.#engine.options.length === 0) this.#engine.append(...shown.reply.engines.map((name) => new Option(name)));
    this.#make(document.body.dataset["view"] ?? "");
  }

  clear(): void {
    this.#shown = null;
    this.#fresh.clear();
    for (const id of ["json", "prompt", "repair", "grammar-text"] as const) byId(id).replaceChildren();
  }

  #make(name: string): void {
    const shown = this.#shown;
    if (shown === null || this.#fresh.has(name)) return;
    this.#fresh.add(name);
    const { settings, given } = shown;
    if (name === "json") byId("json").replaceChildren(...json(shown));
    else if (name === "grammar") this.#showGrammar();
    else if (name === "prompt") {
      byId("prompt").replaceChildren(...attempt(() => {
        const text = this.#core.about<string>("prompt", settings, given);
        return [make("p", "hint", "The system prompt that teaches a model these tools."), ...copyable(text, "System prompt")];
      }));
    } else if (name === "repair") {
      byId("repair").replaceChildren(...attempt(() => {
        const text = this.#core.about<string | null>("repair", settings, given);
        if (text === null) return [make("p", "hint", "No call was rejected, so there is no message.")];
        return [make("p", "hint", "The message that asks the model to correct its calls."), ...copyable(text, "Repair message")];
      }));
    }
  }

  #showGrammar(): void {
    const shown = this.#shown;
    if (shown === null) return;
    byId("grammar-text").replaceChildren(...attempt(() => {
      const more = { engine: this.#engine.value };
      const { text, notes, fields } = this.#core.about<GrammarView>("grammar", shown.settings, shown.given, more);
      const names = Object.keys(fields).map((name) => `\`${name}\``).join(", ");
      return [
        make("p", "hint", names === "" ? "For programs that take a grammar." : `A request carries it in ${names}.`),
        ...(notes.length === 0 ? [] : [make("h2", "", "Not held by the grammar"), make("ul", "notes", null, ...notes.map((note) => make("li", "", note)))]),
        ...copyable(text, "Grammar"),
      ];
    }));
  }
}

function json({ reply }: Shown): HTMLElement[] {
  const skipped = reply.skipped.map(({ id, reasons }) => make("li", "", null, make("b", "", id), ` ${reasons.join("; ")}`));
  const dependent = calls.filter(({ dependencies }) => dependencies.length > 0).length;
  return [
    make("p", "hint", "The array `tool_calls` of an OpenAI client. A call that is not valid is never part of it."),
    ...(skipped.length === 0 ? [] : [make("h2", "", "Not in the array"), make("ul", "notes", null, ...skipped)]),
    ...(dependent === 0 ? [] : [make("p", "hint", `${count(dependent, "call")} with dependencies: the format has no place for them.`)]),
    ...copyable(JSON.stringify(reply.tool_calls, null, 2), "JSON"),
  ];
}
