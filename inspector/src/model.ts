/** What the core returns. Positions are bytes of the text. */

export type Kind = "text" | "reasoning" | "header" | "argument" | "value" | "line_end" | "end" | "ignored";

export interface Part {
  kind: Kind;
  start: number;
  end: number;
  call?: number;
  pointer?: string;
}

export interface Diagnostic {
  code: string;
  severity: "error" | "warning";
  message: string;
  help: string | null;
  suggestion: string | null;
  rule: string;
  start: number;
  end: number;
  line: number;
  column: number;
}

/** A value, and how it was read. */
export interface Value {
  pointer: string;
  text: string;
  json: string | null;
  declared: string | null;
  rule: string | null;
  start: number;
}

export interface CallView {
  start: number;
  line: number;
  syntax: string;
  termination: string;
  is_id_automatic: boolean;
  values: Value[];
  problems: string[];
}

export interface Reply {
  text: string | null;
  syntax: string | null;
  parts: Part[];
  diagnostics: Diagnostic[];
  /** How many there are. */
  calls: number;
  tools: number | null;
  engines: string[];
}

export interface Calls {
  trace: Trace;
  /** More about each call of the trace. */
  views: CallView[];
}

export interface JsonView {
  tool_calls: unknown[];
  skipped: { id: string; reasons: string[] }[];
  /** How many calls have dependencies. */
  dependent: number;
}

/** What is known after some chunks. */
export interface Moment {
  parts: Part[];
  calls: { name: string; id: string | null; values: [string | null, string][]; is_complete: boolean }[];
  known: number;
  fed: number;
  is_over: boolean;
}

export interface Tried {
  total: number;
  tried: number;
  /** What all splits are. */
  splits: string;
  difference: string | null;
}

export interface GrammarView {
  text: string;
  notes: string[];
  fields: Record<string, unknown>;
}

/** The options of a dialect, as the command line has them. */
export interface Dialect {
  syntax?: string | null;
  start_prefix?: string | null;
  end_prefix?: string | null;
  arg_prefix?: string | null;
  markers?: "line-start" | "anywhere";
  strict?: boolean;
  self_closing?: boolean;
  escaped?: boolean;
  key?: string | null;
  reasoning?: [string, string] | null;
  in_reasoning?: boolean;
}

export interface Settings {
  dialect: Dialect;
  no_reasoning: boolean;
  stop: string;
  unclosed: string;
}

/** The settings of a person. Without a dialect, it is detected. */
export type Choices = Omit<Settings, "dialect"> & { dialect: Dialect | null };

export interface Detected {
  is_log: boolean;
  is_tools: boolean;
  /** Why a text that was meant as tools is not. */
  tools_error: string | null;
  /** A dialect with the markers that the text seems to have, if none of its markers is known. */
  offer: Dialect | null;
  dialect: Dialect;
  found: string[];
}

/** What the page shows: a text, the tools, and settings. */
export interface Given {
  bytes: Uint8Array;
  tools: string;
  settings: Choices;
}

/** What all views show. */
export interface Shown {
  given: Given;
  /** The input without tools that cannot be read. */
  read: Given;
  settings: Settings;
  /** The bytes that positions count. */
  bytes: Uint8Array;
  reply: Reply;
}
