import type { Shown } from "./model.js";

/** The panels of a reply. Each is made when its view is shown, once for each input. */
export class Panels {
  readonly #makers: Record<string, (shown: Shown) => void>;
  readonly #made = new Set<string>();
  #shown: Shown | null = null;

  constructor(makers: Record<string, (shown: Shown) => void>) {
    this.#makers = makers;
    listeners.view.push((name) => this.#make(name));
  }

  /** Shows a reply, or nothing. */
  show(shown: Shown | null): void {
    this.#shown = shown;
    this.#made.clear();
    this.#make(document.body.dataset["view"] ?? "");
  }

  #make(name: string): void {
    const make = this.#makers[name];
    if (make === undefined || this.#shown === null || this.#made.has(name)) return;
    this.#made.add(name);
    make(this.#shown);
  }
}
