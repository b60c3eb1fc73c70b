import { core } from "./core.js";
import type { Dialect } from "./dialect.js";
import type { Problem, ReasoningEvent, Span, Termination, TextEvent } from "./events.js";
import { checkChunk, type Chunk } from "./chunk.js";

/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * How a text ended, which decides whether a call without an end marker may run: `natural`, `endOfFile`, `length` (after a length limit),
 * or `broken` (unknown). The finish reasons of all APIs are accepted: `stop`, `tool_calls` and `end_turn` are natural, `max_tokens` is
 * a length limit, and null and every other reason count as `broken`.
 */
export type Stop = "natural" | "endOfFile" | "length" | "broken" | "stop" | "tool_calls" | "end_turn" | "max_tokens" | (string & {}) | null;

/** A call, with the decision of whether it may run. An invalid call is data: nothing is thrown. */
export interface Call<Name extends string = string, Arguments = { [name: string]: Json }> extends Span {
  readonly type: "call";
  /** The index in order of appearance, from 0. */
  readonly index: number;
  /** The name of the tool, as written. */
  readonly name: Name;
  /** The id, written or assigned. */
  readonly id: string;
  /** Whether the id was assigned, not written. */
  readonly isIdAutomatic: boolean;
  /** The ids of the calls that it depends on. */
  readonly dependencies: readonly string[];
  /** The arguments; null if they are invalid, and for an emoji call without tools. Numbers may lose digits. */
  readonly arguments: Arguments | null;
  /** The arguments as JSON, with all digits. */
  readonly argumentsJson: string | null;
  /** The errors: of the text, and with tools those of the definition. */
  readonly problems: readonly Problem[];
  /** Why the call must not run, as a sentence for the model; null if it may run. */
  readonly rejection: string | null;
  /**
   * Text in a value that was probably meant to end the call earlier, or the start of another call. Run such a call only if a person
   * approves it.
   */
  readonly held: string | null;
  /** Whether the call may run: it is complete and valid, and nothing in it was probably meant as its end. */
  readonly mayRun: boolean;
  /** All diagnostics of the text of the call, also warnings. */
  readonly diagnostics: readonly Problem[];
  readonly syntax: "block" | "emoji";
  /** How the call ended. */
  readonly termination: Termination;
  /** The text after the name in the header of an emoji call; null in the block format. */
  readonly rawArgs: string | null;
  /** The body of an emoji call; null in the block format. */
  readonly body: string | null;
  /** The exact text, with markers; null if a value was over the limit and not kept. */
  readonly source: string | null;
  /** The text before it that looks like the beginning of a call, as JSON: with other tools, `execute` reads it. Otherwise null. */
  readonly before: string | null;
}

/** A complete text: its parts, its calls and its diagnostics (`spec/common.md` 11). */
export interface ParsedDocument<OneCall extends Call<string, any> = Call> {
  /** The syntax of the dialect; in the automatic dialect that of the first call, or null. */
  readonly syntax: "block" | "emoji" | null;
  /** The parts, in order. Their spans cover the text without gaps. */
  readonly segments: readonly (TextEvent | ReasoningEvent | OneCall)[];
  /** The calls, in order. */
  readonly calls: readonly OneCall[];
  /** The text outside calls and reasoning. */
  readonly text: string;
  /** All diagnostics, ordered by the ends of their spans. */
  readonly diagnostics: readonly Problem[];
}

/** Text that looks like a marker or a call in another format, and is neither (`spec/common.md` 9). */
export interface NearMiss extends Span {
  /** The text. */
  readonly source: string;
  /** The marker that was probably meant. */
  readonly suggestion: string;
}

/** Adds the arguments, and what is empty, to a call of the core. */
export function toCall(json: object): Call {
  const call = json as Call;
  const { argumentsJson = null } = call;
  return {
    type: "call",
    index: call.index,
    name: call.name,
    id: call.id,
    isIdAutomatic: call.isIdAutomatic,
    dependencies: call.dependencies ?? [],
    arguments: argumentsJson === null ? null : (JSON.parse(argumentsJson) as Call["arguments"]),
    argumentsJson,
    problems: call.problems ?? [],
    rejection: call.rejection ?? null,
    held: call.held ?? null,
    mayRun: call.mayRun,
    diagnostics: call.diagnostics ?? [],
    syntax: call.syntax,
    termination: call.termination,
    rawArgs: call.rawArgs ?? null,
    body: call.body ?? null,
    source: call.source ?? null,
    before: call.before ?? null,
    start: call.start,
    end: call.end,
  };
}

/** Adds what is known from the parts to a document of the core. */
export function toDocument(read: Pick<ParsedDocument, "syntax" | "segments" | "diagnostics">): ParsedDocument {
  const segments = read.segments.map((segment) => (segment.type === "call" ? toCall(segment) : segment));
  const text = segments.map((segment) => (segment.type === "text" ? segment.text : "")).join("");
  return { ...read, segments, text, calls: segments.filter((segment) => segment.type === "call") };
}

/**
 * Finds the calls in a complete text. A text with more than 10,000 calls is an error, no other one. Default dialect: automatic; default stop: `broken`.
 *
 * ```ts
 * const { calls } = parse("!!!GADGET_START:weather\n!!!ARG:city\nParis\n!!!GADGET_END\n");
 * calls[0]?.arguments; // { city: "Paris" }
 * ```
 */
export function parse(text: Chunk, dialect: Dialect = {}, { stop = "broken" }: { stop?: Stop | undefined } = {}): ParsedDocument {
  return toDocument(core().perform({ parse: { dialect, stop } }, checkChunk(text)));
}

/** Finds text that looks like a marker or a call in another format, and is neither. Default dialect: automatic. */
export function nearMisses(text: string, dialect: Dialect = {}): NearMiss[] {
  return core().perform({ nearMisses: { dialect } }, checkChunk(text));
}
