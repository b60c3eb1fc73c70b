import { decode } from "./core.js";
import type { Diagnostic, Shown } from "./model.js";
import { prose } from "./prose.js";

/** The list of diagnostics: message, rule and fix of each. */
export class Diagnostics {
  readonly #panel = byId("diagnostics");
  readonly #goTo: (byte: number) => void;
  #items = new Map<Diagnostic, HTMLElement>();

  /** `goTo` shows a byte in the source. */
  constructor(goTo: (byte: number) => void) {
    this.#goTo = goTo;
  }

  show(shown: Shown): void {
    const { reply } = shown;
    const { diagnostics } = reply;
    const errors = diagnostics.filter(({ severity }) => severity === "error").length;
    this.#items = new Map(diagnostics.map((one, at) => [one, item(one, at, this.#goTo)]));
    const summary = `${count(errors, "error")}, ${count(diagnostics.length - errors, "warning")}. These are the diagnostics of \`plaincall check\`.`;
    const none = reply.calls === 0 ? [] : [make("p", "hint", "No errors and no warnings.")];
    this.#panel.replaceChildren(
      ...(reply.calls === 0 ? withoutCalls(shown) : []),
      ...(diagnostics.length === 0 ? none : [prose("p", "hint", summary)]),
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

/** What was looked for, and what a text without a call may be. */
export function withoutCalls({ bytes, settings }: Shown): HTMLElement[] {
  const { syntax, start_prefix: start, key } = settings.dialect;
  const markers = [
    ...(syntax === "emoji" ? [] : [`\`${start || "!!!GADGET_START:"}\` at the start of a line`]),
    ...(syntax === "block" ? [] : ["`🛠️[`"]),
  ];
  const looked = `No call was found. A call begins with ${markers.join(", or ")}${key ? `, with the key \`${key}\`` : ""}.`;
  const text = decode(bytes.subarray(0, 1 << 20));
  const guess = GUESSES.find(([pattern]) => pattern.test(text));
  const advice = guess?.[1] ?? "If the model should have called a tool, give it the system prompt of the tab Prompt.";
  const next = byId("offer").hidden ? advice : "Use the offer above the tabs.";
  return [prose("p", "message warning", looked), prose("p", "message", next)];
}

/** What other texts look like, and what they are. */
const GUESSES: [RegExp, string][] = [
  [/^\s*Action:.*\n+\s*Action Input:/m, "It looks like ReAct (`Action:` and `Action Input:`), a format of other programs. Give the model the system prompt of the tab Prompt."],
  [/\\ud83d\\udee0|\\n!!!GADGET_START:/, "It looks like the inside of a JSON string: the line ends and the emoji are escaped. Paste the text without the escapes, or the whole JSON of the response."],
  [/"(tool_calls|tool_use|function_call|functionCall)"/, "It looks like native tool calls in JSON. Plaincall reads the calls that a model without native tool calls writes as text."],
  [/^(data|event):/m, "It looks like an event stream without a model's text."],
  [/(\?\?|\ufffd|ð[\u0178\u009f]|Ã°)[^\n[]{0,40}\[[\w.-]+/, "It looks like an emoji marker in a wrong encoding. Read and write the text as UTF-8."],
];

/** A section of the specification. The website has it; a page that was kept or sent does not. */
export function rule(name: string): globalThis.Node {
  const found = [...byId("rules").children].find(({ textContent }) => textContent === name);
  const link = found?.cloneNode(true);
  if (!(link instanceof HTMLAnchorElement) || !location.protocol.startsWith("http")) return document.createTextNode(name);
  link.target = "_blank";
  return link;
}

function item(one: Diagnostic, at: number, goTo: (byte: number) => void): HTMLElement {
  const place = make("button", "link-button", `line ${one.line}, column ${one.column}`);
  place.type = "button";
  place.addEventListener("click", () => goTo(one.start));
  const facts: [string, HTMLElement | null][] = [
    ["Fix", one.help === null ? null : prose("dd", "", one.help)],
    ["Probably meant", one.suggestion === null ? null : make("dd", "", one.suggestion)],
    ["Rule", make("dd", "", null, rule(one.rule))],
  ];
  return make("li", `diagnostic ${one.severity}`, null,
    make("p", "", null, make("b", `flag ${one.severity}`, `${one.severity === "error" ? "✗" : "▲"}${at + 1}`), ` ${one.severity} `, make("code", "", one.code), " at ", place),
    prose("p", "message", one.message),
    make("dl", "facts-of", null, ...facts.flatMap(([name, fact]) => (fact === null ? [] : [make("dt", "", name), fact]))),
  );
}
