import type { Core } from "./core.js";
import type { GrammarView, JsonView, Shown } from "./model.js";
import { prose, slice, SLICE } from "./prose.js";

/** A text with a button that copies it. */
function copyable(text: string, label: string): HTMLElement[] {
  const button = make("button", "copy", "Copy");
  button.type = "button";
  button.addEventListener("click", () => {
    void navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Not allowed here"; });
  });
  const lines = text.match(new RegExp(`[^]{1,${SLICE}}.*\\n?`, "g")) ?? [];
  const pre = make("pre", "whole", null, ...lines.map((part) => slice("", part)));
  pre.tabIndex = 0;
  pre.setAttribute("aria-label", label);
  return [make("div", "bar", null, button, make("span", "hint", `${text.length.toLocaleString("en")} characters`)), pre];
}

/** What `make` returns or throws, as elements. */
function attempt(build: () => HTMLElement[]): HTMLElement[] {
  try {
    return build();
  } catch (error) {
    return [prose("p", "message error", error instanceof Error ? error.message : String(error))];
  }
}

/** The calls for a client, and the texts that the model gets. */
export class Texts {
  readonly #core: Core;
  readonly #engine = byId("engine");

  constructor(core: Core) {
    this.#core = core;
  }

  clear(): void {
    this.#engine.onchange = null;
    for (const id of ["json", "prompt", "repair", "grammar-text"] as const) byId(id).replaceChildren();
  }

  json({ read, settings }: Shown): void {
    byId("json").replaceChildren(...attempt(() => json(this.#core.about<JsonView>("json", settings, read))));
  }

  prompt({ given, settings }: Shown): void {
    byId("prompt").replaceChildren(...attempt(() => {
      const text = this.#core.about<string>("prompt", settings, given);
      return [make("p", "hint", "The system prompt that teaches a model these tools."), ...copyable(text, "System prompt")];
    }));
  }

  repair({ given, settings }: Shown): void {
    byId("repair").replaceChildren(...attempt(() => {
      const text = this.#core.about<string | null>("repair", settings, given);
      if (text === null) return [make("p", "hint", "No call was rejected, so there is no message.")];
      return [make("p", "hint", "The message that asks the model to correct its calls."), ...copyable(text, "Repair message")];
    }));
  }

  grammar(shown: Shown): void {
    if (this.#engine.options.length === 0) this.#engine.append(...shown.reply.engines.map((name) => new Option(name)));
    this.#engine.onchange = () => this.grammar(shown);
    byId("grammar-text").replaceChildren(...attempt(() => {
      const more = { engine: this.#engine.value };
      const { text, notes, fields } = this.#core.about<GrammarView>("grammar", shown.settings, shown.given, more);
      const names = Object.keys(fields).map((name) => `\`${name}\``).join(", ");
      return [
        prose("p", "hint", names === "" ? "For programs that take a grammar." : `A request carries it in ${names}.`),
        ...(notes.length === 0 ? [] : [make("h2", "", "Not held by the grammar"), make("ul", "notes", null, ...notes.map((note) => prose("li", "", note)))]),
        ...copyable(text, "Grammar"),
      ];
    }));
  }
}

function json({ tool_calls: found, skipped: list, dependent }: JsonView): HTMLElement[] {
  const skipped = list.map(({ id, reasons }) => prose("li", "", ` ${reasons.join("; ")}`, make("b", "", id)));
  return [
    prose("p", "hint", "The array `tool_calls` of an OpenAI client. A call that is not valid is never part of it."),
    ...(skipped.length === 0 ? [] : [make("h2", "", "Not in the array"), make("ul", "notes", null, ...skipped)]),
    ...(dependent === 0 ? [] : [make("p", "hint", `${count(dependent, "call")} with dependencies: the format has no place for them.`)]),
    ...copyable(JSON.stringify(found, null, 2), "JSON"),
  ];
}
