import { Halves, MOST_PIECE, pieces, type Chunk } from "./chunk.js";
import { core, type Core } from "./core.js";
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

  /** Creates a parser for one text. Throws a `DialectError` for options that cannot be used together. */
  constructor(dialect: Dialect = {}) {
    this.#object = this.#core.perform<number>({ parser: { dialect } });
    this.#core.registry.register(this, this.#object, this);
  }

  /** Reads the next chunk, and returns its events. */
  feed(chunk: Chunk): Event[] {
    const object = this.#known();
    const joined = this.#halves.join(chunk);
    if (joined.length <= MOST_PIECE) return this.#feed(object, joined);
    return pieces(joined).flatMap((piece) => this.#feed(object, piece));
  }

  #feed(object: number, chunk: Chunk): Event[] {
    const output = this.#core.feed(object, chunk);
    this.#fed += output.fed;
    return readEvents(output, undefined, chunk, this.#fed);
  }

  /** Ends the text, and returns its last events. */
  finish(): Event[] {
    const object = this.#known();
    const rest = readEvents(this.#core.feed(object, this.#halves.rest()));
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
    if (this.#object === undefined) {
      throw new PlaincallError("the parser is finished; create another one for the next text");
    }
    return this.#object;
  }
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
