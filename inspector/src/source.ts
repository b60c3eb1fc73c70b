import { decode } from "./core.js";
import { rule } from "./diagnostics.js";
import type { Diagnostic, Kind, Part, Shown } from "./model.js";
import { prose, slice, SLICE } from "./prose.js";

/** What each kind of bytes is, and what it means. */
export const KINDS_OF_BYTES: Record<Kind, [string, string]> = {
  text: ["text", "shown to the user"],
  reasoning: ["reasoning", "calls in it are ignored"],
  header: ["header", "a call begins: tool, id and dependencies"],
  argument: ["argument", "names the argument whose value follows"],
  value: ["value", "the text of an argument, as written"],
  line_end: ["line end", "belongs to the next marker, not to the value"],
  end: ["end", "the call is complete"],
  ignored: ["ignored", "has no meaning here"],
};
/** How much of a part a screen reader says, in bytes. */
const SPOKEN = 400;

/** A piece of the text with one interpretation and the same diagnostics. */
interface Piece {
  part: Part;
  start: number;
  end: number;
  diagnostics: Diagnostic[];
}

/** The text, cut at parts, at diagnostics, and after lines of long parts. Diagnostics about a place, such as the end, have an empty piece there. */
function pieces({ parts, diagnostics }: { parts: Part[]; diagnostics: Diagnostic[] }, bytes: Uint8Array): Piece[] {
  const cuts = new Set(diagnostics.flatMap(({ start, end }) => [start, end]));
  const ordered = [...cuts].sort((a, b) => a - b);
  const byStart = diagnostics.filter(({ start, end }) => end > start && start < bytes.length).sort((a, b) => a.start - b.start);
  const places = diagnostics.filter((one) => !byStart.includes(one)).sort((a, b) => a.start - b.start);
  const found: Piece[] = [];
  let open: Diagnostic[] = [];
  let nextCut = 0;
  let nextDiagnostic = 0;
  let nextPlace = 0;
  const pushPlaces = (part: Part, at: number): void => {
    const first = nextPlace;
    while (nextPlace < places.length && places[nextPlace]!.start <= at) nextPlace += 1;
    if (nextPlace > first) found.push({ part, start: at, end: at, diagnostics: places.slice(first, nextPlace) });
  };
  const push = (part: Part, start: number, end: number): void => {
    pushPlaces(part, start);
    const first = nextDiagnostic;
    while (nextDiagnostic < byStart.length && byStart[nextDiagnostic]!.start <= start) nextDiagnostic += 1;
    open = [...open, ...byStart.slice(first, nextDiagnostic)].filter((one) => one.end > start);
    for (let from = start; from < end;) {
      const line = end - from > SLICE ? bytes.indexOf(10, from + SLICE) + 1 : end;
      const to = line > 0 ? Math.min(line, end) : end;
      found.push({ part, start: from, end: to, diagnostics: open });
      from = to;
    }
  };
  for (const part of parts) {
    let at = part.start;
    while (nextCut < ordered.length && ordered[nextCut]! < part.end) {
      const cut = ordered[nextCut++]!;
      if (cut > at) {
        push(part, at, cut);
        at = cut;
      }
    }
    push(part, at, part.end);
  }
  pushPlaces(parts.at(-1) ?? { kind: "text", start: 0, end: 0 }, Math.max(bytes.length, places.at(-1)?.start ?? 0));
  return found;
}

/** The element of a piece. */
function marked({ part, start, end, diagnostics }: Piece, bytes: Uint8Array): HTMLElement {
  const severity = diagnostics.some((one) => one.severity === "error") ? " error" : diagnostics.length > 0 ? " warning" : "";
  const classes = [severity, start === end ? " place" : "", part.call !== undefined && part.call === state.chosen ? " chosen" : ""];
  return make("span", `piece-of-text bytes ${part.kind}${classes.join("")}`, decode(bytes.subarray(start, end)));
}

/** The signs of the diagnostics that begin at a piece. */
function flags({ start, end, diagnostics }: Piece, all: Diagnostic[]): HTMLElement[] {
  return diagnostics.filter((one) => one.start === start || start === end).map((one) => {
    const at = all.indexOf(one);
    const flag = make("span", `flag ${one.severity}`, `${one.severity === "error" ? "✗" : "▲"}${at + 1}`);
    flag.dataset["diagnostic"] = String(at);
    flag.title = seen(one.message);
    return flag;
  });
}

/** Adjacent pieces, which end with a line. They are one text until they come into sight, and then an element each. */
interface Block {
  element: HTMLElement;
  /** The first of its pieces, and the first one behind it. */
  first: number;
  end: number;
  isMarked: boolean;
}

function blocks(found: Piece[], bytes: Uint8Array): Block[] {
  const list: Block[] = [];
  let first = 0;
  found.forEach(({ end }, at) => {
    const start = found[first]!.start;
    const isOver = at + 1 === found.length || (end - start > SLICE && bytes[end - 1] === 10);
    if (!isOver) return;
    const element = slice("block", decode(bytes.subarray(start, end)));
    list.push({ element, first, end: at + 1, isMarked: false });
    first = at + 1;
  });
  return list;
}

/** The coloured text, and the line below it that explains the current piece. */
export class Source {
  #shown: Shown | null = null;
  #pieces: Piece[] = [];
  #blocks: Block[] = [];
  /** The elements of the pieces that have one. */
  #elements: HTMLElement[] = [];
  #current = -1;
  readonly #box = byId("transcript");
  readonly #line = byId("interpretation");
  readonly #observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const block = isIntersecting && this.#blocks.find(({ element }) => element === target);
      if (block) this.#mark(block);
    }
  }, { root: this.#box, rootMargin: "100%" });
  /** Called with a diagnostic that was clicked. */
  onDiagnostic: (diagnostic: Diagnostic) => void = () => {};
  /** Called before a call is explained. */
  onCall: () => void = () => {};

  constructor() {
    this.#box.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by === undefined || this.#shown === null) return;
      event.preventDefault();
      this.#go(Math.min(Math.max(this.#current + by, 0), this.#pieces.length - 1), true);
    });
    this.#box.addEventListener("click", (event) => {
      const flag = around(event, "[data-diagnostic]");
      const diagnostic = this.#shown?.reply.diagnostics[Number(flag?.dataset["diagnostic"] ?? -1)];
      if (diagnostic) this.onDiagnostic(diagnostic);
      const piece = around(event, ".piece-of-text");
      if (piece !== null && document.getSelection()?.isCollapsed !== false) this.#go(this.#elements.indexOf(piece), false);
    });
    byId("kinds").append(...Object.entries(KINDS_OF_BYTES).map(([kind, [name, meaning]]) => {
      const item = make("li", "", null, make("span", `bytes ${kind}`, name));
      item.title = meaning;
      return item;
    }));
  }

  show(shown: Shown): void {
    this.#shown = shown;
    this.#pieces = pieces(shown.reply, shown.bytes);
    this.#blocks = blocks(this.#pieces, shown.bytes);
    this.#elements = [];
    this.#current = -1;
    this.#box.replaceChildren(...this.#blocks.map(({ element }) => element));
    this.#line.replaceChildren(make("span", "hint", "Select a part of the reply to see its interpretation: click, or use the left and right arrow keys."));
    this.#observer.disconnect();
    // The observer comes after the next frame. What is in sight has its colours before.
    const sight = this.#box.getBoundingClientRect();
    for (const block of this.#blocks) {
      const { top, bottom } = block.element.getBoundingClientRect();
      if (bottom > sight.top && top < sight.bottom) this.#mark(block);
      else this.#observer.observe(block.element);
    }
  }

  clear(): void {
    this.#shown = null;
    this.#pieces = this.#blocks = this.#elements = [];
    this.#box.replaceChildren();
    this.#line.replaceChildren();
  }

  /** Shows the place of a byte. */
  goTo(byte: number): void {
    const at = this.#pieces.findIndex((piece) => piece.end > byte || (piece.start === piece.end && piece.start === byte));
    this.#go(at < 0 ? this.#pieces.length - 1 : at, true);
  }

  /** Brings a byte into sight. */
  reveal(byte: number): void {
    this.#element(this.#pieces.findIndex((piece) => piece.end > byte))?.scrollIntoView({ block: "center" });
  }

  /** Marks the parts of a call. */
  markCall(call: number | null): void {
    // Pieces without an element are skipped.
    this.#elements.forEach((element, at) => element.classList.toggle("chosen", call !== null && this.#pieces[at]?.part.call === call));
  }

  /** The element of a piece. */
  #element(at: number): HTMLElement | undefined {
    const block = this.#blocks.find(({ first, end }) => at >= first && at < end);
    if (block) this.#mark(block);
    return this.#elements[at];
  }

  /** Replaces the text of a block with its pieces. */
  #mark(block: Block): void {
    if (block.isMarked) return;
    block.isMarked = true;
    this.#observer.unobserve(block.element);
    const content: HTMLElement[] = [];
    for (let at = block.first; at < block.end; at += 1) {
      const piece = this.#pieces[at]!;
      const element = marked(piece, this.#shown!.bytes);
      this.#elements[at] = element;
      content.push(...flags(piece, this.#shown!.reply.diagnostics), element);
    }
    block.element.replaceChildren(...content);
  }

  #go(at: number, isScrolled: boolean): void {
    const piece = this.#pieces[at];
    const element = this.#element(at);
    if (!piece || !element) return;
    this.#elements[this.#current]?.classList.remove("current");
    this.#current = at;
    element.classList.add("current");
    this.onCall();
    this.#explain(piece);
    choose(piece.part.call ?? null, "source");
    // The explanation changes the height of the reply.
    if (isScrolled) element.scrollIntoView({ block: "nearest" });
  }

  #explain({ part, start, end, diagnostics }: Piece): void {
    const [name, meaning] = KINDS_OF_BYTES[part.kind];
    const call = part.call === undefined ? undefined : calls[part.call];
    const of = [part.pointer && `\`${part.pointer}\``, call && `call ${call.number + 1}, ${called(call)}`].filter(Boolean).join(" of ");
    const before = decode(this.#shown!.bytes.subarray(0, part.start));
    const line = before.split("\n").length;
    this.#line.replaceChildren(
      prose("p", "", ` ${of && `of ${of}: `}${meaning}`, make("b", `bytes ${part.kind}`, name)),
      make("p", "spoken", decode(this.#shown!.bytes.subarray(start, Math.min(end, start + SPOKEN)))),
      make("p", "hint", `line ${line}, bytes ${part.start.toLocaleString("en")} to ${part.end.toLocaleString("en")}`),
      ...diagnostics.map((one) => {
        const message = prose("p", `message ${one.severity}`, `${one.severity}: ${one.message}${one.help === null ? "" : `; ${one.help}`} (`);
        message.append(rule(one.rule), ")");
        return message;
      }),
    );
  }
}
