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

/** The type of the values of a schema. */
export type Output<Schema> = Schema extends StandardSchema<infer _, infer Value> ? Value : { [name: string]: unknown };

/** A JSON Schema of an object. */
export type JsonSchema = { readonly [keyword: string]: unknown };

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
  const { $schema: _, ...schema } = jsonSchema.input({ target: "draft-2020-12" });
  return schema;
}

/** Whether an input has a function to validate it. */
export function isStandard(input: StandardSchema | JsonSchema): input is StandardSchema {
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
