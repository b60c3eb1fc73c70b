import "./globals.js";
import { Halves, MOST_PIECE, pieces, type Chunk } from "./chunk.js";
import { core, Open, type Core, type OpenContent } from "./core.js";
import type { Dialect } from "./dialect.js";
import { PlaincallError, wrongType } from "./errors.js";
import { readEvents, type ParserEvent } from "./events.js";

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
export class Parser {
  #core: Core = core();
  #object: number | undefined;
  #halves: Halves = new Halves();
  #content: Content = new Content();

  /** Creates a parser for one text. Throws a `DialectError` for options that cannot be used together. */
  constructor(dialect: Dialect = {}) {
    this.#object = this.#core.perform<number>({ parser: { dialect } });
    this.#core.registry.register(this, this.#object, this);
  }

  /** Reads the next chunk, and returns its events. Throws a `PlaincallError` after 4 GiB. */
  feed(chunk: Chunk): ParserEvent[] {
    const object = this.#known();
    const length = this.#content.lengthOf(chunk);
    if (length > 0 && this.#halves.isEmpty) return this.#content.advance(chunk as string, length);
    const joined = this.#halves.join(chunk);
    const before = this.#feedLineEnd(object);
    if (before.length === 0 && joined.length <= MOST_PIECE) return this.#feed(object, joined);
    return [...before, ...pieces(joined).flatMap((piece) => this.#feed(object, piece))];
  }

  #feedLineEnd(object: number): ParserEvent[] {
    if (this.#content.lineEnd === "") return [];
    this.#content.lineEnd = "";
    return this.#feed(object, "\n");
  }

  #feed(object: number, chunk: Chunk): ParserEvent[] {
    const content = this.#content;
    const output = this.#core.feed(object, chunk, content.advanced);
    content.advanced = 0;
    this.#core.readOpenContent(content.open);
    content.count(output.fed);
    return readEvents(output, undefined, chunk, content.fed);
  }

  /** Ends the text, and returns its last events. */
  finish(): ParserEvent[] {
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

/** @internal The content that continues in a parser or a reader: it makes the events of most chunks itself. */
export class Content {
  readonly open: OpenContent = { kind: Open.unknown, first: [0, 0, 0, 0, 0, 0] };
  /** The length of the text so far, in bytes. */
  fed = 0;
  /** The length of the content since the last call of the core, whose events it need not make, in bytes. */
  advanced = 0;
  /** The line end after this content, which may belong to a marker. */
  lineEnd: "" | "\n" = "";

  /** Returns how many bytes a chunk has if no marker begins in it (`OpenContent::content_len` of the parser), otherwise 0. */
  lengthOf(chunk: Chunk): number {
    const { kind, first } = this.open;
    if (kind === Open.unknown || typeof chunk !== "string") return 0;
    const { length } = chunk;
    if (length > MOST_EXAMINED) return 0;
    let bytes = length;
    for (let at = 0; at < length; at++) {
      const code = chunk.charCodeAt(at);
      let bit = code;
      if (code > 127) {
        const isHalf = code >= 0xd800 && code < 0xe000;
        const character = isHalf ? chunk.codePointAt(at)! : code;
        // A half alone becomes another character.
        if (isHalf && character < 0x10000) return 0;
        // The first byte in UTF-8, from 0xc0 on.
        bit = 128 + (character < 0x800 ? character >> 6 : character < 0x10000 ? 0x20 | (character >> 12) : 0x30 | (character >> 18));
        bytes += character < 0x800 ? 1 : 2;
        if (isHalf) at++;
      }
      if ((first[bit >> 5]! >>> (bit & 31)) & 1) return 0;
    }
    // Not even the beginning of a line end of two characters is known to be content.
    const isOpen = kind === Open.line && (chunk.charCodeAt(length - 1) === CARRIAGE_RETURN || chunk.endsWith("\r\n"));
    return isOpen ? 0 : bytes;
  }

  /** Returns the event of a chunk that is content. A call of the core costs more than most chunks of a model. */
  advance(chunk: string, length: number): ParserEvent[] {
    const { kind } = this.open;
    const endsLine = kind === Open.line && chunk.charCodeAt(chunk.length - 1) === LINE_FEED;
    const text = this.lineEnd + (endsLine ? chunk.slice(0, -1) : chunk);
    const bytes = length + this.lineEnd.length - (endsLine ? 1 : 0);
    this.lineEnd = endsLine ? "\n" : "";
    if (text === "") return [];
    const start = this.fed;
    this.count(bytes);
    this.advanced += bytes;
    return [{ type: kind === Open.text ? "text" : "value_delta", text, start, end: this.fed, source: text }];
  }

  count(length: number): void {
    this.fed += length;
    if (this.fed > MOST_TEXT) throw new PlaincallError(`a text may have at most ${MOST_TEXT} bytes`);
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
export async function* events(chunks: Chunks, dialect: Dialect = {}): AsyncGenerator<ParserEvent, void, undefined> {
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
  const isObject = typeof chunks === "object" && chunks !== null;
  if (isObject && (Symbol.asyncIterator in chunks || Symbol.iterator in chunks)) {
    yield* chunks;
    return;
  }
  if (!isObject || typeof chunks.getReader !== "function") throw wrongType("chunks", "a text, or an iterable or a stream of its chunks", chunks);
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
export type EventStream = TransformStream<Chunk, ParserEvent>;

/** Creates a stream from chunks to events. Default dialect: automatic. */
export const EventStream: new (dialect?: Dialect) => EventStream = class extends TransformStream<Chunk, ParserEvent> {
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
