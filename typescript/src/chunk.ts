import { PlaincallError } from "./errors.js";

/** A piece of a text: a string, or bytes of UTF-8. The bytes of a character may come in two chunks. */
export type Chunk = string | Uint8Array;

const encoder = new TextEncoder();

/** Throws an error for anything but a string and bytes, such as an `ArrayBuffer`. */
export function checkChunk(chunk: Chunk): void {
  if (typeof chunk === "string" || chunk instanceof Uint8Array) return;
  const found = Object.prototype.toString.call(chunk).slice("[object ".length, -1);
  throw new PlaincallError(`expected a string or a Uint8Array, found ${found}`);
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
