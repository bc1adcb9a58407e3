/**
 * The issued tokens, kept in memory from their commits by every process: a request asks no log.
 *
 * What is held is the log's within moments. A process that is cut off hears of no revocation, so it
 * looks again and again whether it has all that the log has, and trusts what it holds for as long
 * as that was so not too long ago.
 *
 * Source: decision 0153.
 */
import { Clock, Effect } from "effect"
import type { Process } from "#actors/process.ts"
import { type LivingToken, Token, tokenAfter } from "#actors/system/token.ts"
import { Log, parseStream } from "#events/log.ts"

/** Between two looks whether all tokens are known, in milliseconds. */
const look_ms = 5_000

/** The same where something was missing, in milliseconds. */
const soon_ms = 200

/**
 * How long a token is taken after the last such look, in milliseconds: six of them, so that a new
 * leader of the log, which takes four to nine seconds, is not noticed.
 */
export const stale_ms_max = 30_000

/**
 * What a process holds of the issued tokens: nothing, until it learns of them. They are trusted for
 * `stale_ms` without the log: for ever where nobody else has the log, and so nobody else revokes.
 */
export const heldTokens = (stale_ms: number) => {
  const tokens = new Map<string, LivingToken>()
  let position = 0
  let looked_at = -Infinity
  return {
    /** The token of this hash, where it surely holds at `now`, or did until it expired. */
    find: (sha256: string, now: number) =>
      now - looked_at > stale_ms ? undefined : tokens.get(sha256),
    /** Place in the log of the newest commit that it has. */
    position: () => position,
    learn: (sha256: string, token: LivingToken | undefined, at: number) => {
      // A commit may be seen again, and what is revoked must not come back.
      if (at <= position) return
      position = at
      if (token === undefined) tokens.delete(sha256)
      else tokens.set(sha256, token)
    },
    /** All that the log had at `now` is held. What expired is left to the log. */
    confirm: (now: number) => {
      looked_at = now
      for (const [sha256, { expires_at }] of tokens) {
        if (expires_at !== null && expires_at <= now) tokens.delete(sha256)
      }
    },
  }
}

export type HeldTokens = ReturnType<typeof heldTokens>

/** Keeps them up to date; it sends no commands. */
export const tokenKeeping = ({ learn }: Pick<HeldTokens, "learn">): Process => ({
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

/** Looks again and again whether all that the log has is held. It never ends. */
export const tokenConfirming = ({ position, confirm }: HeldTokens) =>
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
