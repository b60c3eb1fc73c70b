import type { Json } from "./document.js";
import { DefinitionError } from "./errors.js";

/** A schema of zod, valibot, arktype or another library that implements Standard Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** The JSON Schema of the values, in libraries that implement Standard JSON Schema. */
    readonly jsonSchema?: { readonly input: (options: { target: string }) => Record<string, unknown> };
  };
}

/** The result of a validation. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** What is wrong with a value. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of the values before a schema changes them, as calls have them. */
export type Input<Schema> = Schema extends StandardSchema<infer Value, infer _> ? Value : { [name: string]: Json };

/** The type of the values of a schema. */
export type Output<Schema> = Schema extends StandardSchema<infer _, infer Value> ? Value : { [name: string]: unknown };

/** A JSON Schema of an object: any object, or one of a type with some of the keywords. */
export type JsonSchema =
  | { readonly [keyword: string]: unknown }
  | {
      readonly type?: unknown;
      readonly properties?: unknown;
      readonly required?: unknown;
      readonly description?: unknown;
      readonly $ref?: unknown;
      readonly $schema?: unknown;
      readonly allOf?: unknown;
      readonly anyOf?: unknown;
      readonly oneOf?: unknown;
    };

/** Returns the JSON Schema of a tool's input. */
export function toJsonSchema(tool: string, input: StandardSchema | JsonSchema): JsonSchema {
  if (!isStandard(input)) return input;
  const { jsonSchema, vendor } = input["~standard"];
  if (jsonSchema === undefined) {
    throw new DefinitionError(
      `\`${tool}\`: this schema of ${vendor} has no JSON Schema; use a version that implements Standard JSON Schema, ` +
        "or give `parameters` as well",
    );
  }
  try {
    const { $schema: _, ...schema } = jsonSchema.input({ target: "draft-2020-12" });
    return schema;
  } catch (error) {
    const at = ["input", ...unwritable(input)].join(".");
    const reason = error instanceof Error ? error.message : String(error);
    throw new DefinitionError(`\`${tool}\`: \`${at}\` has no JSON Schema: ${reason}`, { cause: error });
  }
}

/** The properties in which libraries keep the schemas of the members, the items and the value of a schema. */
const PARTS = ["shape", "entries", "element", "item", "innerType", "in"];

/** Returns the path to the innermost schema without a JSON Schema, as far as the library shows its parts. */
function unwritable(input: object): string[] {
  const { def = {} } = input as { def?: object };
  const schemas = PARTS.flatMap((name): [string, unknown][] => {
    const part: unknown = (input as Record<string, unknown>)[name] ?? (def as Record<string, unknown>)[name];
    if (typeof part !== "object" || part === null) return [];
    if (!isStandard(part)) return Object.entries(part);
    return [[name === "element" || name === "item" ? "items" : "", part]];
  });
  for (const [name, part] of schemas) {
    if (typeof part !== "object" || part === null || !isStandard(part)) continue;
    try {
      part["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
    } catch {
      return [name, ...unwritable(part)].filter((one) => one !== "");
    }
  }
  return [];
}

/** Whether an input has a function to validate it. */
export function isStandard(input: object): input is StandardSchema {
  return "~standard" in input;
}

/** Returns issues as one sentence each. */
export function describe(issues: readonly StandardIssue[]): string {
  const one = ({ message, path = [] }: StandardIssue): string => {
    const keys = path.map((part) => String(typeof part === "object" ? part.key : part));
    return keys.length === 0 ? message : `\`${keys.join("/")}\`: ${message}`;
  };
  return issues.map(one).join("; ");
}
