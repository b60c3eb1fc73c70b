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
