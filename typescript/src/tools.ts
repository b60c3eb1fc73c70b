import "./globals.js";
import { core, toJson, toWellFormed, type Core } from "./core.js";
import type { Dialect } from "./dialect.js";
import { toCall, toDocument, type Call, type Json, type ParsedDocument, type Stop } from "./document.js";
import { CALLS, checkRecord, DefinitionError, listOf, PlaincallError, RenderError, wrongType } from "./errors.js";
import type { ExecutedResult } from "./execute.js";
import { readEvents, type ParserEvent, type TextEvent } from "./events.js";
import { Content } from "./parser.js";
import { checkChunk, Halves, MOST_PIECE, pieces, type Chunk } from "./chunk.js";
import { describe, isStandard, toJsonSchema, type Input, type JsonSchema, type Output, type StandardSchema } from "./schema.js";

/**
 * What a call does: `read` changes nothing, `idempotent` may be repeated, `write` is anything else. It decides which calls
 * without an end marker may run.
 */
export type Effect = "read" | "idempotent" | "write";

/** What a tool is made of. */
export interface ToolOptions<Schema extends StandardSchema | JsonSchema, Result, Name extends string = string> {
  /** The name. In a record of tools, the key is the name. */
  name?: Name | undefined;
  description?: string | undefined;
  /** The arguments: a schema of zod, valibot or arktype, or a JSON Schema. */
  input: Schema;
  /** The JSON Schema of the arguments, for schemas of libraries that cannot write it. */
  parameters?: JsonSchema | undefined;
  /** Default: `write`. */
  effect?: Effect | undefined;
  /** Whether no other call may run at the same time. Default: false. */
  exclusive?: boolean | undefined;
  /** Runs a call. */
  execute?: ((input: Output<Schema>, context: ToolContext) => Result | Promise<Result>) | undefined;
}

/** The type of the global `AbortSignal`. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer Global } } ? Global : any;

/** What the function of a tool gets in addition to its input. */
export interface ToolContext {
  /** Aborted when the result is not needed any more. */
  readonly signal?: Signal | undefined;
}

/** A tool: a definition, and the function that runs it if it has one. */
export interface Tool<Arguments = unknown, Result = unknown, Name extends string = string> {
  readonly name: Name;
  readonly description: string;
  /** The JSON Schema of the arguments. */
  readonly parameters: JsonSchema;
  readonly effect: Effect;
  /** Whether no other call may run at the same time. */
  readonly exclusive?: boolean | undefined;
  /** Validates the arguments of a call by the schema of the tool, and runs it. */
  run(arguments_: Json | Arguments, context?: ToolContext): Promise<Result>;
  /** Only for types. */
  readonly "~types"?: { readonly arguments: Arguments; readonly result: Result } | undefined;
}

/** Tools: a list of tools and definitions, or tools by name. */
export type ToolCollection = Iterable<Tool<any, any> | ToolDefinition> | { readonly [name: string]: Tool<any, any> };

/** The tools of a collection, with their names. */
type Named<Tools> =
  Tools extends Iterable<infer One>
    ? One
    : { [Name in keyof Tools & string]: Tools[Name] extends Tool<infer Arguments, infer Result> ? Tool<Arguments, Result, Name> : never }[keyof Tools & string];

/** A call of a tool. A call that may run has arguments. */
type KnownCall<One> =
  One extends Tool<infer Arguments, any, infer Name>
    ? Call<Name, Arguments> & ({ readonly mayRun: true; readonly arguments: Arguments } | { readonly mayRun: false })
    : Call;

/** The result of a call of a tool. */
type ResultOfTool<One> =
  One extends Tool<any, infer Result, infer Name>
    ? ExecutedResult<Name, Result> & { readonly status: "ok"; readonly value: Result }
    : ExecutedResult;

/** The result of a call of one of these tools, narrowed by its status and its name. */
export type ResultOf<Tools> = 0 extends Tools & 1
  ? ExecutedResult
  : ResultOfTool<Named<Tools>> | (ExecutedResult & { readonly status: "error" | "skipped" | "rejected" });

/** A call in a reply, narrowed by its name: of one of these tools, or an invalid one of an unknown tool. */
export type CallOf<Tools> = 0 extends Tools & 1 ? Call : KnownCall<Named<Tools>> | (Call<string, never> & { readonly mayRun: false });

/**
 * A definition in the format of the OpenAI API (chat completions and Responses), the Anthropic API or MCP. A custom tool of OpenAI is
 * a `DefinitionError`, because it has no arguments.
 */
export type ToolDefinition =
  | { type: "function"; function: { name: string; description?: string | undefined; parameters?: object | undefined } }
  | { type: "function"; name: string; description?: string | null | undefined; parameters: object | null }
  | { type: "custom"; custom: { name: string } }
  | { name: string; description?: string | undefined; input_schema: object }
  | { name: string; description?: string | undefined; inputSchema: object };

/** A result of a call. */
export interface Result {
  /** The id of the call. */
  id: string;
  /** The name of the tool. */
  name?: string | undefined;
  /** The output of the tool. */
  output?: string | undefined;
  /** The error, as a sentence for the model. */
  error?: string | undefined;
  /** Default: `error` if there is an error, otherwise `ok`. */
  status?: "ok" | "error" | "skipped" | "rejected" | "cancelled" | "unknown" | undefined;
}

/** A call of another program: of a chat completion or a response of the OpenAI API, or a block of a message of the Anthropic API. */
export type ClientCall =
  | { type?: string | undefined; id?: string | undefined; function: { name: string; arguments: string } }
  | { type?: string | undefined; id?: string | undefined; call_id?: string | undefined; name: string; arguments: string }
  | { type?: string | undefined; id?: string | undefined; name: string; input: unknown };

/** A grammar with which an inference engine keeps a model from writing invalid calls. */
export interface Grammar {
  /** The grammar in the notation of the engine. */
  readonly text: string;
  /** The keywords of the schemas that the grammar does not enforce, one sentence each. */
  readonly notes: readonly string[];
  /** The fields to add to a chat request. */
  readonly requestFields: { readonly [field: string]: Json };
}

/** The options of a grammar. */
export interface GrammarOptions {
  /** Default: `auto`, prose and calls. */
  choice?: "auto" | "required" | "none" | undefined;
  /** Requires a call of this tool. */
  only?: string | undefined;
  /** Whether at most one call is allowed. Default: false. */
  oneCall?: boolean | undefined;
  /** Whether calls may have ids and dependencies. Default: false. */
  ids?: boolean | undefined;
}

/** The name of an inference engine. */
export type Engine = "llama.cpp" | "vllm" | "sglang" | "xgrammar" | "llguidance";

/** The options of a prompt. */
export interface PromptOptions {
  /** Whether to ask for at most one call in a reply. Default: false. */
  oneCall?: boolean | undefined;
  /** Whether to omit ids and dependencies. Default: false. */
  withoutDependencies?: boolean | undefined;
  /** The maximum length of each description, in characters. Default: no limit. */
  descriptionLength?: number | undefined;
}

/** The options of a toolbox. */
export interface ToolboxOptions {
  /**
   * Default: block with escapes, so that no tool output can forge a call. Calls in reasoning at the beginning of a reply, between
   * `<think>` and `</think>` unless the dialect has other markers, are ignored.
   */
  dialect?: Dialect | undefined;
  /** The effects of tools by name. A definition has the effect `write`. */
  effects?: { readonly [name: string]: Effect } | undefined;
  /**
   * What happens to calls without an end marker. `reject`, the default: they must not run, except block calls whose tool only reads, and one
   * at the natural end of a text whose last value has one line. `run`: they run if the next call or the end of a complete text
   * ended them, for models that forget end markers.
   */
  unclosed?: "reject" | "run" | undefined;
}

/**
 * Makes a tool.
 *
 * ```ts
 * const add = tool({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   input: z.object({ a: z.number(), b: z.number() }),
 *   effect: "read",
 *   execute: ({ a, b }) => a + b,
 * });
 * ```
 *
 * Throws a `DefinitionError` without a schema, and for one without a JSON Schema.
 */
export function tool<const Name extends string, Schema extends StandardSchema | JsonSchema, Result = unknown>(
  options: ToolOptions<Schema, Result, Name>,
): Tool<Input<Schema>, Result, Name> {
  checkRecord("options", "the options of a tool", options);
  const { name = "" as Name, description = "", input, effect = "write", exclusive = false, execute } = options;
  if (!(Object(input) === input)) {
    const which = name === "" ? "a tool" : `the tool \`${name}\``;
    throw new DefinitionError(`${which} needs an \`input\`: a schema of zod, valibot or arktype, or a JSON Schema`);
  }
  return {
    name,
    description,
    parameters: options.parameters ?? toJsonSchema(name, input),
    effect,
    exclusive,
    async run(given, context = {}) {
      if (execute === undefined) throw new PlaincallError(failure("no_function", this.name));
      let value = given as Output<Schema>;
      if (isStandard(input)) {
        const result = await input["~standard"].validate(given);
        if (result.issues !== undefined) throw new PlaincallError(`\`${this.name}\`: ${describe(result.issues)}`);
        value = result.value as Output<Schema>;
      }
      // Another call may have aborted it during the validation.
      context.signal?.throwIfAborted();
      return await execute(value, context);
    },
  };
}

/** @internal Returns the sentence for the model about a call without a result. */
export function failure(
  name: "not_approved" | "approval" | "timed_out" | "failed" | "unwritable" | "no_function",
  detail = "",
): string {
  return core().perform<string>({ plan: { failure: { name, detail } } });
}

/** Tools in one dialect: writes the system prompt, reads replies, and writes results and repair messages. */
export class Toolbox<Tools extends ToolCollection = any> {
  /** @internal */
  readonly core: Core = core();
  /** @internal The calls that this toolbox has read and validated. */
  readonly own: WeakSet<object> = new WeakSet();
  #object: number | undefined;
  /** The tools by name, in order. */
  readonly tools: ReadonlyMap<string, Tool>;
  /** The dialect, with the markers around reasoning. */
  readonly dialect: Dialect;

  /** Reads the definitions of tools. Throws a `DefinitionError` with all problems of the definitions. */
  constructor(tools: Tools, options: ToolboxOptions = {}) {
    checkRecord("options", "the options of a toolbox", options);
    const { dialect = { syntax: "block", escaped: true }, unclosed = "reject" } = options;
    const given = Object.entries(checkRecord("effects", "an object with the effects of tools by name", options.effects ?? {}));
    const own = new Map<string, Tool>();
    const definitions: object[] = [];
    for (const one of listed(tools)) {
      if (isTool(one)) {
        own.set(one.name, one);
        definitions.push(definition(one));
      } else {
        definitions.push(one);
      }
    }
    const named = [...own.values()].map(({ name, effect }) => [name, effect] as const);
    // Unlike an assignment, this works for any name.
    const effects = Object.fromEntries([...named, ...given]);
    type Created = { object: number; tools: Omit<Tool, "run">[]; reasoning: [open: string, close: string] | null };
    const create = { tools: { create: { effects, dialect, unclosed } } };
    const created = withInput([...own.keys()], definitions, () => this.core.perform<Created>(create, definitionsToJson(definitions)));
    this.#object = created.object;
    this.core.registry.register(this, created.object, this);
    const leadingReasoning = dialect.reasoning === undefined ? (created.reasoning ?? undefined) : undefined;
    this.dialect = { ...dialect, leadingReasoning };
    this.tools = new Map(
      created.tools.map((one) => [one.name, own.get(one.name) ?? tool({ ...one, input: one.parameters })]),
    );
    const unknown = given.find(([name]) => !this.tools.has(name));
    if (unknown !== undefined) throw new DefinitionError(`unknown tool \`${unknown[0]}\` in \`effects\``);
  }

  #perform<T>(name: string, options: object = {}, text: Chunk = ""): T {
    if (this.#object === undefined) throw disposed();
    return this.core.perform<T>({ tools: { [name]: { ...options, object: this.#object } } }, text);
  }

  /** @internal Plans calls with these tools. */
  plan<T>(options: object): T {
    if (this.#object === undefined) throw disposed();
    return this.core.perform<T>({ plan: { create: { ...options, tools: this.#object } } });
  }

  /** Returns the definitions in the format of the OpenAI API. */
  definitions(): ToolDefinition[] {
    return [...this.tools.values()].map(definition);
  }

  /**
   * Returns the system prompt that teaches a model to call the tools. Throws a `DialectError` for the automatic dialect: a prompt
   * teaches one syntax.
   */
  prompt({ oneCall = false, withoutDependencies = false, descriptionLength }: PromptOptions = {}): string {
    const options = { oneCall, withoutDependencies, descriptionLength: descriptionLength ?? null };
    return this.#perform("prompt", options);
  }

  /** Reads a complete reply, and validates its calls. Invalid calls are data: only a text with more than 10,000 calls is an error. */
  parse(text: Chunk, { stop = "broken" }: { stop?: Stop | undefined } = {}): ParsedDocument<CallOf<Tools>> {
    const document = toDocument(this.#perform("parse", { stop }, checkChunk(text)));
    // What runs is what was validated: nothing can change a call afterwards.
    for (const call of document.calls) this.own.add(Object.freeze(call));
    return document as ParsedDocument<CallOf<Tools>>;
  }

  /** Returns a reader of replies that still arrive. */
  reader(): Reader<Tools> {
    return Reader.of(this.core, this.#perform<number>("reader"), this.own);
  }

  /**
   * Returns a message to the model about the invalid calls of a reply, or null if there are none. If a reply has no call, but text
   * like one, the message is about that.
   */
  repair(text: Chunk, { stop = "broken" }: { stop?: Stop | undefined } = {}): string | null {
    return this.#perform("repair", { stop }, checkChunk(text));
  }

  /**
   * Writes an earlier turn of the model as text: its content, and its calls, also those of the OpenAI and Anthropic APIs. Text that the
   * model wrote in this dialect needs no change.
   */
  history(content: string | null, calls?: Iterable<Call<string, any> | ClientCall> | null): string {
    if (content && typeof content !== "string") throw wrongType("content", "a string or null", content);
    const parts: object[] = content ? [{ text: content }] : [];
    parts.push(...listOf("calls", "a list of calls", calls ?? []).map(pastCall));
    return this.#perform("history", { parts });
  }

  /**
   * Writes the results of calls as a message to the model. No output can forge a call or another result. With `calls`, the results
   * are in their order, and a call without a result gets one with the status `unknown`.
   */
  results(results: Iterable<Result>, calls?: Iterable<Call<string, any>>): string {
    const order = calls === undefined ? null : listOf("calls", CALLS, calls).map(({ name, id }) => [name, id]);
    const texts = listOf("results", "a list of results, as `await execute` returns it", results).map(({ id, name, output, error, status }) => ({ id, name, output, error, status }));
    return this.#perform("results", { results: texts, calls: order });
  }

  /** Writes a call in the syntax of the dialect. Throws a `RenderError` if the syntax cannot express it. */
  render(
    name: string,
    arguments_: { [name: string]: Json },
    { id, dependencies = [] }: { id?: string | undefined; dependencies?: Iterable<string> | undefined } = {},
  ): string {
    const given = JSON.parse(argumentsToJson(arguments_)) as Json;
    const call = { name, arguments: given, id: id ?? null, dependencies: listOf("dependencies", "a list of ids", dependencies) };
    return this.#perform("render", call);
  }

  /** Escapes untrusted text (a document, user input), so that it contains no call. */
  escape(text: string): string {
    return this.#perform("escape", {}, checkChunk(text));
  }

  /** Returns a grammar for constrained decoding. Throws a `GrammarError` if the tools have none. */
  grammar(engine: Engine, { choice = "auto", only, oneCall = false, ids = false }: GrammarOptions = {}): Grammar {
    return this.#perform("grammar", { engine, choice, only: only ?? null, oneCall, ids });
  }

  [Symbol.dispose](): void {
    if (this.#object === undefined) return;
    this.core.registry.unregister(this);
    this.core.release(this.#object);
    this.#object = undefined;
  }
}

/** Writes definitions. Those of clients may have the function of the tool beside the schema. */
function definitionsToJson(definitions: object[]): string {
  const isBeside = (place: string) => /^\/\d+(\/function)?\/(?!(parameters|input_schema|inputSchema)$)\w+$/.test(place);
  const isOmitted = (value: unknown, place: string) => value === undefined || (typeof value === "function" && isBeside(place));
  return toJson(definitions, DefinitionError, (place) => `at ${place}`, isOmitted);
}

/** Writes the arguments of a call, in which nothing may be omitted. */
function argumentsToJson(given: unknown, name = "arguments"): string {
  return toJson(given, RenderError, (place) => `\`${name}${place}\``, () => false);
}

/** The fields of all kinds of calls. */
type AnyCall = Partial<Record<"type" | "function" | "name" | "arguments" | "input" | "argumentsJson" | "dependencies" | "id" | "call_id", unknown>>;

/** The types of calls with a name and arguments: of this package, of both APIs of OpenAI, and of Anthropic. */
const CALL_TYPES: unknown[] = [undefined, "call", "function", "function_call", "tool_use"];

/** Returns the part of a turn with a call of this package or of another program. */
function pastCall(call: AnyCall, index: number): object {
  const { name, input, arguments: given = input } = (call.function ?? call) as AnyCall;
  const { type, id, call_id, dependencies, argumentsJson } = call;
  if (argumentsJson === null) throw new PlaincallError(`the call \`${id}\` is invalid; pass the text of the reply to the model instead`);
  const isText = typeof given === "string";
  if (!CALL_TYPES.includes(type) || typeof name !== "string" || (!isText && (typeof given !== "object" || given === null))) {
    throw wrongType(`calls[${index}]`, "a call of this package, or of the OpenAI or Anthropic API, with a name and `arguments` or `input`", call);
  }
  const ownId = call_id ?? id ?? undefined;
  if (ownId !== undefined && typeof ownId !== "string") throw wrongType(`calls[${index}].id`, "a string", ownId);
  const json = argumentsJson ?? (isText ? toWellFormed(given) : argumentsToJson(given, `calls[${index}].arguments`));
  return { text: name, id: ownId, dependencies, arguments: json };
}

function disposed(): PlaincallError {
  return new PlaincallError("the toolbox was disposed of; create another one");
}

/** How much known content a reader keeps before the core reads it, in bytes. */
const MOST_KNOWN = 1 << 16;

/** What a reader returns: the events of the parser, and a `Call` after the end of each call. */
export type Item<Tools = any> = ParserEvent | CallOf<Tools>;

/** Reads the replies of one conversation while the model writes. */
export class Reader<Tools = any> {
  #core: Core;
  #object: number;
  #halves: Halves = new Halves();
  #content: Content = new Content();
  /** The content whose events are known, and which the core has not read. */
  #known = "";
  #isFinished = false;
  #isDisposed = false;
  #toCall: (json: object) => Call;

  private constructor(core: Core, object: number, own: WeakSet<object>) {
    [this.#core, this.#object] = [core, object];
    this.#toCall = (json) => {
      const call = Object.freeze(toCall(json));
      own.add(call);
      return call;
    };
    core.registry.register(this, object, this);
  }

  /** @internal */
  static of<Tools>(core: Core, object: number, own: WeakSet<object>): Reader<Tools> {
    return new Reader(core, object, own);
  }

  /**
   * Reads the next chunk of the reply. A reasoning end marker that nothing opened rejects the calls before it in the same chunk;
   * calls of earlier chunks have been returned.
   */
  feed(chunk: Chunk): Item<Tools>[] {
    this.#check();
    const content = this.#content;
    const length = content.lengthOf(chunk);
    if (length > 0 && this.#halves.isEmpty && content.advanced < MOST_KNOWN) {
      const events = content.advance(chunk as string, length);
      if (events.length > 0) this.#known += (events[0] as TextEvent).text;
      return events;
    }
    const joined = this.#halves.join(chunk);
    if (joined.length <= MOST_PIECE) return this.#feed(joined);
    return pieces(joined).flatMap((piece) => this.#feed(piece));
  }

  /** Feeds what is known, which the arguments need, and a chunk. Returns the events of the chunk. */
  #feed(chunk: Chunk): Item<Tools>[] {
    const content = this.#content;
    const known = this.#known + content.lineEnd;
    const { advanced } = content;
    [this.#known, content.lineEnd, content.advanced] = ["", "", 0];
    if (known === "" || typeof chunk === "string") return this.#feedOne(known === "" ? chunk : known + chunk, advanced);
    return [...this.#feedOne(known, advanced), ...this.#feedOne(chunk, 0)];
  }

  #feedOne(chunk: Chunk, advanced: number): Item<Tools>[] {
    const output = this.#core.feed(this.#object, chunk, advanced);
    this.#core.readOpenContent(this.#content.open);
    const known = this.#content.fed;
    this.#content.count(output.fed - advanced);
    const items = readEvents<Item<Tools>>(output, this.#toCall);
    return advanced === 0 ? items : withoutKnown(items, known);
  }

  /** Ends the reply, and returns its last events and calls. */
  finish({ stop = "broken" }: { stop?: Stop | undefined } = {}): Item<Tools>[] {
    this.#check();
    this.#isFinished = true;
    const rest = this.#feed(this.#halves.rest());
    const of = { finish: { object: this.#object, stop } };
    return [...rest, ...readEvents<Item<Tools>>(this.#core.performRaw({ tools: of }), this.#toCall)];
  }

  /** Begins the next reply of the conversation: ids may be used again, numbering continues. */
  beginReply(): void {
    if (this.#isDisposed) this.#check();
    this.#isFinished = false;
    this.#halves.rest();
    [this.#content, this.#known] = [new Content(), ""];
    this.#core.performRaw({ tools: { beginReply: { object: this.#object } } });
  }

  #check(): void {
    if (this.#isDisposed) throw new PlaincallError("the reader was disposed of; create another one");
    if (this.#isFinished) throw new PlaincallError("the reply is finished; call `beginReply` for the next one");
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#core.registry.unregister(this);
    this.#core.release(this.#object);
  }
}

/** Removes a line end that is known: the core holds it back, because it may belong to a marker, and returns it later. */
function withoutKnown<One extends ParserEvent | object>(items: One[], known: number): One[] {
  const [first, ...others] = items as (One & TextEvent)[];
  if (first === undefined || first.start >= known || first.type === undefined || !("text" in first)) return items;
  const text = first.text.slice(known - first.start);
  return text === "" ? others : [{ ...first, text, source: text, start: known }, ...others];
}

/** Returns the definition of a tool in the format of the OpenAI API. */
function definition({ name, description, parameters }: Omit<Tool, "run">): ToolDefinition {
  return { type: "function", function: { name, description, parameters } };
}

/** Returns the tools and definitions of a collection. */
function* listed(tools: ToolCollection): Generator<Tool | ToolDefinition> {
  if (tools === null || typeof tools !== "object") throw new DefinitionError("expected a list or a record of tools");
  if (!(Symbol.iterator in tools)) {
    for (const [name, one] of Object.entries(tools)) {
      if (one === null || typeof one !== "object" || !isTool(one)) throw new DefinitionError(`\`${name}\`: expected a tool, as \`tool\` makes them`);
      if (one.name !== "" && one.name !== name) throw new DefinitionError(`\`${name}\`: the tool has another name, \`${one.name}\``);
      // The function of a tool may belong to its class.
      yield one.name === name ? one : Object.create(one, { name: { value: name, enumerable: true } });
    }
    return;
  }
  for (const one of tools) {
    if (one === null || typeof one !== "object") throw new DefinitionError(`expected tools and definitions, found ${String(one)}`);
    if (isTool(one) && one.name === "") throw new DefinitionError("a tool in a list needs a `name`; in a record, the key is the name");
    yield one;
  }
}

/** Names the tool and its input in errors of definitions that this package has made of tools. */
function withInput<T>(own: string[], definitions: object[], create: () => T): T {
  try {
    return create();
  } catch (error) {
    if (!(error instanceof DefinitionError)) throw error;
    const message = error.message.replace(/at \/(\d+)\/function\/parameters/g, (place, index: string) => {
      const { name } = (definitions[Number(index)] as { function: { name: string } }).function;
      return own.includes(name) ? `\`${name}\`: at input` : place;
    });
    throw new DefinitionError(message, { cause: error });
  }
}

function isTool(one: object): one is Tool {
  return "run" in one && "parameters" in one;
}

/** What functions accept in place of a toolbox. */
export type Tools = Toolbox | ToolCollection;

function withTools<T>(tools: Tools, dialect: Dialect | undefined, use: (toolbox: Toolbox) => T): T {
  if (tools instanceof Toolbox) return use(tools);
  const toolbox = new Toolbox(tools, dialect === undefined ? {} : { dialect });
  try {
    return use(toolbox);
  } finally {
    toolbox[Symbol.dispose]();
  }
}

/** Returns the system prompt that teaches a model to call the tools. */
export function prompt(tools: Tools, options: PromptOptions & { dialect?: Dialect | undefined } = {}): string {
  return withTools(tools, options.dialect, (toolbox) => toolbox.prompt(options));
}

/** Writes a call in the syntax of the dialect. Default dialect: block with escapes. */
export function render(
  call: { name: string; arguments: { [name: string]: Json }; id?: string | undefined; dependencies?: Iterable<string> | undefined },
  { tools = [], dialect }: { tools?: Tools | undefined; dialect?: Dialect | undefined } = {},
): string {
  return withTools(tools, dialect, (toolbox) => toolbox.render(call.name, call.arguments, call));
}

/** Returns a grammar with which an inference engine keeps a model from writing invalid calls. */
export function grammar(tools: Tools, engine: Engine, options: GrammarOptions & { dialect?: Dialect | undefined } = {}): Grammar {
  return withTools(tools, options.dialect, (toolbox) => toolbox.grammar(engine, options));
}
