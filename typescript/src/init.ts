import { useModule } from "./core.js";
import { kindOf, PlaincallError } from "./errors.js";

/** The type of the global `WebAssembly.Module`. */
export type CompiledModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer Global } } } ? Global : any;

/**
 * Uses a compiled module instead of the one in the package, for runtimes that compile WebAssembly only ahead of time, and pages that
 * compile it in the background. Call it before anything else of the package: `plaincall/parse.wasm` is the module of `plaincall/parse`, and
 * `plaincall/gateway.wasm` that of all entries.
 *
 * ```ts
 * init(await WebAssembly.compileStreaming(fetch("/gateway.wasm")));
 * ```
 *
 * Throws a `PlaincallError` for anything but a module of this version.
 */
export function init(module: CompiledModule): void {
  const found = kindOf(module);
  if (found !== "WebAssembly.Module") throw new PlaincallError(`expected a compiled WebAssembly.Module, found ${found}`);
  const [version] = WebAssembly.Module.customSections(module, "plaincall");
  if (version === undefined) throw new PlaincallError("it is not a module of this package; compile `plaincall/gateway.wasm`");
  const isAll = WebAssembly.Module.exports(module).some(({ name }) => name === "has_tools");
  useModule(module, isAll, new TextDecoder().decode(version));
}
