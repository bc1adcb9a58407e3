/**
 * The issued tokens. Every process keeps them in memory, so that requests do not read the log.
 *
 * The copy follows the log within moments. A disconnected process would miss revocations, so it
 * checks periodically that it has every commit, and trusts its copy only for a limited time after
 * the last successful check.
 *
 * Source: decision 0153.
 */
import { Clock, Effect } from "effect"
import type { Process } from "#actors/process.ts"
import { type LivingToken, Token, tokenAfter } from "#actors/system/token.ts"
import { Log, parseStream } from "#events/log.ts"

/** Interval between checks that all tokens are known, in milliseconds. */
const look_ms = 5_000

/** The interval after a failed check, in milliseconds. */
const soon_ms = 200

/**
 * How long tokens are accepted after the last successful check, in milliseconds: six intervals, so
 * that a leader election of the log, which takes four to nine seconds, has no effect.
 */
export const stale_ms_max = 30_000

/**
 * A process's copy of the issued tokens; it starts empty. It is trusted for `stale_ms` without the
 * log; without limit if no other process has the log, because then no other process can revoke.
 */
export const makeTokenCache = (stale_ms: number) => {
  const tokens = new Map<string, LivingToken>()
  let position = 0
  let looked_at = -Infinity
  return {
    /** The token with this hash, if the copy is current at `now`. It may have expired. */
    find: (sha256: string, now: number) =>
      now - looked_at > stale_ms ? undefined : tokens.get(sha256),
    /** Log position of the newest commit in the copy. */
    position: () => position,
    learn: (sha256: string, token: LivingToken | undefined, at: number) => {
      // Commits may be delivered twice, and revoked tokens must not return.
      if (at <= position) return
      position = at
      if (token === undefined) tokens.delete(sha256)
      else tokens.set(sha256, token)
    },
    /** The copy was complete at `now`. Expired tokens are dropped. */
    confirm: (now: number) => {
      looked_at = now
      for (const [sha256, { expires_at }] of tokens) {
        if (expires_at !== null && expires_at <= now) tokens.delete(sha256)
      }
    },
  }
}

export type TokenCache = ReturnType<typeof makeTokenCache>

/** Keeps the copy up to date; it sends no commands. */
export const tokenKeeping = ({ learn }: Pick<TokenCache, "learn">): Process => ({
  name: "system-tokens",
  part: Token.name,
  from: "lasts",
  start: Effect.gen(function* () {
    const log = yield* Log
    return {
      fold: Effect.fnUntraced(function* (recorded) {
        const { id } = parseStream(recorded.stream)
        learn(id, yield* tokenAfter(log, recorded), recorded.position)
      }),
      due: () => ({ now: [] }),
    }
  }),
})

/** Checks periodically that the copy is complete. It never ends. */
export const tokenConfirming = ({ position, confirm }: TokenCache) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const head = yield* (yield* Log).head(Token.name)
    const is_all = head <= position()
    if (is_all) confirm(now)
    return is_all
  }).pipe(
    Effect.orElseSucceed(() => false),
    Effect.flatMap((is_all) => Effect.sleep(is_all ? look_ms : soon_ms)),
    Effect.forever,
  )
