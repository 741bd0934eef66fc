/** perhop as a WebAssembly module: requests and answers as JSON, and the numbers of frames. No imports, so it can reach nothing. */

import type { Problem } from "../protocol.ts";

interface Exports {
  memory: WebAssembly.Memory;
  explorer_request(bytes: number): number;
  explorer_call(): void;
  explorer_text(): number;
  explorer_text_bytes(): number;
  explorer_numbers(): number;
  explorer_numbers_length(): number;
  explorer_panic_text(): number;
  explorer_panic_bytes(): number;
}

/** What the engine refuses: the scenario is wrong, or the request. */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.text);
  }
}

/** The engine has failed, and its module can no longer be used. */
export class Fault extends Error {}

/** An instance of the module, which holds one session. */
export class Engine {
  readonly #exports: Exports;
  #failed = false;

  private constructor(exports: Exports) {
    this.#exports = exports;
  }

  /** From the compiled module. */
  static async of(module: WebAssembly.Module): Promise<Engine> {
    const instance = await WebAssembly.instantiate(module, {});
    return new Engine(instance.exports as unknown as Exports);
  }

  /** Sends a request; `answer.numbers` is a copy. */
  ask<T>(request: Record<string, unknown>): { value: T; numbers: Float64Array } {
    if (this.#failed) throw new Fault("the engine has failed before");
    const { memory, ...call } = this.#exports;
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    try {
      const to = call.explorer_request(bytes.length);
      new Uint8Array(memory.buffer, to, bytes.length).set(bytes);
      call.explorer_call();
    } catch (error) {
      this.#failed = true;
      throw new Fault(this.#read(call.explorer_panic_text(), call.explorer_panic_bytes()) || String(error));
    }
    const answer = JSON.parse(this.#read(call.explorer_text(), call.explorer_text_bytes())) as
      | { ok: T }
      | { problem: Problem };
    if ("problem" in answer) throw new Refused(answer.problem);
    const numbers = new Float64Array(memory.buffer, call.explorer_numbers(), call.explorer_numbers_length()).slice();
    return { value: answer.ok, numbers };
  }

  #read(address: number, bytes: number): string {
    return new TextDecoder().decode(new Uint8Array(this.#exports.memory.buffer, address, bytes));
  }
}
