/** Native tool calls for clients of the OpenAI and Anthropic APIs, without a server: a `fetch` that translates their requests. */

import { MOST_PIECE, pieces } from "./chunk.js";
import { core, type Core, type Output } from "./core.js";
import { checkRecord, PlaincallError } from "./errors.js";
import type { Engine } from "./tools.js";

export { init, type CompiledModule } from "./init.js";
export { DefinitionError, DialectError, GrammarError, PlaincallError, RenderError } from "./errors.js";

/**
 * The settings of a model: the keys of a table `[models.NAME]` of a configuration file, which `docs/configuration.md` describes, in camel
 * case; names as in the file are accepted too. The defaults work for unknown models. Those of the model server's place and key have no
 * effect here.
 */
export interface FetchSettings {
  url?: string | undefined;
  replay?: string | undefined;
  kind?: string | undefined;
  model?: string | undefined;
  keyEnv?: string | undefined;
  keyFile?: string | undefined;
  headers?: Record<string, string> | undefined;
  temperature?: number | undefined;
  maxTokens?: number | undefined;
  extra?: Record<string, unknown> | undefined;
  syntax?: "block" | "emoji" | undefined;
  startPrefix?: string | undefined;
  endPrefix?: string | undefined;
  argPrefix?: string | undefined;
  markersAnywhere?: boolean | undefined;
  selfClosing?: boolean | undefined;
  reasoning?: [open: string, close: string] | boolean | undefined;
  inReasoning?: boolean | undefined;
  unclosed?: "reject" | "run" | undefined;
  keyed?: boolean | undefined;
  mode?: "text" | "native" | undefined;
  formats?: string[] | undefined;
  constrain?: "never" | "auto" | Engine | undefined;
  arguments?: "checked" | "stream" | undefined;
  repairRounds?: number | undefined;
  developerRole?: boolean | undefined;
  systemAnywhere?: boolean | undefined;
  listedTools?: string[] | undefined;
  hiddenTools?: string[] | undefined;
  descriptionLength?: number | undefined;
  fewShot?: number | undefined;
  examples?: Record<string, unknown>[] | undefined;
}

/** The type of the global `fetch`. */
export type Fetch = typeof globalThis extends { fetch: infer Global } ? Global : (input: any, init?: any) => Promise<any>;

/** What is not a setting of the model. */
export interface FetchOptions extends FetchSettings {
  /** Sends the requests. Default: the global `fetch`. */
  fetch?: Fetch | undefined;
  /** 32 random bytes (at least 16), the same in all processes that serve one conversation. Default: new ones. */
  secret?: Uint8Array | undefined;
  /** Called for each tool that could not be offered unchanged. Default: a warning on the console. */
  onChangedTool?: ((tool: ChangedTool) => void) | undefined;
}

/** A tool that could not be offered unchanged. */
export interface ChangedTool {
  /** The JSON Pointer of the tool in the request. */
  at: string;
  /** Whether it was dropped, and not loosened. */
  isDropped: boolean;
  /** The sentence for a log, without content of the request. */
  message: string;
}

interface ErrorResponse {
  status: number;
  headers: [name: string, value: string][];
  body: string;
}

type Ask =
  | { kind: "unchanged" }
  | { kind: "renamed"; body: string }
  | ({ kind: "asked" } & Asked)
  | { kind: "countTokens"; object: number }
  | ({ kind: "response" } & ErrorResponse);

interface Asked {
  object: number;
  target: string;
  isStreamed: boolean;
  /** How long to wait for the usage after the end of a reply, in milliseconds, without the time that the client needs to read. */
  usageWait: number;
  changedTools: ChangedTool[];
}

interface End {
  bytes: string;
  isRepaired: boolean;
  response: ErrorResponse | null;
}

/** The flows of an answer: its reply has ended and the usage may follow, or it need not be read on. */
const [USAGE_ONLY, STOP] = [1, 2];

const encoder = new TextEncoder();

/**
 * Returns a `fetch` for a client library. It translates requests with tools to plain text, and replies back while they arrive, and
 * passes on all others.
 *
 * ```ts
 * const client = new OpenAI({ baseURL: "http://localhost:8080/v1", apiKey: "none", fetch: plaincallFetch() });
 * ```
 *
 * It translates the chat completions and Responses API of OpenAI and the Messages API of Anthropic; the model server needs chat
 * completions only. A request that cannot be translated gets an error response in the format of its API; nothing is passed on
 * untranslated.
 *
 * Throws a `PlaincallError` for invalid settings.
 */
export function plaincallFetch(options: FetchOptions = {}): Fetch {
  // A client has called it with an address.
  if (arguments.length > 1 || typeof options !== "object") {
    throw new PlaincallError("a client needs `fetch: plaincallFetch()`, with parentheses, and not `fetch: plaincallFetch`");
  }
  const { fetch: inner = globalThis.fetch, secret = random(), onChangedTool = warn, ...settings } = checkRecord("options", "an object with settings", options);
  if (typeof inner !== "function") throw new PlaincallError("`fetch` must be a function");
  if (!(secret instanceof Uint8Array)) throw new PlaincallError("`secret` must be a Uint8Array");
  let translation = new Translation(settings, secret);
  return async (input, init) => {
    const given = input instanceof Request ? input : undefined;
    if (translation.core.hasFailed) translation = new Translation(settings, secret);
    const { core } = translation;
    const method = (init?.method ?? given?.method ?? "GET").toUpperCase();
    const url = new URL(given?.url ?? String(input), globalThis.location?.href);
    const headers = new Headers(init?.headers ?? given?.headers);
    const target = url.pathname + url.search;
    if (!translation.applies(method, target)) return inner(input, init);
    const request = new Request(input, init);
    const body = new Uint8Array(await request.arrayBuffer());
    // Another kind of body than bytes has its own type.
    const type = request.headers.get("content-type");
    if (type !== null) headers.set("content-type", type);
    // The client's own signal and options, also those that are not in the standard, such as a proxy.
    const signal = init?.signal ?? given?.signal;
    const send: Send = (body, path, own = signal) =>
      inner(url.origin + (path ?? target), {
        ...optionsOf(given),
        ...init,
        ...{ method, headers: translation.upstreamHeaders(headers, path !== undefined), body, ...(own ? { signal: own } : {}) },
      });
    const asked = translation.ask(target, body);
    switch (asked.kind) {
      case "unchanged":
        return send(body);
      case "renamed":
        return send(asked.body);
      case "response":
        return toResponse(asked);
      case "countTokens":
        return translation.countTokens(asked.object, send, signal);
      case "asked": {
        const exchange = new Exchange(core, asked, send, signal);
        try {
          for (const tool of asked.changedTools) onChangedTool(tool);
        } catch (error) {
          exchange.release();
          throw error;
        }
        return asked.isStreamed ? exchange.streamed() : exchange.complete();
      }
    }
  };
}

/** Sends a body to a target of the model server, or the client's request with another body. */
type Send = (body: BodyInit, path?: string, signal?: AbortSignal | null) => Promise<Response>;

/** Returns the options of a request that its body does not change. */
function optionsOf(request: Request | undefined): RequestInit {
  if (request === undefined) return {};
  const { redirect, credentials, cache, referrerPolicy, keepalive } = request;
  return { redirect, credentials, cache, referrerPolicy, keepalive };
}

function random(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(32));
}

function warn({ message }: ChangedTool): void {
  console.warn(`plaincall: ${message}`);
}

function toResponse({ status, headers, body }: ErrorResponse): Response {
  return new Response(body, { status, headers });
}

/** Translates the requests of one `fetch`. */
class Translation {
  readonly core: Core = core();
  #object: number;

  constructor(settings: FetchSettings, secret: Uint8Array) {
    this.#object = perform(this.core, { create: { settings } }, secret);
    this.core.registry.register(this, this.#object);
  }

  /** Whether the request may be translated. */
  applies(method: string, target: string): boolean {
    return perform(this.core, { translates: { method, target } });
  }

  /** Returns the headers of a request to the model server. */
  upstreamHeaders(headers: Headers, isTranslated: boolean): Headers {
    const given = { object: this.#object, headers: [...headers], isTranslated };
    return new Headers(perform<[name: string, value: string][]>(this.core, { upstreamHeaders: given }));
  }

  ask(target: string, body: Uint8Array): Ask {
    const seed = Array.from(random(), (byte) => byte.toString(16)).join(" ");
    const now = Math.floor(Date.now() / 1000);
    return perform(this.core, { ask: { object: this.#object, target, seed, now } }, body);
  }

  /** Asks the model server for a number of tokens. */
  async countTokens(object: number, send: Send, signal: AbortSignal | null | undefined): Promise<Response> {
    try {
      for (;;) {
        const next = perform<{ target: string; body: string } | null>(this.core, { countRequest: { object } });
        if (next === null) break;
        const isAnswered = await answered(send(next.body, next.target), (chunk) => perform(this.core, { countFeed: { object } }, chunk));
        signal?.throwIfAborted();
        if (!isAnswered) break;
        this.core.performRaw(operation({ countEnd: { object } }));
      }
      return toResponse(perform(this.core, { countResponse: { object } }));
    } finally {
      this.core.release(object);
    }
  }
}

/** Sends a translated request, and repair rounds. */
class Exchange {
  /** The headers of the response to the client. */
  #headers: [name: string, value: string][] = [];
  #core: Core;
  #asked: Asked;
  #send: Send;
  #signal: AbortSignal | null | undefined;
  /** Ends the request to the model server when the client stops reading. */
  #stop: AbortController = new AbortController();
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(core: Core, asked: Asked, send: Send, signal: AbortSignal | null | undefined) {
    [this.#core, this.#asked, this.#send, this.#signal] = [core, asked, send, signal];
    core.registry.register(this, asked.object, this);
  }

  /** Forgets the exchange in the core. */
  release(): void {
    this.#core.registry.unregister(this);
    this.#core.release(this.#asked.object);
  }

  async complete(): Promise<Response> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.#pieces()) {
      if (!(piece instanceof Uint8Array)) return toResponse(piece);
      pieces.push(piece);
    }
    return new Response(new Blob(pieces as BlobPart[]), { headers: this.#headers });
  }

  async streamed(): Promise<Response> {
    const pieces = this.#pieces();
    // An error before any output is the response.
    const first = await pieces.next();
    if (!first.done && !(first.value instanceof Uint8Array)) {
      await pieces.return();
      return toResponse(first.value);
    }
    let next: typeof first | undefined = first;
    const cancel = () => this.#cancel();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = next ?? (await pieces.next());
        next = undefined;
        if (value instanceof Uint8Array) controller.enqueue(value);
        if (done === true || !(value instanceof Uint8Array)) {
          controller.close();
          await pieces.return();
        }
      },
      async cancel() {
        await cancel();
        // Its last step fails, because its answer was cancelled.
        await pieces.return().catch(() => undefined);
      },
    });
    return new Response(body as BodyInit, { headers: this.#headers });
  }

  /** Yields bytes for the client as soon as there are any, or the response that rejects the request. */
  async *#pieces(): AsyncGenerator<Uint8Array | ErrorResponse, void, undefined> {
    const core = this.#core;
    const { object, target } = this.#asked;
    const stop = () => this.#stop.abort(this.#signal?.reason);
    if (this.#signal?.aborted) stop();
    this.#signal?.addEventListener("abort", stop);
    try {
      for (;;) {
        const body = copy(core.performRaw(operation({ body: { object } })));
        let end: End;
        try {
          const upstream = await this.#send(body as BodyInit, target, this.#stop.signal);
          core.performRaw(operation({ begin: { object, status: upstream.status, headers: [...upstream.headers] } }));
          this.#headers = perform(core, { headers: { object } });
          yield* this.#read(upstream);
          end = perform(core, { end: { object, error: null } });
        } catch (error) {
          this.#stop.signal.throwIfAborted();
          const failed = { connectionError: { object, error: String(error) } };
          const ended = error instanceof PlaincallError ? null : perform<End | null>(core, failed);
          if (ended === null) throw error;
          end = ended;
        }
        if (end.bytes !== "") yield encoder.encode(end.bytes);
        if (end.response !== null) yield end.response;
        if (!end.isRepaired) return;
      }
    } finally {
      this.#signal?.removeEventListener("abort", stop);
      this.release();
    }
  }

  /** Ends the answer, and sends no further request. */
  async #cancel(): Promise<void> {
    this.#stop.abort();
    await this.#reader?.cancel().catch(() => undefined);
  }

  /** Feeds an answer, and yields the bytes for the client. */
  async *#read(upstream: Response): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = upstream.body?.getReader();
    this.#reader = reader;
    let [flow, wait]: [number | undefined, number] = [0, this.#asked.usageWait];
    try {
      for (;;) {
        const begun = performance.now();
        const read: Promise<typeof DONE> = reader?.read() ?? Promise.resolve(DONE);
        const { done, value } = await (flow === USAGE_ONLY ? within(wait, read, DONE) : read);
        if (flow === USAGE_ONLY) wait -= performance.now() - begun;
        this.#stop.signal.throwIfAborted();
        if (done || value === undefined) return;
        for (const cut of value.length <= MOST_PIECE ? [value] : pieces(value)) {
          const output = this.#core.feed(this.#asked.object, cut);
          flow = output.bytes[output.start];
          const piece = copy(output, 1);
          if (piece.length > 0) yield piece;
          if (flow === STOP) return;
        }
      }
    } finally {
      // Without an error if the answer was read to its end. Nothing waits for a server that does not end it.
      reader?.cancel().catch(() => undefined);
    }
  }
}

/** Reads an answer as far as `feed` wants. Returns whether there is one that is not an error. */
async function answered(sent: Promise<Response>, feed: (chunk: Uint8Array) => boolean): Promise<boolean> {
  try {
    const answer = await sent;
    const reader = answer.body?.getReader();
    for (let isOpen = answer.ok; isOpen && reader !== undefined; ) {
      const { done, value } = await reader.read();
      if (done) return true;
      isOpen = feed(value);
    }
    await reader?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}

const DONE: { done: boolean; value?: Uint8Array | undefined } = { done: true };

/** Waits at most so many milliseconds, and returns another value then. */
async function within<T>(most: number, promise: Promise<T>, otherwise: T): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(resolve, Math.max(most, 0), otherwise);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the bytes of an output, from an index on. */
function copy({ bytes, start, end }: Output, from = 0): Uint8Array {
  return bytes.slice(start + from, end);
}

/** An operation by its name, with its options. */
type ExchangeOperation = { [name: string]: object };

function operation(exchange: ExchangeOperation): object {
  return { exchange };
}

function perform<T>(core: Core, exchange: ExchangeOperation, text?: Uint8Array): T {
  return core.perform<T>(operation(exchange), text);
}
