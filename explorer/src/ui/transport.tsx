// Play, pause, step, speed, seed and time.

import { useEffect, useState } from "preact/hooks";
import { seconds } from "./format.ts";
import { whyNext } from "./shortcuts.ts";
import * as store from "./store.ts";

/** The controls of the run as a whole. */
export function Transport() {
  const opened = store.first.value?.opened;
  const playing = store.playing.value;
  const duration = opened?.durationS ?? 0;
  const speeds = [...new Set([...store.SPEEDS, store.speed.value])].sort((a, b) => a - b);
  return (
    <div class="transport" role="toolbar" aria-label="Run">
      <button
        type="button"
        class="main"
        onClick={() => void (playing ? store.pause() : store.play())}
        aria-keyshortcuts="Space"
      >
        {playing ? "❚❚ Pause" : "▶ Play"}
      </button>
      <button type="button" onClick={() => void store.restart()} aria-keyshortcuts="r" title="Back to time zero (r)">
        ↺ Restart
      </button>
      <button
        type="button"
        onClick={() => void store.step()}
        aria-keyshortcuts="."
        title="On to the next packet that comes to this link (.)"
      >
        Next packet
      </button>
      <button
        type="button"
        onClick={() => void whyNext()}
        aria-keyshortcuts="d"
        title={`On to the next drop or mark at this link, and why (d); it looks at up to ${store.MOST_STEPS} packets`}
      >
        Next drop
      </button>
      <label>
        Speed{" "}
        <select value={store.speed.value} onChange={(event) => void store.setSpeed(Number(event.currentTarget.value))}>
          {speeds.map((value) => (
            <option key={value} value={value}>
              {value} ×
            </option>
          ))}
        </select>
      </label>
      <Seed />
      <Clock duration={duration} />
    </div>
  );
}

/** The time, which one can move. */
function Clock(props: { duration: number }) {
  const { duration } = props;
  const [wanted, setWanted] = useState<number | null>(null);
  const shown = wanted ?? Math.min(store.time.value, duration);
  return (
    <div class="clock">
      <b>{seconds(shown)}</b>
      <span class="of"> of {duration} s</span>
      <input
        type="range"
        aria-label="Time"
        aria-valuetext={`${seconds(shown)} of ${duration} s`}
        title="To another time; going back, your changes act again at their times"
        min={0}
        max={duration}
        step={duration / 200 || 1}
        value={shown}
        onInput={(event) => setWanted(Number(event.currentTarget.value))}
        onChange={async (event) => {
          await store.seek(Number(event.currentTarget.value));
          setWanted(null);
        }}
      />
    </div>
  );
}

function Seed() {
  const [text, setText] = useState(store.seed.value);
  useEffect(() => setText(store.seed.value), [store.seed.value]);
  return (
    <label>
      Seed{" "}
      <input
        class="seed"
        inputMode="numeric"
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={(event) => void store.setSeed(event.currentTarget.value.trim())}
      />
    </label>
  );
}
