import type { Chunk } from "./chunk.js";
import type { Output } from "./core.js";

/** The place of an event or a diagnostic in the text. */
export interface Span {
  /** The start, in bytes of UTF-8. */
  readonly start: number;
  /** The end, in bytes of UTF-8. */
  readonly end: number;
}

/** What every event has. */
interface Source extends Span {
  /** The exact text of the span. */
  readonly source: string;
}

/** How a call ended. */
export type Termination = "explicit" | "next_call" | "end_of_stream";

/** Text outside calls. */
export interface TextEvent extends Source {
  readonly type: "text";
  readonly text: string;
}

/** Text between reasoning markers. */
export interface ReasoningEvent extends Source {
  readonly type: "reasoning";
  readonly text: string;
}

/** The start of a call: its start marker and header. */
export interface CallStartEvent extends Source {
  readonly type: "call_start";
  readonly syntax: "block" | "emoji";
  readonly name: string;
  /** The id, if the model wrote one. */
  readonly id: string | null;
  /** The ids that it depends on, as written. */
  readonly dependencies: readonly string[];
  /** The text after the name of an emoji call; null in the block format. */
  readonly rawArgs: string | null;
}

/** The start of a value. */
export interface ValueStartEvent extends Source {
  readonly type: "value_start";
  /** The pointer of the argument, as written; null for the body of an emoji call. */
  readonly pointer: string | null;
}

/** A piece of a value, as written. */
export interface ValueDeltaEvent extends Source {
  readonly type: "value_delta";
  readonly text: string;
}

/** The end of a value. Its source is the line end that belongs to the syntax, or empty. */
export interface ValueEndEvent extends Source {
  readonly type: "value_end";
}

/** The end of a call. Its source is the end marker, or empty. */
export interface CallEndEvent extends Source {
  readonly type: "call_end";
  readonly termination: Termination;
}

/** Bytes that are not text, reasoning, a marker or a value. */
export interface IgnoredEvent extends Source {
  readonly type: "ignored";
  readonly text: string;
}

/** What is wrong with a text or a call. */
export interface Problem extends Span {
  /** The stable code. */
  readonly code: string;
  readonly severity: "error" | "warning";
  /** One sentence. */
  readonly message: string;
  /** The pointer to the invalid argument. */
  readonly pointer: string | null;
}

/** A problem in the text, or of a call. It covers no input, so its source is empty. */
export interface DiagnosticEvent extends Problem, Source {
  readonly type: "diagnostic";
}

/** Any event of the parser. */
export type ParserEvent =
  | TextEvent
  | ReasoningEvent
  | CallStartEvent
  | ValueStartEvent
  | ValueDeltaEvent
  | ValueEndEvent
  | CallEndEvent
  | IgnoredEvent
  | DiagnosticEvent;

/** In the order of their numbers in `core/src/events.rs`. */
const TYPES = [
  "text",
  "reasoning",
  "value_delta",
  "value_end",
  "ignored",
  "body",
  "argument",
  "call_end",
  "named_call",
  "call_start",
  "diagnostic",
  "call",
  "usual_call",
] as const;

const HEADER = 20;
// A byte order mark is text.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Reads the events of an output. `T` is what the object writes. If `chunk` was fed, with its end at `fed` bytes, an event with its
 * span has its text, without being decoded again.
 *
 * @internal
 */
export function readEvents<T = ParserEvent>(output: Output, read = unchanged, chunk: Chunk = "", fed = 0): T[] {
  if (output.start === output.end) return [];
  // Then each of its characters is a byte.
  const known = chunk.length === output.fed && typeof chunk === "string" ? chunk : "";
  const { bytes, numbers } = output;
  const events: unknown[] = [];
  for (let at = output.start; at < output.end; ) {
    const place = at >> 2;
    const kind = numbers[place]!;
    const start = numbers[place + 1]! >>> 0;
    const end = numbers[place + 2]! >>> 0;
    const from = at + HEADER;
    const rest = from + numbers[place + 3]!;
    const next = rest + numbers[place + 4]!;
    // A diagnostic has a span, and no text.
    const isKnown = end === fed && end - start === known.length && rest - from === known.length && known !== "";
    const source = isKnown ? known : text(bytes, from, rest);
    const type = TYPES[kind];
    switch (type) {
      case "value_end":
        events.push({ type, start, end, source });
        break;
      case "body":
        events.push({ type: "value_start", pointer: null, start, end, source });
        break;
      case "argument":
        events.push({ type: "value_start", pointer: text(bytes, rest, next), start, end, source });
        break;
      case "call_end":
        events.push({ type, termination: text(bytes, rest, next), start, end, source });
        break;
      case "named_call":
        events.push(namedCall(text(bytes, rest, next), start, end, source));
        break;
      case "call_start":
      case "diagnostic":
        events.push({ type, ...(JSON.parse(text(bytes, rest, next)) as object), start, end, source });
        break;
      case "call": {
        const [json, argumentsJson] = text(bytes, rest, next).split("\n") as [string, string];
        const call = JSON.parse(json) as { argumentsJson?: string; source?: string };
        if (argumentsJson !== "") call.argumentsJson = argumentsJson;
        if (source !== "") call.source = source;
        events.push(read(call));
        break;
      }
      case "usual_call": {
        const [index, name, id, automatic, argumentsJson] = text(bytes, rest, next).split("\n") as [string, string, string, string, string];
        const how = { syntax: "block", termination: "explicit", mayRun: true } as const;
        events.push(read({ index: Number(index), name, id, isIdAutomatic: automatic === "1", argumentsJson, source, start, end, ...how }));
        break;
      }
      default:
        events.push({ type, text: source, start, end, source });
    }
    at = (next + 3) & ~3;
  }
  return events as T[];
}

function namedCall(name: string, start: number, end: number, source: string): CallStartEvent {
  return { type: "call_start", syntax: "block", name, id: null, dependencies: [], rawArgs: null, start, end, source };
}

function unchanged(json: object): unknown {
  return json;
}

/** Decodes UTF-8. Calling a decoder takes longer than most texts of an event. */
function text(bytes: Uint8Array, from: number, to: number): string {
  if (to - from > 24) return decoder.decode(bytes.subarray(from, to));
  let text = "";
  for (let at = from; at < to; at++) {
    const code = bytes[at]!;
    if (code > 127) return decoder.decode(bytes.subarray(from, to));
    text += String.fromCharCode(code);
  }
  return text;
}
