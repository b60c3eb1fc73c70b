/** The options of reading that every dialect has. */
interface ReadingOptions {
  /** Whether a backslash before the last character of a marker makes it content. Default: false. */
  escaped?: boolean | undefined;
  /** A key that is part of every marker. */
  key?: string | undefined;
  /** The markers around reasoning, in which calls are ignored. */
  reasoning?: [open: string, close: string] | undefined;
  /** The same, but only at the beginning of a text. Default of tools: `THINK`; otherwise none. */
  leadingReasoning?: [open: string, close: string] | undefined;
  /** Whether a text begins inside reasoning. Default: false. */
  inReasoning?: boolean | undefined;
  /** Whether there is no reasoning, not even in replies to tools. Default: false. */
  noReasoning?: boolean | undefined;
}

/** The options of the block format. */
interface BlockOptions {
  /** The start marker. Default: `!!!GADGET_START:`. */
  start?: string | undefined;
  /** The end marker. Default: `!!!GADGET_END`. */
  end?: string | undefined;
  /** The argument marker. Default: `!!!ARG:`. */
  arg?: string | undefined;
  /** Whether markers inside a call need not be in the first column. Default: false. */
  markersAnywhere?: boolean | undefined;
}

/** The options of the emoji-bracket syntax. */
interface EmojiOptions {
  /** Whether only the canonical form of the marker is accepted. Default: false. */
  strict?: boolean | undefined;
  /** Whether ` /]` ends a call without a body. Default: false. */
  selfClosing?: boolean | undefined;
}

/**
 * The rules by which a text is read and written (`spec/common.md` 12): the syntax, its markers and options. `auto` takes the
 * syntax of the first call.
 */
export type Dialect =
  | ({ syntax: "block" } & BlockOptions & ReadingOptions)
  | ({ syntax: "emoji" } & EmojiOptions & ReadingOptions)
  | ({ syntax?: "auto" | undefined } & BlockOptions & EmojiOptions & ReadingOptions);

/** The most common markers around reasoning. */
export const THINK: [open: string, close: string] = ["<think>", "</think>"];
