import type { Diagnostic, Shown } from "./model.js";

/** The list of diagnostics: message, rule and fix of each. */
export class Diagnostics {
  readonly #panel = byId("diagnostics");
  readonly #goTo: (byte: number) => void;
  #items = new Map<Diagnostic, HTMLElement>();

  /** `goTo` shows a byte in the source. */
  constructor(goTo: (byte: number) => void) {
    this.#goTo = goTo;
  }

  show({ reply }: Shown): void {
    const { diagnostics } = reply;
    const errors = diagnostics.filter(({ severity }) => severity === "error").length;
    this.#items = new Map(diagnostics.map((one, at) => [one, item(one, at, this.#goTo)]));
    const summary = `${count(errors, "error")}, ${count(diagnostics.length - errors, "warning")}. These are the diagnostics of \`plaincall check\`.`;
    this.#panel.replaceChildren(
      make("p", "hint", diagnostics.length === 0 ? "No errors and no warnings." : summary),
      make("ol", "diagnostics", null, ...this.#items.values()),
    );
  }

  clear(): void {
    this.#items.clear();
    this.#panel.replaceChildren();
  }

  focus(diagnostic: Diagnostic): void {
    view("diagnostics");
    this.#items.get(diagnostic)?.querySelector("button")?.focus();
  }
}

function item(one: Diagnostic, at: number, goTo: (byte: number) => void): HTMLElement {
  const place = make("button", "link-button", `line ${one.line}, column ${one.column}`);
  place.type = "button";
  place.addEventListener("click", () => goTo(one.start));
  const facts: [string, string | null][] = [
    ["Fix", one.help],
    ["Probably meant", one.suggestion],
    ["Rule", one.rule],
  ];
  return make("li", `diagnostic ${one.severity}`, null,
    make("p", "", null, make("b", `flag ${one.severity}`, `${one.severity === "error" ? "✗" : "▲"}${at + 1}`), ` ${one.severity} `, make("code", "", one.code), " at ", place),
    make("p", "message", one.message),
    make("dl", "facts-of", null, ...facts.flatMap(([name, text]) => (text === null ? [] : [make("dt", "", name), make("dd", "", text)]))),
  );
}
