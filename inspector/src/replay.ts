import { type Core, decode } from "./core.js";
import type { Moment, Shown, Tried } from "./model.js";
import { KINDS_OF_BYTES } from "./source.js";

/** How much of the text is shown before and behind the moment, in bytes. */
const BEFORE = 6000;
const BEHIND = 1500;
/** How long a chunk is shown, in milliseconds. */
const PACE = 60;
/** How long splits are tried before the page is drawn again, in milliseconds. */
const SLICE = 80;
const WHAT_IS_TRIED = "Parses the reply in chunks of many sizes and split at many bytes, and compares the results.";

const isInside = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** The next place at or behind this one that is not inside a character. */
function nextCharacter(bytes: Uint8Array, at: number): number {
  let next = at;
  while (isInside(bytes[next])) next += 1;
  return next;
}

/** Bytes as text; those of an incomplete character, at the beginning or the end, as numbers. */
function readable(bytes: Uint8Array, from: number, to: number): string {
  const begin = Math.min(nextCharacter(bytes, from), to);
  let end = to;
  while (end > begin && isInside(bytes[end])) end -= 1;
  const numbers = (part: Uint8Array): string => [...part].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  return numbers(bytes.subarray(from, begin)) + decode(bytes.subarray(begin, end)) + numbers(bytes.subarray(end, to));
}

/** The reply in chunks: what is known at each moment, and what is held back. */
export class Replay {
  readonly #core: Core;
  #shown: Shown | null = null;
  #chunks = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** Counts inputs, so that a proof about an old one ends. */
  #version = 0;
  readonly #size = byId("chunk-size");
  readonly #at = byId("replay-at");
  readonly #play = byId("replay-play");
  readonly #splits = byId("splits");
  readonly #stop = byId("splits-stop");
  readonly #note = byId("replay-note");

  constructor(core: Core) {
    this.#core = core;
    this.#size.addEventListener("input", () => this.#draw());
    this.#size.addEventListener("change", () => {
      this.#size.value = String(this.#chunkSize);
    });
    this.#at.addEventListener("input", () => this.#draw());
    byId("replay-back").addEventListener("click", () => this.#step(-1));
    byId("replay-next").addEventListener("click", () => this.#step(1));
    this.#play.addEventListener("click", () => this.#toggle(this.#timer === undefined));
    this.#splits.addEventListener("click", () => void this.#tryEverySplit());
    this.#stop.addEventListener("click", () => {
      this.#stop.hidden = true;
    });
    listeners.view.push((name) => {
      if (name === "replay") this.#draw();
      else this.#toggle(false);
    });
  }

  show(shown: Shown): void {
    this.#shown = shown;
    this.#version += 1;
    this.#at.value = "0";
    this.#splits.disabled = false;
    this.#stop.hidden = true;
    byId("splits-note").className = "";
    byId("splits-note").textContent = WHAT_IS_TRIED;
    this.#draw();
  }

  clear(): void {
    this.#shown = null;
    this.#version += 1;
    this.#toggle(false);
    this.#note.textContent = "";
    for (const id of ["replay-text", "replay-calls"] as const) byId(id).replaceChildren();
  }

  /** The size of a chunk that the field names, in bytes. */
  get #chunkSize(): number {
    return Math.min(Math.max(Math.floor(Number(this.#size.value)) || 1, 1), Number(this.#size.max) || 1);
  }

  #step(by: number): void {
    this.#at.value = String(Number(this.#at.value) + by);
    this.#draw();
  }

  #toggle(isPlaying: boolean): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#play.setAttribute("aria-pressed", String(isPlaying));
    this.#play.textContent = isPlaying ? "Pause" : "Play";
    // A screen reader says the last words, not those of every chunk.
    this.#note.setAttribute("aria-live", isPlaying ? "off" : "polite");
    if (!isPlaying) return;
    if (this.#at.value === this.#at.max) this.#at.value = "0";
    this.#timer = setInterval(() => {
      if (Number(this.#at.value) + 1 >= Number(this.#at.max)) this.#toggle(false);
      this.#step(1);
    }, PACE);
  }

  #draw(): void {
    const shown = this.#shown;
    if (shown === null || document.body.dataset["view"] !== "replay") return;
    this.#size.max = String(Math.max(shown.bytes.length, 1));
    const size = this.#chunkSize;
    // One step more than there are chunks: the end of the text.
    this.#chunks = Math.ceil(shown.bytes.length / size);
    this.#at.max = String(this.#chunks + 1);
    const chunks = Number(this.#at.value);
    const moment = this.#core.about<Moment>("replay", shown.settings, shown.read, { size, chunks });
    const held = moment.fed - moment.known;
    const arrived = `${Math.min(chunks, this.#chunks)} of ${count(this.#chunks, "chunk")}, ${moment.fed.toLocaleString("en")} of ${count(shown.bytes.length, "byte")}`;
    const kept = held === 0 ? "nothing is held back" : `${count(held, "byte")} held back: more text decides what that is`;
    const words = `${arrived}; ${kept}${moment.is_over ? "; the text is complete" : ""}`;
    this.#note.textContent = words;
    this.#at.setAttribute("aria-valuetext", words);
    this.#drawText(moment, shown.bytes);
    byId("replay-calls").replaceChildren(known(moment));
  }

  #drawText({ parts, known, fed }: Moment, bytes: Uint8Array): void {
    const from = nextCharacter(bytes, Math.max(fed - BEFORE, 0));
    const behind = nextCharacter(bytes, Math.min(fed + BEHIND, bytes.length));
    const pieces = parts.filter(({ end }) => end > from).map((part) => {
      const span = make("span", `bytes ${part.kind}`, decode(bytes.subarray(Math.max(part.start, from), part.end)));
      span.title = KINDS_OF_BYTES[part.kind][0];
      return span;
    });
    const held = make("mark", "held-back", readable(bytes, known, fed));
    held.title = "held back";
    const rest = make("span", "not-arrived", readable(bytes, fed, behind));
    const text = byId("replay-text");
    text.replaceChildren(...(from > 0 ? ["…"] : []), ...pieces, ...(fed > known ? [held] : []), make("span", "now"), rest);
    text.querySelector(".now")?.scrollIntoView({ block: "nearest" });
  }

  async #tryEverySplit(): Promise<void> {
    const shown = this.#shown;
    if (shown === null) return;
    const version = this.#version;
    const note = byId("splits-note");
    this.#splits.disabled = true;
    this.#stop.hidden = false;
    let from = 0;
    let amount = 1;
    for (;;) {
      const begun = performance.now();
      const { total, tried, splits, difference } = this.#core.about<Tried>("splits", shown.settings, shown.read, { from, count: amount });
      if (version !== this.#version) return;
      from += tried;
      const isOver = difference !== null || from >= total;
      note.className = difference === null ? (isOver ? "ok" : "") : "error";
      if (difference !== null) note.textContent = seen(`✗ ${difference}. Please report this as a bug.`);
      else if (isOver) note.textContent = `✓ The result is the same for all chunk boundaries that were tested: ${count(from, "split")} (${splits}).`;
      else note.textContent = `${from.toLocaleString("en")} of ${count(total, "split")}, no difference so far…`;
      if (isOver) break;
      if (this.#stop.hidden) {
        note.textContent = `Stopped after ${from.toLocaleString("en")} of ${count(total, "split")}: no difference so far.`;
        break;
      }
      const factor = SLICE / Math.max(performance.now() - begun, 1);
      amount = Math.max(Math.round(amount * Math.min(factor, 8)), 1);
      await new Promise((resolve) => setTimeout(resolve));
      if (version !== this.#version) return;
    }
    this.#stop.hidden = true;
    this.#splits.disabled = false;
  }
}

/** The calls that are known at a moment. */
function known({ calls: found }: Moment): HTMLElement {
  if (found.length === 0) return make("p", "hint", "No call is known yet.");
  return make("ol", "known", null, ...found.map(({ name, id, values, is_complete: isComplete }) => make("li", "", null,
    make("span", "name", name), " ", make("span", "id", id ?? ""), " ",
    make("span", isComplete ? "badge ok" : "badge interrupted", isComplete ? "✓ complete" : "… is being written"),
    make("ul", "members", null, ...values.map(([pointer, text]) => make("li", "", null, make("span", "pointer", pointer ?? "(body)"), " ", make("code", "", text)))),
  )));
}
