/** The parser alone, in a WebAssembly module of a quarter of the size. */

export { init, type CompiledModule } from "./init.js";
export { DefinitionError, DialectError, GrammarError, PlaincallError, RenderError } from "./errors.js";
export { THINK, type Dialect } from "./dialect.js";
export type * from "./events.js";
export type { Chunk } from "./chunk.js";
export { EventStream, events, Parser, type ChunkReader, type Chunks, type ChunkStream } from "./parser.js";
export { nearMisses, parse, type Call, type Json, type NearMiss, type ParsedDocument, type Stop } from "./document.js";
