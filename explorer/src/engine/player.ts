/** Lets a session of the engine run at a speed, and sends frames. It knows of no worker: its caller gives it time. */

import type { Changed, Frame, Opened, Request, Sought } from "../protocol.ts";
import { frameOf, type Header } from "./frames.ts";
import type { Engine } from "./module.ts";

/** The engine works at most so long in one go, so that a slider acts soon. */
const GO_MS = 10;

interface Progress {
  timeS: number;
  ended: boolean;
  generation: number;
}

type Columns = { columns: unknown[] };

/** What a player needs of the world. */
export interface World {
  /** A clock in ms. */
  now(): number;
  /** Where frames go. */
  send(frame: Frame): void;
}

/** A session that plays. */
export class Player {
  readonly #engine: Engine;
  readonly #world: World;
  #columns: number[] = [];
  #speed = 0;
  #timeS = 0;
  #ended = false;
  /** Simulated seconds that a go may take, from how long the last one took. */
  #pieceS = 0.001;
  #last = 0;

  constructor(engine: Engine, world: World) {
    this.#engine = engine;
    this.#world = world;
  }

  /** It plays, and is not at its end. */
  get isPlaying(): boolean {
    return this.#speed > 0 && !this.#ended;
  }

  /** Goes on by as much as the wall clock has, and sends a frame. */
  tick(): void {
    const { now } = this.#world;
    const began = now();
    // After a pause of the page, for example, it does not run after the time it has lost.
    const wanted = this.#timeS + (Math.min(began - this.#last, 100) / 1000) * this.#speed;
    this.#last = began;
    this.#goOn(wanted, began);
    this.#send(began);
  }

  #goOn(wanted: number, began: number): void {
    const { now } = this.#world;
    while (this.#timeS < wanted && !this.#ended) {
      const start = now();
      const before = this.#timeS;
      this.#take(this.#engine.ask<Progress>({ do: "advance", untilS: Math.min(wanted, before + this.#pieceS) }).value);
      const took = Math.max(now() - start, 0.05);
      if (this.#timeS - before >= this.#pieceS * 0.99) {
        this.#pieceS = Math.min(Math.max(this.#pieceS * Math.min(2, GO_MS / 3 / took), 1e-5), 10);
      }
      if (now() - began > GO_MS) return;
    }
  }

  #take({ timeS, ended }: Progress): void {
    this.#timeS = timeS;
    this.#ended = ended;
  }

  #send(began: number): void {
    const { value, numbers } = this.#engine.ask<Header>({ do: "frame" });
    this.#take({ ...value, generation: value.generation });
    this.#world.send(frameOf(value, numbers, this.#columns, this.#world.now() - began));
  }

  #describe(which: number, opened: Columns | null): void {
    if (which === 0 && this.#columns.length === 0) this.#columns.push(0);
    this.#columns.length = opened ? Math.max(this.#columns.length, which + 1) : which;
    if (opened) this.#columns[which] = opened.columns.length;
  }

  /** Answers a request of the page. */
  answer(request: Request): unknown {
    const began = this.#world.now();
    switch (request.do) {
      case "open": {
        const { toml, seed, atS } = request;
        const opened = this.#engine.ask<Opened>({ do: "open", toml, seed }).value;
        this.#columns = [opened.columns.length];
        [this.#timeS, this.#ended, this.#speed] = [0, false, 0];
        if (atS) this.#take(this.#engine.ask<Progress>({ do: "seek", timeS: atS }).value);
        this.#send(began);
        return opened;
      }
      case "play":
        this.#speed = Math.min(Math.max(request.speed, 0), 1e6);
        this.#last = began;
        return null;
      case "pause":
        this.#speed = 0;
        return null;
      case "step":
        this.#take(this.#engine.ask<Progress>({ do: "step", link: request.link }).value);
        this.#send(began);
        return null;
      case "seek": {
        const sought = this.#engine.ask<Progress & Sought>({ do: "seek", timeS: request.timeS }).value;
        this.#take(sought);
        this.#send(began);
        return { undone: sought.undone, opened: sought.opened };
      }
      case "set":
      case "text": {
        const { id: _, ...asked } = request;
        const changed = this.#engine.ask<Changed>(asked).value;
        this.#describe(request.which, changed.opened);
        this.#send(began);
        return changed;
      }
      case "compare": {
        const opened = this.#engine.ask<Opened | null>({ do: "compare", toml: request.toml }).value;
        this.#describe(1, opened);
        this.#send(began);
        return opened;
      }
      default: {
        const { id: _, ...asked } = request;
        return this.#engine.ask(asked).value;
      }
    }
  }
}
