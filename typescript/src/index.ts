/** Tool calls for any text model. `plaincall/parse` has the parser alone, in a module of a quarter of the size. */

export { init, type CompiledModule } from "./init.js";
export { DefinitionError, DialectError, GrammarError, PlaincallError, RenderError } from "./errors.js";
export { THINK, type Dialect } from "./dialect.js";
export type * from "./events.js";
export type { Chunk } from "./chunk.js";
export { EventStream, events, Parser, type ChunkReader, type Chunks, type ChunkStream } from "./parser.js";
export { nearMisses, parse, type Call, type Json, type NearMiss, type ParsedDocument, type Stop } from "./document.js";
export { execute, type Approve, type ExecutedResult, type ExecuteOptions } from "./execute.js";
export type { JsonSchema, StandardIssue, StandardResult, StandardSchema } from "./schema.js";
export * from "./tools.js";
