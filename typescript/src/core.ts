import { checkChunk } from "./chunk.js";
import { PlaincallError, toError } from "./errors.js";

/** The functions that a WebAssembly module exports (`core/src/lib.rs`). */
interface Exports {
  memory: WebAssembly.Memory;
  input(length: number): number;
  output(): number;
  perform(jsonLength: number, length: number): number;
  feed(object: number, length: number, advanced: number): number;
  release(object: number): number;
}

const encoder = new TextEncoder();
// A byte order mark is text.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const NOTHING = new Uint8Array();
/** The least room for chunks, in bytes. */
const LEAST_ROOM = 4096;
/** The maximum length of the input of an operation, in bytes: its results need several times as much memory, of at most 4 GiB. */
const MOST_INPUT = 64 << 20;

/** A place in the memory of a module, until its next call. */
export interface Output {
  readonly bytes: Uint8Array;
  /** The same memory as numbers of 32 bits. */
  readonly numbers: Int32Array;
  readonly start: number;
  readonly end: number;
  /** The length of the chunk that was fed, in bytes. */
  readonly fed: number;
}

/** The kinds of content, by their numbers in `core/src/state.rs`: only the parser knows, text, a value up to a line end, another value. */
export const Open = { unknown: 0, text: 1, line: 2, value: 3 } as const;

/** The kind of content that continues in a parser. */
export interface OpenContent {
  kind: number;
  /** A bit for each byte with which a marker or an escape may begin: those of ASCII, then the first bytes of other characters. */
  readonly first: number[];
}

/** A WebAssembly module: writes the input of each call to its memory, and reads the output. */
export class Core {
  /** Whether the module has failed. */
  hasFailed = false;
  /** The compiled module. */
  readonly module: WebAssembly.Module;
  #exports: Exports;
  #bytes: Uint8Array = NOTHING;
  #numbers: Int32Array = new Int32Array();
  /** Where the place of the output is, as an index of numbers. */
  #place: number;
  /** Where the input is, and its length. Only calls that are not feeds can move it. */
  #input = 0;
  #room = 0;
  /** Frees the objects of this package that were not disposed of. */
  readonly registry: FinalizationRegistry<number> = new FinalizationRegistry((object) => {
    // Nothing could catch an error of a module that has failed.
    try {
      this.release(object);
    } catch {}
  });

  constructor(module: WebAssembly.Module) {
    this.module = module;
    this.#exports = new WebAssembly.Instance(module).exports as unknown as Exports;
    this.#place = this.#exports.output() >> 2;
  }

  /** Performs an operation with a text, and returns the output as JSON. */
  perform<T>(options: object, text: string | Uint8Array = NOTHING): T {
    const output = this.performRaw(options, text);
    try {
      return JSON.parse(decode(output)) as T;
    } catch (error) {
      // Strings have a maximum length.
      throw new PlaincallError(`the result has ${output.end - output.start} bytes, which are too many`, { cause: error });
    }
  }

  /** Performs an operation, and returns the output. */
  performRaw(options: object, text: string | Uint8Array = NOTHING): Output {
    checkChunk(text);
    checkLength(text.length);
    const json = encoder.encode(toJson(options));
    const rest = typeof text === "string" ? encoder.encode(text) : text;
    const length = json.length + rest.length;
    checkLength(length);
    return this.#guarded(() => {
      const at = this.#reserve(length);
      const memory = this.#memory();
      memory.set(json, at);
      memory.set(rest, at + json.length);
      return this.#checked(this.#exports.perform(json.length, length), length);
    });
  }

  /** Feeds a chunk to an object, and returns the output. The events of `advanced` bytes are known: before it for a parser, and at its beginning for a reader. */
  feed(object: number, chunk: string | Uint8Array, advanced = 0): Output {
    const room = typeof chunk === "string" ? chunk.length * 3 : chunk.length;
    this.check();
    // Repeated from `#guarded`: a function for each chunk takes time.
    try {
      if (room > this.#room) {
        this.#input = this.#reserve(Math.max(room, LEAST_ROOM));
        this.#room = Math.max(room, LEAST_ROOM);
      }
      const length = this.#write(this.#input, chunk);
      return this.#checked(this.#exports.feed(object, length, advanced), length);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /** Reads what continues in the parser that was just fed. */
  readOpenContent(open: OpenContent): void {
    const numbers = this.#numbers;
    const place = this.#place + 2;
    open.kind = numbers[place]!;
    for (let index = 0; index < 6; index++) open.first[index] = numbers[place + 1 + index]!;
  }

  /** Calls the module. After a trap, its state is not known. */
  #guarded<T>(call: () => T): T {
    this.check();
    try {
      return call();
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /** Throws an error if the module has failed. */
  check(): void {
    if (this.hasFailed) throw failed();
  }

  #failure(error: unknown): unknown {
    if (!(error instanceof WebAssembly.RuntimeError)) return error;
    this.hasFailed = true;
    return failed(error);
  }

  /** Returns where the next input is written. */
  #reserve(length: number): number {
    // Even if there is no memory, the earlier place is gone, and views of memory that grew have lost their content.
    this.#room = 0;
    const at = this.#exports.input(length) >>> 0;
    if (at === 0) throw new PlaincallError(`there is no memory for ${length} bytes; dispose of objects that are not needed`);
    return at;
  }

  /** Forgets an object. */
  release(object: number): void {
    if (!this.hasFailed) this.#guarded(() => this.#exports.release(object));
  }

  #memory(): Uint8Array {
    // When memory grows, views of it lose their content.
    if (this.#bytes.length === 0) {
      const { buffer } = this.#exports.memory;
      [this.#bytes, this.#numbers] = [new Uint8Array(buffer), new Int32Array(buffer)];
    }
    return this.#bytes;
  }

  /** Writes a chunk, and returns its length in bytes. */
  #write(at: number, chunk: string | Uint8Array): number {
    const memory = this.#memory();
    if (typeof chunk !== "string") {
      memory.set(chunk, at);
      return chunk.length;
    }
    // Calling an encoder takes longer than most chunks of a model.
    if (chunk.length <= 32) {
      let index = 0;
      for (; index < chunk.length; index++) {
        const code = chunk.charCodeAt(index);
        if (code > 127) break;
        memory[at + index] = code;
      }
      if (index === chunk.length) return index;
    }
    return encoder.encodeInto(chunk, memory.subarray(at, at + chunk.length * 3)).written;
  }

  #checked(status: number, fed: number): Output {
    const bytes = this.#memory();
    const numbers = this.#numbers;
    const start = numbers[this.#place]! >>> 0;
    const output = { bytes, numbers, start, end: start + (numbers[this.#place + 1]! >>> 0), fed };
    if (status !== 0) throw toError(JSON.parse(decode(output)) as { kind: string; message: string });
    return output;
  }
}

function checkLength(length: number): void {
  if (length <= MOST_INPUT) return;
  const instead = "feed a longer text to a `Parser` or a reader";
  throw new PlaincallError(`the input has ${length} bytes or more, and may have at most ${MOST_INPUT}; ${instead}`);
}

function failed(cause?: unknown): PlaincallError {
  const message = "the WebAssembly module has failed, probably for lack of memory; create the toolbox, parser or reader again";
  return new PlaincallError(message, { cause });
}

/** Names an option by its place in the input of an operation, as the core does: `effects.add`, `results[0]`. */
function option(place: string): string {
  const name = place.replace(/^\/((tools|plan|exchange)\/)?\w+\/(settings\/)?/, "");
  const dotted = name.replace(/\/(\d+)(?!\w)/g, "[$1]").replaceAll("/", ".");
  return `\`${dotted.replaceAll("~1", "/").replaceAll("~0", "~")}\``;
}

/**
 * Writes JSON. Throws an error for what has none, such as a number that is not finite; `named` makes its name of a JSON Pointer. Default
 * of what is omitted: `undefined`, as in options.
 */
export function toJson(
  value: unknown,
  Class: typeof PlaincallError = PlaincallError,
  named: (place: string) => string = option,
  isOmitted: (value: unknown, place: string) => boolean = (value) => value === undefined,
): string {
  const places = new Map<object, string>();
  function checked(this: object, key: string, inner: unknown): unknown {
    const before = places.get(this);
    const place = before === undefined ? "" : `${before}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (typeof inner === "object" && inner !== null) places.set(inner, place);
    const isJson = typeof inner === "number" ? Number.isFinite(inner) : /^(object|string|boolean)$/.test(typeof inner);
    if (isJson || isOmitted(inner, place)) return inner;
    throw new Class(`${named(place)}: found ${typeof inner === "number" ? inner : typeof inner}, which JSON does not have`);
  }
  try {
    return toWellFormed(JSON.stringify(value, checked));
  } catch (cause) {
    if (cause instanceof PlaincallError) throw cause;
    throw new Class(`it cannot be written as JSON: ${(cause as Error).message}`, { cause });
  }
}

/** Replaces halves of characters in JSON, which no UTF-8 has, as an encoder of UTF-8 replaces them in a text. */
export function toWellFormed(json: string): string {
  const escapes = /\\(?:\\|u(d[89ab]..)\\u(d[c-f]..)|u(d[89a-f]..))/gi;
  return json.replace(escapes, (escape, _first, _second, half?: string) => (half === undefined ? escape : "\\ufffd"));
}

/** Decodes an output. */
function decode({ bytes, start, end }: Output): string {
  return decoder.decode(bytes.subarray(start, end));
}

/** Where the module of this program comes from. */
let source: { compile: () => WebAssembly.Module; isAll: boolean; version: string } | undefined;
let loaded: Core | undefined;

/** The core of this program: that of the gateway if it was imported, which has the parser too. */
export function core(): Core {
  if (loaded === undefined || loaded.hasFailed) loaded = new Core(loaded?.module ?? compiled());
  return loaded;
}

/** Sets where the module comes from. It is compiled when it is first used. `isAll` is true for that of the gateway. */
export function setModule(compile: () => WebAssembly.Module, isAll: boolean, version: string): void {
  if (source !== undefined && (source.isAll || !isAll)) return;
  [source, loaded] = [{ compile, isAll, version }, undefined];
}

/** Uses a compiled module. Throws a `PlaincallError` if it has another version, or is that of the parser, and the program needs everything. */
export function useModule(module: WebAssembly.Module, isAll: boolean, version: string): void {
  if (source !== undefined && source.version !== version) {
    throw new PlaincallError(`the module has version ${version}, and the package ${source.version}; compile the module of this package`);
  }
  if (source?.isAll && !isAll) throw new PlaincallError("it is the module of `plaincall/parse`; compile `plaincall/gateway.wasm`");
  [source, loaded] = [{ compile: () => module, isAll, version }, undefined];
}

function compiled(): WebAssembly.Module {
  if (source === undefined) throw new PlaincallError("import `plaincall` or `plaincall/parse`, not its internal modules");
  try {
    return source.compile();
  } catch (cause) {
    const file = source.isAll ? "gateway.wasm" : "parse.wasm";
    // The first is an error of a file, the second a policy of a page or a runtime.
    const remedy =
      (cause as { code?: unknown }).code !== undefined
        ? `a bundler has moved the code of the package: keep the package external, copy its \`dist/${file}\` to that place`
        : "a page needs `'wasm-unsafe-eval'` in its Content-Security-Policy";
    const message = `the WebAssembly module cannot be loaded: ${(cause as Error).message}; ${remedy}, or pass a compiled module to \`init\``;
    throw new PlaincallError(message, { cause });
  }
}
