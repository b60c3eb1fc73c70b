import type { Given, Settings } from "./model.js";

/** The functions that the module exports (`core/src/lib.rs`). */
interface Exports {
  memory: WebAssembly.Memory;
  input(length: number): number;
  output(): number;
  perform(operationLength: number, toolsLength: number): number;
}

const encoder = new TextEncoder();
/** A byte order mark is text. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export const encode = (text: string): Uint8Array => encoder.encode(text);
export const decode = (bytes: Uint8Array): string => decoder.decode(bytes);

/** The module inside the page: everything that the page knows about texts comes from it. */
export class Core {
  readonly #exports: Exports;

  private constructor(exports: Exports) {
    this.#exports = exports;
  }

  static async load(module: string): Promise<Core> {
    const bytes = await inflate(fromBase64(module));
    if (typeof WebAssembly === "undefined") throw new Error("This page needs WebAssembly, which this browser does not have or does not allow.");
    const { instance } = await WebAssembly.instantiate(bytes);
    return new Core(instance.exports as unknown as Exports);
  }

  /** Performs an operation. An error has a message for people. */
  perform<T>(operation: object, given: Given): T {
    const parts = [encode(JSON.stringify(operation)), encode(given.tools), given.bytes] as const;
    const [json, tools] = parts;
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    let at = this.#exports.input(length);
    const memory = new Uint8Array(this.#exports.memory.buffer);
    for (const part of parts) {
      memory.set(part, at);
      at += part.length;
    }
    const status = this.#exports.perform(json.length, tools.length);
    // The memory may have grown, which makes new views necessary.
    const { buffer } = this.#exports.memory;
    const [start = 0, size = 0] = new Uint32Array(buffer, this.#exports.output(), 2);
    const output: unknown = JSON.parse(decode(new Uint8Array(buffer, start, size)));
    if (status !== 0) throw new Error(String(output));
    return output as T;
  }

  /** The same about a reply. */
  about<T>(operation: string, settings: Settings, given: Given, more: object = {}): T {
    return this.perform<T>({ operation, settings, ...more }, given);
  }
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}

/** A text that would be longer than it may be. */
export class TooLong extends Error {}

export const deflate = (bytes: Uint8Array<ArrayBuffer>) => through(bytes, new CompressionStream("deflate-raw"), Infinity);
/** Decompresses at most so many bytes. */
export const inflate = (bytes: Uint8Array<ArrayBuffer>, most = Infinity) => through(bytes, new DecompressionStream("deflate-raw"), most);

async function through(bytes: Uint8Array<ArrayBuffer>, stream: CompressionStream | DecompressionStream, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(chunks).arrayBuffer());
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new TooLong();
    }
    chunks.push(value);
  }
}
