/** The page's side of the engine: requests as promises, and runs of several seeds in workers of their own. */

import {
  type Bounds,
  type Changed,
  type Explanation,
  type ExportKind,
  type Frame,
  type Intervals,
  type Notice,
  type Opened,
  type Problem,
  type Reply,
  type Request,
  ScenarioProblem,
  type Session,
  type Sought,
  type Taken,
  type Which,
} from "../protocol.ts";
import { Bounding } from "./bounding.ts";
import { Seeds } from "./seeds.ts";

/** A request without its number. */
export type Asked = Request extends infer R ? (R extends { id: number } ? Omit<R, "id"> : never) : never;

/** A worker with requests that wait for their answers. */
export class Remote {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #next = 0;
  onframe: (frame: Frame) => void = () => {};
  onfault: (text: string) => void = () => {};

  constructor(module: WebAssembly.Module, url: URL) {
    this.#worker = new Worker(url, { type: "module" });
    this.#worker.onmessage = ({ data }: MessageEvent<Reply | Notice>) => this.#take(data);
    this.#worker.onerror = (event) => this.#fail(event.message || "the worker did not start");
    this.#worker.postMessage({ module });
  }

  #take(data: Reply | Notice): void {
    if ("frame" in data) {
      this.onframe(data.frame);
      this.#worker.postMessage("taken" satisfies Taken);
    } else if ("fault" in data) this.#fail(data.fault);
    else if ("id" in data) {
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if (data.ok) waiting?.resolve(data.value);
      else waiting?.reject(new ScenarioProblem(data.problem));
    }
  }

  #fail(text: string): void {
    this.onfault(text);
    const problem: Problem = { text, key: "", line: null, column: null, length: null };
    for (const { reject } of this.#waiting.values()) reject(new ScenarioProblem(problem));
    this.#waiting.clear();
  }

  /** Asks the worker. */
  ask<T>(asked: Asked): Promise<T> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#worker.postMessage({ id, ...asked });
    });
  }

  close(): void {
    this.#worker.terminate();
    this.#waiting.clear();
  }
}

/** Where the built files lie, seen from the page's script. */
export interface Files {
  worker: URL;
  wasm: URL;
}

/** Beside the page's script. */
const BESIDE: Files = {
  worker: new URL("./worker.js", import.meta.url),
  wasm: new URL("./perhop_explorer.wasm", import.meta.url),
};

/** The engine in a worker, ready for `open`. */
export async function openSession(files: Files = BESIDE): Promise<Session> {
  const module = await WebAssembly.compileStreaming(fetch(files.wasm)).catch(async () =>
    // A server that does not know the type of WebAssembly.
    WebAssembly.compile(await (await fetch(files.wasm)).arrayBuffer()),
  );
  return new WorkerSession(module, files.worker);
}

class WorkerSession implements Session {
  readonly #remote: Remote;
  readonly #seeds: Seeds;
  readonly #bounding: Bounding;

  constructor(module: WebAssembly.Module, worker: URL) {
    this.#remote = new Remote(module, worker);
    const start = () => new Remote(module, worker);
    this.#seeds = new Seeds(start);
    this.#bounding = new Bounding(start);
  }

  set onframe(handle: (frame: Frame) => void) {
    this.#remote.onframe = handle;
  }
  get onframe(): (frame: Frame) => void {
    return this.#remote.onframe;
  }
  set onfault(handle: (text: string) => void) {
    this.#remote.onfault = handle;
  }
  get onfault(): (text: string) => void {
    return this.#remote.onfault;
  }

  open(toml: string, seed: string, atS = 0): Promise<Opened> {
    return this.#remote.ask({ do: "open", toml, seed, atS });
  }
  play(speed: number): Promise<void> {
    return this.#remote.ask({ do: "play", speed });
  }
  pause(): Promise<void> {
    return this.#remote.ask({ do: "pause" });
  }
  step(link: number | null): Promise<void> {
    return this.#remote.ask({ do: "step", link });
  }
  seek(timeS: number): Promise<Sought> {
    return this.#remote.ask({ do: "seek", timeS });
  }
  set(path: string, value: string, which: Which = 0): Promise<Changed> {
    return this.#remote.ask({ do: "set", path, value, which });
  }
  text(toml: string, which: Which = 0): Promise<Changed> {
    return this.#remote.ask({ do: "text", toml, which });
  }
  compare(toml: string | null): Promise<Opened | null> {
    return this.#remote.ask({ do: "compare", toml });
  }
  explain(event: number, which: Which = 0): Promise<Explanation> {
    return this.#remote.ask({ do: "explain", event, which });
  }
  exported(kind: ExportKind, which: Which = 0): Promise<string> {
    return this.#remote.ask({ do: "export", kind, which });
  }
  check(toml: string): Promise<Problem | null> {
    return this.#remote.ask({ do: "check", toml });
  }
  edited(toml: string, path: string, value: string): Promise<string> {
    return this.#remote.ask({ do: "edit", toml, path, value });
  }
  intervals(toml: string, seeds: string[], progress?: (soFar: Intervals) => void): Promise<Intervals> {
    return this.#seeds.run(toml, seeds, progress);
  }
  bounds(toml: string): Promise<Bounds> {
    return this.#bounding.derive(toml);
  }
  close(): void {
    this.#remote.close();
    this.#seeds.close();
    this.#bounding.close();
  }
}
