/**
 * A machine with a wrong clock: preloaded before a program (`node --import`), this file shifts
 * dates by TEST_CLOCK_SKEW_MS milliseconds. No product setting does this.
 */
import { fileURLToPath } from "node:url"

const skew_ms = Number(process.env.TEST_CLOCK_SKEW_MS ?? 0)

if (skew_ms !== 0) {
  const Right = Date
  const now = () => Right.now() + skew_ms
  globalThis.Date = new Proxy(Right, {
    construct: (target, given, made) =>
      Reflect.construct(target, given.length === 0 ? [now()] : given, made),
    get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
  })
}

/** The environment of a process whose clock is off by this much. */
export const skewed = (ms: number): Readonly<Record<string, string>> =>
  ms === 0
    ? {}
    : {
        TEST_CLOCK_SKEW_MS: String(ms),
        NODE_OPTIONS: `--import=${fileURLToPath(import.meta.url)}`,
      }
