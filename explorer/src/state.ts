/**
 * The state of the page as a link carries it: in the fragment, which browsers send to no server.
 *
 * `#g=ID` names a scenario of the gallery; `#s=…` is everything: JSON, deflated, in base64url. `decodeState` accepts any text: it returns
 * a state within bounds or says what is wrong, and never throws. Texts of a link are untrusted; the page shows them by `textContent`.
 */

/** A parameter that was changed while the run went on. */
export interface Change {
  atS: number;
  which: 0 | 1;
  path: string;
  /** In TOML. */
  value: string;
}

/** What a link carries. */
export interface PageState {
  /** The scenario at time zero. */
  toml: string;
  /** The scenario beside it, on the same seed; null without. */
  compare: string | null;
  /** Decimal digits of 64 bits. */
  seed: string;
  /** How far the run had come. */
  atS: number;
  /** Changes since time zero, in order. */
  changes: Change[];
  /** Simulated seconds per second. */
  speed: number;
  /** The link that the charts show; empty for the first. */
  link: string;
  /** The panel that is open. */
  panel: Panel;
  /** The scenario of the gallery that it began with; empty if none. */
  gallery: string;
  /** The name of the file that `perhop explore` opens; empty in a link that a page has made. */
  file: string;
}

/** The panels beside the charts. */
export const PANELS = ["parameters", "scenario", "why", "seeds"] as const;
export type Panel = (typeof PANELS)[number];

/** What a fragment says. */
export type Decoded =
  | { kind: "none" }
  | { kind: "gallery"; id: string }
  | { kind: "state"; state: PageState }
  | { kind: "wrong"; message: string };

/** A link may be this long, and its state this large once inflated. */
export const MOST_LINK = 60_000;
export const MOST_STATE = 400_000;
const MOST_TOML = 150_000;
/** A slider that is moved for some seconds makes hundreds. */
export const MOST_CHANGES = 2000;
const MOST_NAME = 300;
const MOST_VALUE = 20_000;
const MOST_SEED = 18_446_744_073_709_551_615n;

class Wrong extends Error {}

/** The fragment (with `#`) that carries this state. */
export async function encodeState(state: PageState): Promise<string> {
  const text = new TextEncoder().encode(JSON.stringify({ v: 1, ...state }));
  const packed = await all(
    new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw")),
    Number.MAX_SAFE_INTEGER,
  );
  let binary = "";
  for (let i = 0; i < packed.length; i += 8192) binary += String.fromCharCode(...packed.subarray(i, i + 8192));
  return `#s=${btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/** What this fragment says; any text is answered. */
export async function decodeState(fragment: string): Promise<Decoded> {
  const text = fragment.replace(/^#/, "");
  if (text === "") return { kind: "none" };
  try {
    if (text.startsWith("g=")) {
      const id = text.slice(2);
      if (!/^[a-z0-9-]{1,60}$/.test(id))
        throw new Wrong("the name of a scenario in the gallery has letters, digits and hyphens");
      return { kind: "gallery", id };
    }
    if (!text.startsWith("s=")) throw new Wrong("expected `#s=` with a state or `#g=` with a scenario of the gallery");
    if (text.length > MOST_LINK) throw new Wrong(`it has ${text.length} characters; at most ${MOST_LINK} are read`);
    return { kind: "state", state: checked(JSON.parse(await unpacked(text.slice(2)))) };
  } catch (error) {
    const why = error instanceof Wrong ? error.message : "its end is missing or it was altered; ask for the whole link";
    return { kind: "wrong", message: `This link cannot be read: ${why}.` };
  }
}

async function unpacked(encoded: string): Promise<string> {
  if (!/^[A-Za-z0-9_-]+$/.test(encoded)) throw new Wrong("it has characters that such a link does not have");
  const binary = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new TextDecoder("utf-8", { fatal: true }).decode(await all(stream, MOST_STATE));
}

/** All bytes of a stream, of which there may be at most so many. */
async function all(stream: ReadableStream<Uint8Array>, most: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) {
      await reader.cancel().catch(() => {});
      throw new Wrong(`its state has more than ${most} bytes`);
    }
    parts.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function checked(value: unknown): PageState {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Wrong("its state is not an object");
  const of = value as Record<string, unknown>;
  if (of.v !== 1) throw new Wrong("its state has another version than 1");
  const changes = of.changes ?? [];
  if (!Array.isArray(changes) || changes.length > MOST_CHANGES)
    throw new Wrong(`\`changes\`: expected at most ${MOST_CHANGES}`);
  const compare = of.compare ?? null;
  return {
    toml: text(of.toml, "toml", MOST_TOML),
    compare: compare === null ? null : text(compare, "compare", MOST_TOML),
    seed: seedOf(of.seed),
    atS: within(of.atS ?? 0, "atS", 0, 1e6),
    changes: changes.map(change),
    speed: within(of.speed ?? 1, "speed", 0.001, 10_000),
    link: text(of.link ?? "", "link", MOST_NAME),
    panel: PANELS.find((panel) => panel === of.panel) ?? "parameters",
    gallery: text(of.gallery ?? "", "gallery", MOST_NAME),
    file: text(of.file ?? "", "file", MOST_NAME),
  };
}

function change(value: unknown): Change {
  if (typeof value !== "object" || value === null) throw new Wrong("`changes`: expected objects");
  const of = value as Record<string, unknown>;
  return {
    atS: within(of.atS, "atS", 0, 1e6),
    which: of.which === 1 ? 1 : 0,
    path: text(of.path, "path", MOST_NAME),
    value: text(of.value, "value", MOST_VALUE),
  };
}

function text(value: unknown, name: string, most: number): string {
  if (typeof value !== "string") throw new Wrong(`\`${name}\`: expected a text`);
  if (value.length > most) throw new Wrong(`\`${name}\`: longer than ${most} characters`);
  return value;
}

function within(value: unknown, name: string, least: number, most: number): number {
  if (typeof value !== "number" || !(value >= least && value <= most)) {
    throw new Wrong(`\`${name}\`: expected a number from ${least} to ${most}`);
  }
  return value;
}

function seedOf(value: unknown): string {
  if (typeof value !== "string" || !isSeed(value))
    throw new Wrong("`seed`: expected decimal digits of a number of 64 bits");
  return value;
}

/** Whether this is a seed: decimal digits of a number of 64 bits. */
export function isSeed(value: string): boolean {
  return /^\d{1,20}$/.test(value) && BigInt(value) <= MOST_SEED;
}
