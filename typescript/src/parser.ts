import { checkChunk, Halves, MOST_PIECE, pieces, type Chunk } from "./chunk.js";
import { core, Open, type Core, type OpenContent } from "./core.js";
import type { Dialect } from "./dialect.js";
import { PlaincallError } from "./errors.js";
import { readEvents, type Event } from "./events.js";

declare global {
  // Programs compile without the types of the DOM and of newer libraries: these are merged with them, if there are any.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
  }
  interface Disposable {
    [Symbol.dispose](): void;
  }
  interface TransformStream<I = any, O = any> {}
}

/**
 * Finds calls in a text while it arrives.
 *
 * The events are the same for every split, except for where text is split. No text is an error.
 *
 * ```ts
 * const parser = new Parser({ syntax: "block" });
 * for (const event of parser.feed("!!!GADGET_START:read\n")) console.log(event.type);
 * parser.finish();
 * ```
 */
export class Parser implements Disposable {
  #core: Core = core();
  #object: number | undefined;
  #halves: Halves = new Halves();
  /** The length of the text so far, in bytes. */
  #fed = 0;
  #open: OpenContent = { kind: Open.unknown, first: [0, 0, 0, 0] };
  /** The length of the content since the last call of the core, whose events it need not make. */
  #advanced = 0;
  /** The line end after this content, which may belong to a marker. */
  #lineEnd: "" | "\n" = "";

  /** Creates a parser for one text. Throws a `DialectError` for options that cannot be used together. */
  constructor(dialect: Dialect = {}) {
    this.#object = this.#core.perform<number>({ parser: { dialect } });
    this.#core.registry.register(this, this.#object, this);
  }

  /** Reads the next chunk, and returns its events. Throws a `PlaincallError` after 4 GiB. */
  feed(chunk: Chunk): Event[] {
    const object = this.#known();
    if (isContent(this.#open, chunk) && this.#halves.isEmpty) return this.#advance(chunk);
    const joined = this.#halves.join(chunk);
    const before = this.#feedLineEnd(object);
    if (before.length === 0 && joined.length <= MOST_PIECE) return this.#feed(object, joined);
    return [...before, ...pieces(joined).flatMap((piece) => this.#feed(object, piece))];
  }

  /** Returns the event of a chunk that is content. A call of the core costs more than most chunks of a model. */
  #advance(chunk: string): Event[] {
    const { kind } = this.#open;
    const endsLine = kind === Open.line && chunk.charCodeAt(chunk.length - 1) === LINE_FEED;
    const text = this.#lineEnd + (endsLine ? chunk.slice(0, -1) : chunk);
    this.#lineEnd = endsLine ? "\n" : "";
    if (text === "") return [];
    const start = this.#fed;
    const end = start + text.length;
    this.#count(text.length);
    this.#advanced += text.length;
    return [{ type: kind === Open.text ? "text" : "value_delta", text, start, end, source: text }];
  }

  #count(length: number): void {
    this.#fed += length;
    if (this.#fed > MOST_TEXT) throw new PlaincallError(`a text may have at most ${MOST_TEXT} bytes`);
  }

  #feedLineEnd(object: number): Event[] {
    if (this.#lineEnd === "") return [];
    this.#lineEnd = "";
    return this.#feed(object, "\n");
  }

  #feed(object: number, chunk: Chunk): Event[] {
    const output = this.#core.feed(object, chunk, this.#advanced);
    this.#advanced = 0;
    this.#core.readOpenContent(this.#open);
    this.#count(output.fed);
    return readEvents(output, undefined, chunk, this.#fed);
  }

  /** Ends the text, and returns its last events. */
  finish(): Event[] {
    const object = this.#known();
    const rest = [...this.#feedLineEnd(object), ...this.#feed(object, this.#halves.rest())];
    this.#forget();
    return [...rest, ...readEvents(this.#core.performRaw({ finish: { object } }))];
  }

  [Symbol.dispose](): void {
    if (this.#object !== undefined) this.#core.release(this.#object);
    this.#forget();
  }

  #forget(): void {
    this.#core.registry.unregister(this);
    this.#object = undefined;
  }

  #known(): number {
    this.#core.check();
    if (this.#object === undefined) {
      throw new PlaincallError("the parser is finished; create another one for the next text");
    }
    return this.#object;
  }
}

/** The maximum length of a text, in bytes: places have 32 bits. */
const MOST_TEXT = 2 ** 32 - 1;
/** The maximum length of a chunk that is examined here; the core is faster for longer ones. */
const MOST_EXAMINED = 64;

const [LINE_FEED, CARRIAGE_RETURN] = [10, 13];

/** Whether a chunk is content: ASCII in which no marker begins (`OpenContent::content_len` of the parser). */
function isContent({ kind, first }: OpenContent, chunk: Chunk): chunk is string {
  if (kind === Open.unknown || typeof chunk !== "string") return false;
  const { length } = chunk;
  if (length === 0 || length > MOST_EXAMINED) return false;
  for (let at = 0; at < length; at++) {
    const code = chunk.charCodeAt(at);
    if (code > 127 || (first[code >> 5]! >>> (code & 31)) & 1) return false;
  }
  // Not even the beginning of a line end of two characters is known to be content.
  return kind !== Open.line || (chunk.charCodeAt(length - 1) !== CARRIAGE_RETURN && !chunk.endsWith("\r\n"));
}

/** A `ReadableStream`. */
export interface ChunkStream {
  getReader(): ChunkReader;
}

/** The reader of a `ReadableStream`. */
export interface ChunkReader {
  read(): Promise<{ done: boolean; value?: Chunk | undefined }>;
  cancel(): Promise<void>;
  releaseLock(): void;
}

/** A text that arrives in chunks, such as `response.body` or an array, or a whole one. */
export type Chunks = Chunk | AsyncIterable<Chunk> | Iterable<Chunk> | ChunkStream;

/** Yields the events of a text that arrives in chunks, each as soon as it is known. Default dialect: automatic. */
export async function* events(chunks: Chunks, dialect: Dialect = {}): AsyncGenerator<Event, void, undefined> {
  if (typeof chunks !== "object" || chunks === null) checkChunk(chunks);
  const parser = new Parser(dialect);
  try {
    for await (const chunk of iterated(chunks)) yield* parser.feed(chunk);
    yield* parser.finish();
  } finally {
    parser[Symbol.dispose]();
  }
}

/** Some browsers cannot iterate over streams. */
async function* iterated(chunks: Chunks): AsyncGenerator<Chunk, void, undefined> {
  if (typeof chunks === "string" || chunks instanceof Uint8Array) {
    yield chunks;
    return;
  }
  if (Symbol.asyncIterator in chunks || Symbol.iterator in chunks) {
    yield* chunks;
    return;
  }
  const reader = chunks.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || value === undefined) return;
      yield value;
    }
  } finally {
    await reader.cancel();
    reader.releaseLock();
  }
}

/** A stream from chunks to events, for `stream.pipeThrough(...)`. */
export type EventStream = TransformStream<Chunk, Event>;

/** Creates a stream from chunks to events. Default dialect: automatic. */
export const EventStream: new (dialect?: Dialect) => EventStream = class extends TransformStream<Chunk, Event> {
  constructor(dialect: Dialect = {}) {
    const parser = new Parser(dialect);
    super({
      transform(chunk, controller) {
        for (const event of parser.feed(chunk)) controller.enqueue(event);
      },
      flush(controller) {
        for (const event of parser.finish()) controller.enqueue(event);
      },
    });
  }
};
