/**
 * The tokens that `token issue` makes, which every process of a deployment knows: their hashes and
 * what they grant are in the log, and each process holds them in memory.
 *
 * Source: decisions, "secrets and trusts"; decision 0153.
 */
import { randomBytes } from "node:crypto"
import { Clock, DateTime, Effect, Redacted, Schedule, Semaphore, Stream } from "effect"
import { v7 } from "uuid"
import { address, Commands } from "#actors/commands.ts"
import { keepRunning } from "#actors/process.ts"
import { heldTokens, tokenConfirming, tokenKeeping } from "#actors/system/issued-tokens.ts"
import { type LivingToken, Token, tokenAfter } from "#actors/system/token.ts"
import { derivedBytes, key_reused } from "#adapters/identity/repeated-credential.ts"
import {
  hasExpired,
  newToken,
  sha256Of,
  type TokenRecord,
  type TokenStore,
  tokens_max,
  unavailable,
} from "#adapters/identity/token-store.ts"
import { Log, type Origin } from "#events/log.ts"
import { type IdentityUnavailable, TokenIssuer } from "#gateway/identity.ts"
import { Conflict, NotFound } from "#schemas/system/rejection.ts"
import { IssueToken, RevokeToken, type TokenCommand } from "#schemas/system/token.ts"
import { isScope, type TokenRequest } from "#schemas/token.ts"

/** Questions to the log for tokens that this process does not know: all strangers share them. */
const asked_max = 16

/** As the key of a server's own, in bytes. */
const retry_key_bytes = 32

/** How long such a question waits, its turn included, in milliseconds. */
const ask_ms_max = 2_000

/** How long a revocation waits until this process has heard of it, in milliseconds. */
const heard_ms_max = 2_000
const look_ms = 5

/** What a process asks of the issued tokens. */
export interface IssuedTokens {
  /** At once: the token of this hash, where it surely holds, or did until it expired. */
  readonly find: (sha256: string) => LivingToken | undefined
  /** The same of the log: of a token that was issued this moment, and where `find` is not sure. */
  readonly ask: (sha256: string) => Effect.Effect<LivingToken | undefined, IdentityUnavailable>
}

const told = ({ detail }: { readonly detail: string }) => unavailable({ message: detail })

/** As told; a key that came with another body before is said to be that. */
const toldOfKey = (failure: { readonly detail: string; readonly is_reused?: boolean }) =>
  failure.is_reused === true ? key_reused : told(failure)

const too_late = Effect.fail(
  unavailable({ message: "The log was not asked in time whether it knows the token." }),
)

/**
 * Holds them, and issues and revokes, for as long as the scope lives. What is held is trusted for
 * `stale_ms` without the log.
 */
export const issuedTokens = Effect.fnUntraced(function* (stale_ms: number, retry_key?: Uint8Array) {
  const log = yield* Log
  const clock = yield* Clock.Clock
  const issuer = yield* logIssuerWith(retry_key)
  const held = heldTokens(stale_ms)
  const asking = yield* Semaphore.make(asked_max)
  yield* Effect.forkScoped(keepRunning(tokenKeeping(held)))
  yield* Effect.forkScoped(tokenConfirming(held))
  const heard = (position: number) =>
    Effect.suspend(() => (held.position() >= position ? Effect.void : Effect.fail("not yet"))).pipe(
      Effect.retry(Schedule.spaced(look_ms)),
      // It is revoked in the log, and this process hears of it as any other.
      Effect.timeoutOption(heard_ms_max),
      Effect.ignore,
    )
  const tokens: IssuedTokens = {
    find: (sha256) => held.find(sha256, clock.currentTimeMillisUnsafe()),
    ask: (sha256) =>
      log.load(`${Token.name}.${sha256}`).pipe(
        Effect.flatMap((last) => (last === undefined ? Effect.undefined : tokenAfter(log, last))),
        Effect.mapError(told),
        asking.withPermit,
        Effect.timeoutOrElse({ duration: ask_ms_max, orElse: () => too_late }),
      ),
  }
  return {
    tokens,
    issuer: TokenIssuer.of({
      issue: issuer.issue,
      revoke: Effect.fnUntraced(function* (name, origin) {
        const { count, position } = yield* issuer.revoke(name, origin)
        yield* heard(position)
        return count
      }),
    }),
  }
})

/** Commands that are sent at the same time: they share one write of the log. */
const sent_at_once = 32

const isoAt = (now: number) => DateTime.formatIso(DateTime.makeUnsafe(now))

/**
 * Issues and revokes over the log. A request that may come again gets the same token each time,
 * where there is a key to derive it from. IdentityUnavailable: none carries it out, or too many do.
 */
const logIssuerWith = Effect.fnUntraced(function* (retry_key?: Uint8Array) {
  const log = yield* Log
  const commands = yield* Commands
  /** Every token of the log that still holds at `now`. */
  const living = (now: number) =>
    log.lasts(Token.name).pipe(
      Stream.mapEffect((last) => tokenAfter(log, last)),
      Stream.filter((token) => token !== undefined),
      Stream.filter((token) => !hasExpired(token, now)),
      Stream.runCollect,
      Effect.mapError(told),
    )
  const send = (origin: Origin, sha256: string, command: TokenCommand) =>
    commands.send(origin, address(Token, sha256, command))

  const issue = Effect.fnUntraced(function* (
    { name, ttl_seconds, ...grant }: TokenRequest,
    origin: Origin,
  ) {
    const now = yield* Clock.currentTimeMillis
    if ((yield* living(now)).length >= tokens_max) {
      return yield* unavailable({ message: `at most ${tokens_max} tokens are kept: revoke some` })
    }
    const token = newToken(retry_key && derivedBytes(retry_key, "token", origin))
    const command = IssueToken.make({
      name: name ?? v7(),
      scopes: grant.scopes,
      roles: grant.roles,
      project_id: grant.project_id ?? null,
      domain_id: grant.domain_id ?? null,
      user_id: grant.user_id ?? null,
      expires_at: ttl_seconds === undefined ? null : isoAt(now + ttl_seconds * 1000),
    })
    // It refuses a token that was issued before, unless this is the command that did it.
    yield* send(origin, sha256Of(token), command).pipe(Effect.mapError(toldOfKey))
    return Redacted.make(token)
  })

  /** Positions of the tokens that this command revoked when it was sent before. */
  const revokedBefore = ({ command_id, fingerprint }: Origin) =>
    fingerprint === undefined
      ? Effect.succeed([])
      : log.lasts(Token.name).pipe(
          Stream.filter(({ commit }) => commit.commands.includes(command_id)),
          Stream.map(({ position }) => position),
          Stream.runCollect,
          Effect.mapError(told),
        )

  /** Answers how many there were, and the position that shows the last of them revoked. */
  const revoke = Effect.fnUntraced(function* (name: string, origin: Origin) {
    const found = (yield* living(yield* Clock.currentTimeMillis)).filter(
      (token) => token.name === name,
    )
    const before = yield* revokedBefore(origin)
    const positions = yield* Effect.forEach(
      found,
      ({ sha256 }) =>
        send(origin, sha256, RevokeToken.make({})).pipe(
          // Somebody else was faster: then it is revoked.
          Effect.catchIf(
            (refusal) => refusal instanceof NotFound,
            () => Effect.succeed(0),
          ),
          Effect.mapError(told),
        ),
      { concurrency: sent_at_once },
    )
    const count = found.length + before.length
    return { count, position: Math.max(0, ...positions, ...before) }
  })
  return { issue, revoke }
})

/** For a program of its own: its retries under one origin get one token, no others do. */
export const logIssuer = Effect.suspend(() => logIssuerWith(randomBytes(retry_key_bytes)))

/** Pause before a file's tokens are told again, in milliseconds. */
const retry_ms = 5_000

/**
 * Tells the log of the tokens that a release before this one kept in the machine's own file, but
 * for those of the name `own`, and takes them out of it: then they can be revoked as all others.
 */
export const adoptTokens = Effect.fnUntraced(function* (store: TokenStore, own: string) {
  const commands = yield* Commands
  const at = isoAt(yield* Clock.currentTimeMillis)
  const isOld = ({ kind, name }: TokenRecord) => kind === "issued" && name !== own
  const old = store.all().filter(isOld)
  const adopt = ({ sha256, expires_at, ...granted }: TokenRecord) => {
    const { name, scopes, roles, project_id, domain_id, user_id } = granted
    const command = IssueToken.make({
      name,
      scopes: scopes.filter(isScope),
      roles,
      project_id,
      domain_id,
      user_id,
      expires_at: expires_at === null ? null : isoAt(expires_at),
    })
    const origin = { command_id: `adopt-${sha256}`, actor: "process:tokens", at }
    return Effect.catchIf(
      commands.send(origin, address(Token, sha256, command)),
      (refusal) => refusal instanceof Conflict,
      () => Effect.succeed(0),
    )
  }
  const adopted = new Set<string>()
  const adopting = Effect.forEach(
    old,
    (record) => Effect.tap(adopt(record), () => Effect.sync(() => adopted.add(record.sha256))),
    { concurrency: sent_at_once, discard: true },
  )
  const taken = Effect.suspend(() =>
    adopted.size === 0
      ? Effect.void
      : store.update((kept) => kept.filter(({ sha256 }) => !adopted.has(sha256))),
  )
  if (old.length === 0) return
  // Also where others failed: what was told may be revoked, and the file hears nothing of that.
  yield* Effect.exit(adopting).pipe(
    Effect.flatMap((ended) => Effect.andThen(taken, ended)),
    Effect.retry(Schedule.spaced(retry_ms)),
    Effect.forkScoped,
  )
})
