/** A piece of a text: a string, or bytes of UTF-8. The bytes of a character may come in two chunks. */
export type Chunk = string | Uint8Array;

/** Joins characters whose two halves come in two strings: strings have UTF-16, and most emoji are two units of it. */
export class Halves {
  #half = "";

  /** Returns a chunk without the half at its end, after the half of the chunk before. */
  join(chunk: Chunk): Chunk {
    if (typeof chunk !== "string") return chunk;
    const whole = this.#half + chunk;
    const last = whole.charCodeAt(whole.length - 1);
    const isHalf = last >= 0xd800 && last < 0xdc00;
    this.#half = isHalf ? whole.slice(-1) : "";
    return isHalf ? whole.slice(0, -1) : whole;
  }

  /** Returns a half that nothing followed. */
  rest(): string {
    const half = this.#half;
    this.#half = "";
    return half;
  }
}
