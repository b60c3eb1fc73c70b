/** An argument of this package cannot be used. Texts of models cause one only if they are too long, or have too many calls. */
export class PlaincallError extends Error {
  override name = "PlaincallError";
}

/** The options of a dialect cannot be used together, or are not enough for the operation. */
export class DialectError extends PlaincallError {
  override name = "DialectError";
}

/** A tool cannot be used. The message has a JSON Pointer into the definitions. */
export class DefinitionError extends PlaincallError {
  override name = "DefinitionError";
}

/** The syntax cannot express a call, or it would be parsed differently. */
export class RenderError extends PlaincallError {
  override name = "RenderError";
}

/** There is no grammar for the tools. */
export class GrammarError extends PlaincallError {
  override name = "GrammarError";
}

/** Returns the name of what a value is, such as `Null`, and the keys of an object. */
export function kindOf(value: unknown): string {
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return kind === "Object" ? `\`{${Object.keys(value as object).join(", ")}}\`` : kind;
}

/** Creates the error of an argument of another type. */
export function wrongType(name: string, expected: string, found: unknown): PlaincallError {
  return new PlaincallError(`\`${name}\`: expected ${expected}, found ${kindOf(found)}`);
}

/** Returns an object with options or names. Throws an error for anything else, such as a list. */
export function checkRecord<T>(name: string, expected: string, value: T): T {
  if (typeof value === "object" && value !== null && !(Symbol.iterator in value)) return value;
  throw wrongType(name, expected, value);
}

/** Returns the items of a list. Throws an error for anything else, such as a document in place of its calls, and for missing items. */
export function listOf<One>(name: string, expected: string, items: Iterable<One>): One[] {
  if (typeof items !== "object" || items === null || !(Symbol.iterator in items)) throw wrongType(name, expected, items);
  const all = [...items];
  const missing = all.findIndex((one) => one === null || one === undefined);
  if (missing >= 0) throw new PlaincallError(`\`${name}[${missing}]\` is ${String(all[missing])}`);
  return all;
}

/** Which list of calls a function needs. */
export const CALLS = "the calls of a document, `document.calls`";

const CLASSES: Record<string, typeof PlaincallError> = {
  dialect: DialectError,
  definition: DefinitionError,
  render: RenderError,
  grammar: GrammarError,
};

/** Creates the error that the core reports. */
export function toError({ kind, message }: { kind: string; message: string }): PlaincallError {
  return new (CLASSES[kind] ?? PlaincallError)(message);
}
