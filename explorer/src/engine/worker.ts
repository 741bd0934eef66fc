/** The worker: the engine, and a player that lets it run. */

import type { Notice, Reply, Request, Taken } from "../protocol.ts";
import { buffersOf } from "./frames.ts";
import { Engine, Fault, Refused } from "./module.ts";
import { Player } from "./player.ts";

/** The first message: the module, which the page has compiled once for all workers. */
export interface Begin {
  module: WebAssembly.Module;
}

const scope = self as unknown as DedicatedWorkerGlobalScope;
const FRAME_MS = 1000 / 60;
let player: Player | null = null;
/** Requests that came before the module was ready. */
let early: Request[] | null = [];
let timer: ReturnType<typeof setTimeout> | undefined;
/** Frames that the page has not taken yet. A page that is slower than the engine would have ever more of them before what one does. */
let untaken = 0;
const MOST_UNTAKEN = 2;

function notify(notice: Notice, transfer: Transferable[] = []): void {
  scope.postMessage(notice, transfer);
}

function goOn(): void {
  clearTimeout(timer);
  timer = undefined;
  if (!player?.isPlaying || untaken >= MOST_UNTAKEN) return;
  const began = performance.now();
  try {
    player.tick();
  } catch (error) {
    fail(error);
    return;
  }
  // Even if a frame took longer, requests of the page come first.
  timer = setTimeout(goOn, Math.max(0, FRAME_MS - (performance.now() - began)));
}

function fail(error: unknown): void {
  player = null;
  notify({ fault: error instanceof Error ? error.message : String(error) });
  goThroughEarly();
}

function goThroughEarly(): void {
  const requests = early ?? [];
  early = null;
  for (const request of requests) take(request);
}

async function begin({ module }: Begin): Promise<void> {
  const engine = await Engine.of(module);
  player = new Player(engine, {
    now: () => performance.now(),
    send: (frame) => {
      untaken++;
      notify({ frame }, buffersOf(frame));
    },
  });
  notify({ ready: { version: engine.ask<string>({ do: "version" }).value } });
  goThroughEarly();
}

scope.onmessage = ({ data }: MessageEvent<Begin | Request | Taken>) => {
  if (data === "taken") {
    untaken--;
    if (!timer) goOn();
  } else if ("module" in data) {
    begin(data).catch(fail);
  } else if (early) {
    early.push(data);
  } else {
    take(data);
  }
};

function take(data: Request): void {
  let reply: Reply;
  try {
    if (!player) throw new Fault("the engine has failed; reload the page");
    reply = { id: data.id, ok: true, value: player.answer(data) };
  } catch (error) {
    if (error instanceof Refused) {
      reply = { id: data.id, ok: false, problem: error.problem };
    } else {
      fail(error);
      const text = error instanceof Error ? error.message : String(error);
      reply = { id: data.id, ok: false, problem: { text, key: "", line: null, column: null, length: null } };
    }
  }
  scope.postMessage(reply);
  if (!timer) goOn();
}
