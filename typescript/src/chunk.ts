import { kindOf, PlaincallError } from "./errors.js";

/** A piece of a text: a string, or bytes of UTF-8. The bytes of a character may come in two chunks. */
export type Chunk = string | Uint8Array;

const encoder = new TextEncoder();

/** Returns a string or bytes. Throws an error for anything else, such as an `ArrayBuffer`. */
export function checkChunk(chunk: Chunk): Chunk {
  if (typeof chunk === "string" || chunk instanceof Uint8Array) return chunk;
  throw new PlaincallError(`expected a string or a Uint8Array, found ${kindOf(chunk)}`);
}

/** The maximum length of a piece that the core gets at once, in bytes or in units of UTF-16. */
export const MOST_PIECE: number = 1 << 20;

/** Cuts a long chunk into pieces, and no character in two. */
export function pieces(chunk: Chunk): Chunk[] {
  const cut: Chunk[] = [];
  for (let at = 0; at < chunk.length; ) {
    let end = Math.min(at + MOST_PIECE, chunk.length);
    if (typeof chunk === "string" && end < chunk.length && isFirstHalf(chunk.charCodeAt(end - 1))) end--;
    cut.push(typeof chunk === "string" ? chunk.slice(at, end) : chunk.subarray(at, end));
    at = end;
  }
  return cut;
}

/** Whether a unit of UTF-16 is the first of two. */
function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

/** Joins characters whose two halves come in two strings: strings have UTF-16, and most emoji are two units of it. */
export class Halves {
  #half = "";

  /** Returns a chunk without the half at its end, after the half of the chunk before. */
  join(chunk: Chunk): Chunk {
    checkChunk(chunk);
    if (typeof chunk !== "string") {
      const half = encoder.encode(this.rest());
      return half.length === 0 ? chunk : new Uint8Array([...half, ...chunk]);
    }
    const whole = this.#half + chunk;
    const isHalf = isFirstHalf(whole.charCodeAt(whole.length - 1));
    this.#half = isHalf ? whole.slice(-1) : "";
    return isHalf ? whole.slice(0, -1) : whole;
  }

  /** Whether the last chunk did not end with a half. */
  get isEmpty(): boolean {
    return this.#half === "";
  }

  /** Returns a half that nothing followed. */
  rest(): string {
    const half = this.#half;
    this.#half = "";
    return half;
  }
}
