/** Calls the tools of a reply in dependency order. */

import type { Core } from "./core.js";
import type { Call, Json } from "./document.js";
import { CALLS, listOf, PlaincallError, wrongType } from "./errors.js";
import { failure, type Result, type ResultOf, type Signal, type Tool, type Toolbox, type ToolCollection } from "./tools.js";

/** Decides whether a call runs: `true`, or `false` or a reason for the model why it does not. */
export type Approve = (call: Call<string, any>, tool: Tool<any, any>) => boolean | string | Promise<boolean | string>;

/** The options of `execute`. */
export interface ExecuteOptions {
  /** Asked before each call. Anything but `true` denies the call, and so does an error. Default: all calls run but those that are held. */
  approve?: Approve | undefined;
  /** The maximum number of calls that run at the same time. Default: no limit. */
  concurrency?: number | undefined;
  /** The maximum time of each call, in milliseconds. Default: no limit. */
  timeout?: number | undefined;
  /** Cancels all calls. */
  signal?: Signal | undefined;
}

/** The result of a call, with the value that its tool returned. */
export interface ExecutedResult<Name extends string = string, Value = unknown> extends Result {
  name: Name;
  status: "ok" | "error" | "skipped" | "rejected";
  value?: Value;
}

interface Action {
  kind: "ready" | "start" | "skipped" | "rejected";
  call: number;
  reason: string | null;
}

/** The longest time that a timer takes. */
const MOST_TIME = 2 ** 31 - 1;

/**
 * Calls the tools of a reply, each when the calls that it depends on have succeeded, and returns their results in order.
 *
 * Nothing is thrown for a call: an invalid call is rejected, an error of a tool becomes its error, and a call that depends on a failed
 * one is skipped. `approve` is asked before each call, and may be asked about several calls at the same time; other calls run
 * meanwhile. Calls that were probably meant to end earlier, or that may quote another call (`Call.held`), run only if `approve` is
 * given and approves them.
 *
 * Pass all calls of a reply at once: a call may be rejected because of one before it.
 *
 * Calls that another toolbox has read, or `parse` alone, are validated first. Of these, calls without an end marker are rejected, unless
 * the next call ended them and their tool only reads, or the toolbox has `unclosed: "run"`.
 *
 * If `signal` is aborted, the signals of all tools are, no further call starts, and the promise is rejected with the reason. A call
 * that takes too long is aborted in the same way, and its result is an error. A function that ignores its signal goes on; nothing waits
 * for it.
 *
 * The output of a call is the returned text, or another value as JSON, in which `undefined` is `null`, a big integer or a number that is
 * not finite text, a set a list and a map an object. A value that cannot be written as JSON becomes its `String`. If that throws an error
 * too, the error of the result states that the tool ran.
 *
 * ```ts
 * const { calls } = toolbox.parse(reply, { stop: finishReason });
 * const results = await execute(toolbox, calls, { approve: (call, { effect }) => effect === "read" || ask(call) });
 * const message = toolbox.results(results, calls);
 * ```
 */
export async function execute<Tools extends ToolCollection = any>(
  toolbox: Toolbox<Tools>,
  calls: Iterable<Call<string, any>>,
  { approve, concurrency, timeout, signal }: ExecuteOptions = {},
): Promise<ResultOf<Tools>[]> {
  if (timeout !== undefined && !(typeof timeout === "number" && timeout > 0)) {
    throw new PlaincallError("`timeout` must be a number of milliseconds above 0");
  }
  if (concurrency !== undefined && concurrency !== Infinity && !(Number.isInteger(concurrency) && concurrency > 0)) {
    throw new PlaincallError(`\`concurrency\`: found ${String(concurrency)}, expected a whole number of at least 1`);
  }
  // Not its class: the package may be loaded twice, as a module and as CommonJS.
  if (typeof toolbox?.plan !== "function") throw wrongType("toolbox", "a `Toolbox`, as `new Toolbox(tools)` creates it", toolbox);
  const written = listOf("calls", CALLS, calls);
  signal?.throwIfAborted();
  const plan = new Plan(toolbox, written, concurrency, approve !== undefined);
  const results: ExecutedResult[] = [];
  const stop = new Stop();
  const abort = () => stop.now(signal?.reason);
  signal?.addEventListener("abort", abort);
  try {
    await new Promise<void>((resolve, reject) => {
      let running = 0;
      stop.each.add(reject);
      /** Runs a task, and does what is next after it. */
      const run = (task: () => Promise<Action[]>) => {
        running++;
        const next = async () => {
          const actions = await task();
          running--;
          follow(actions);
        };
        next().catch((error) => stop.now(error));
      };
      const follow = (actions: Action[]) => {
        // Approved calls are added while the list is read.
        for (const { kind, call: index, reason } of actions) {
          if (stop.isStopped) return;
          const call = written[index]!;
          const tool = toolbox.tools.get(call.name);
          if (kind === "ready" && approve === undefined) {
            actions.push(...plan.next("admit", index));
          } else if (kind === "ready") {
            run(async () => {
              const denial = await denied(approve!, call, tool!);
              if (stop.isStopped) return [];
              return denial === undefined ? plan.next("admit", index) : plan.next("deny", index, { reason: denial });
            });
          } else if (kind === "start") {
            run(async () => {
              const result = await limited(tool, call, stop, timeout);
              if (stop.isStopped) return [];
              results[index] = result;
              return plan.next("finish", index, { succeeded: result.status === "ok" });
            });
          } else {
            results[index] = { id: call.id, name: call.name, status: kind, error: reason ?? "" };
          }
        }
        if (running === 0 && !stop.isStopped) resolve();
      };
      follow(plan.first);
    });
  } catch (error) {
    // Nothing goes on after an error of the first step either.
    stop.now(error);
    throw error;
  } finally {
    signal?.removeEventListener("abort", abort);
    plan.release();
  }
  return results as ResultOf<Tools>[];
}

/** Ends everything that runs. One list of functions: an `AbortSignal` warns of many listeners. */
class Stop {
  isStopped = false;
  readonly each: Set<(reason: unknown) => void> = new Set();

  now(reason: unknown): void {
    if (this.isStopped) return;
    this.isStopped = true;
    for (const end of this.each) end(reason);
  }
}

/** Decides which call starts next. */
class Plan {
  #core: Core;
  #object: number | undefined;
  readonly first: Action[];

  constructor(toolbox: Toolbox, calls: readonly Call[], concurrency: number | undefined, canApprove: boolean) {
    const options = calls.map((call) => ({
      id: call.id,
      name: call.name,
      dependencies: call.dependencies,
      rejection: call.rejection,
      arguments: call.argumentsJson,
      syntax: call.syntax,
      termination: call.termination,
      before: call.before,
      held: canApprove ? null : call.held,
      isExclusive: toolbox.tools.get(call.name)?.exclusive ?? false,
      isOwn: toolbox.own.has(call),
    }));
    const create = { concurrency: Number.isFinite(concurrency) ? concurrency : null, calls: options };
    const { object, actions } = toolbox.plan<{ object: number; actions: Action[] }>(create);
    [this.#core, this.#object, this.first] = [toolbox.core, object, actions];
  }

  next(operation: "admit" | "deny" | "finish", call: number, options: object = {}): Action[] {
    if (this.#object === undefined) return [];
    const plan = { [operation]: { object: this.#object, call, ...options } };
    return this.#core.perform<{ actions: Action[] }>({ plan }).actions;
  }

  release(): void {
    if (this.#object !== undefined) this.#core.release(this.#object);
    this.#object = undefined;
  }
}

/** Returns why a call is denied, or undefined if it is approved. */
async function denied(approve: Approve, call: Call, tool: Tool): Promise<string | undefined> {
  try {
    const decision = await approve(call, tool);
    if (decision === true) return undefined;
    return typeof decision === "string" && decision !== "" ? decision : failure("not_approved");
  } catch (error) {
    return failure("approval", nameOf(error));
  }
}

/** Calls a tool. It is aborted when all calls are, and after the time limit. */
async function limited(
  tool: Tool | undefined,
  call: Call,
  stop: Stop,
  timeout: number | undefined,
): Promise<ExecutedResult> {
  const own = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const abort = (reason: unknown) => {
    clearTimeout(timer);
    own.abort(reason);
  };
  stop.each.add(abort);
  const late = new Promise<ExecutedResult>((resolve) => {
    if (timeout === undefined || timeout > MOST_TIME) return;
    timer = setTimeout(() => {
      const error = failure("timed_out", String(timeout / 1000));
      own.abort(new PlaincallError(error));
      resolve({ id: call.id, name: call.name, status: "error", error });
    }, timeout);
  });
  try {
    return await Promise.race([outcome(tool, call, own.signal), late]);
  } finally {
    clearTimeout(timer);
    stop.each.delete(abort);
  }
}

async function outcome(tool: Tool | undefined, call: Call, signal: AbortSignal): Promise<ExecutedResult> {
  const { id, name } = call;
  let value: unknown;
  try {
    if (tool === undefined) throw new PlaincallError(failure("no_function", name));
    // The arguments that were validated.
    value = await tool.run(JSON.parse(call.argumentsJson ?? "null") as Json, { signal });
  } catch (error) {
    return { id, name, status: "error", error: messageOf(error) };
  }
  try {
    return { id, name, status: "ok", output: textOf(value), value };
  } catch (error) {
    return { id, name, status: "error", error: failure("unwritable", nameOf(error)), value };
  }
}

function nameOf(error: unknown): string {
  // Getters and proxies can throw.
  try {
    return error instanceof Error ? String(error.name) : typeof error;
  } catch {
    return typeof error;
  }
}

/** Returns an error as a sentence for the model. Those of this package state what to do. */
function messageOf(error: unknown): string {
  try {
    if (error instanceof PlaincallError) return String(error.message);
    return error instanceof Error ? `${String(error.name)}: ${String(error.message)}` : failure("failed", String(error));
  } catch {
    return failure("failed");
  }
}

/** Returns a value as text for the model: text unchanged, other values as JSON or as their `String`. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value ?? null, (_, inner: unknown) => plain(inner)) ?? String(value);
  } catch {
    // Such as an object that contains itself.
    return String(value);
  }
}

/** Returns a value that JSON does not have as one that it has. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value))) return String(value);
  if (value instanceof Set) return [...value];
  return value instanceof Map ? Object.fromEntries(value) : value;
}
