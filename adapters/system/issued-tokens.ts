/**
 * Tokens of `token issue`, valid in every process of a deployment: their hashes and grants are in
 * the log, and each process caches them in memory.
 *
 * Source: decisions, "secrets and trusts"; decision 0153.
 */
import { randomBytes } from "node:crypto"
import { Clock, DateTime, Effect, Redacted, Schedule, Semaphore, Stream } from "effect"
import { v7 } from "uuid"
import { address, Commands } from "#actors/commands.ts"
import { keepRunning } from "#actors/process.ts"
import { makeTokenCache, tokenConfirming, tokenKeeping } from "#actors/system/issued-tokens.ts"
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

/** Maximum concurrent lookups in the log for unknown tokens, shared by all callers. */
const lookups_max = 16

/** Size of the retry key in bytes, equal to a server's own. */
const retry_key_bytes = 32

/** Timeout of such a lookup in milliseconds, including its wait. */
const lookup_ms_max = 2_000

/** How long a revocation waits until this process has applied it, in milliseconds. */
const applied_ms_max = 2_000
const poll_ms = 5

/** Lookups of issued tokens. */
export interface IssuedTokens {
  /** Synchronous: the token of this hash, if it is certainly valid or was until it expired. */
  readonly find: (sha256: string) => LivingToken | undefined
  /** Searches the log: for tokens that were just issued, or that `find` is unsure about. */
  readonly lookUp: (sha256: string) => Effect.Effect<LivingToken | undefined, IdentityUnavailable>
}

const asUnavailable = ({ detail }: { readonly detail: string }) => unavailable({ message: detail })

/** Maps a rejection. A retry key that was used with a different request has its own error. */
const issueFailure = (failure: { readonly detail: string; readonly is_reused?: boolean }) =>
  failure.is_reused === true ? key_reused : asUnavailable(failure)

const too_late = Effect.fail(
  unavailable({ message: "The token could not be looked up in the log in time." }),
)

/**
 * Caches, issues and revokes tokens until the scope closes. Cached tokens are trusted for
 * `stale_ms` without contact with the log.
 */
export const issuedTokens = Effect.fnUntraced(function* (stale_ms: number, retry_key?: Uint8Array) {
  const log = yield* Log
  const clock = yield* Clock.Clock
  const issuer = yield* logIssuerWith(retry_key)
  const cache = makeTokenCache(stale_ms)
  const lookups = yield* Semaphore.make(lookups_max)
  yield* Effect.forkScoped(keepRunning(tokenKeeping(cache)))
  yield* Effect.forkScoped(tokenConfirming(cache))
  const awaitApplied = (position: number) =>
    Effect.suspend(() =>
      cache.position() >= position ? Effect.void : Effect.fail("not yet"),
    ).pipe(
      Effect.retry(Schedule.spaced(poll_ms)),
      // It is revoked in the log; this process learns of it like any other.
      Effect.timeoutOption(applied_ms_max),
      Effect.ignore,
    )
  const tokens: IssuedTokens = {
    find: (sha256) => cache.find(sha256, clock.currentTimeMillisUnsafe()),
    lookUp: (sha256) =>
      log.load(`${Token.name}.${sha256}`).pipe(
        Effect.flatMap((last) => (last === undefined ? Effect.undefined : tokenAfter(log, last))),
        Effect.mapError(asUnavailable),
        lookups.withPermit,
        Effect.timeoutOrElse({ duration: lookup_ms_max, orElse: () => too_late }),
      ),
  }
  return {
    tokens,
    issuer: TokenIssuer.of({
      issue: issuer.issue,
      revoke: Effect.fnUntraced(function* (name, origin) {
        const { count, position } = yield* issuer.revoke(name, origin)
        yield* awaitApplied(position)
        return count
      }),
    }),
  }
})

/** Maximum concurrent commands, which share one write of the log. */
const concurrent_max = 32

const isoAt = (now: number) => DateTime.formatIso(DateTime.makeUnsafe(now))

/**
 * Issues and revokes over the log. With a retry key, a repeated request gets the same token. Fails
 * with IdentityUnavailable if no host responds or all are busy.
 */
const logIssuerWith = Effect.fnUntraced(function* (retry_key?: Uint8Array) {
  const log = yield* Log
  const commands = yield* Commands
  /** Every token of the log that is valid at `now`. */
  const validTokens = (now: number) =>
    log.lasts(Token.name).pipe(
      Stream.mapEffect((last) => tokenAfter(log, last)),
      Stream.filter((token) => token !== undefined),
      Stream.filter((token) => !hasExpired(token, now)),
      Stream.runCollect,
      Effect.mapError(asUnavailable),
    )
  const send = (origin: Origin, sha256: string, command: TokenCommand) =>
    commands.send(origin, address(Token, sha256, command))

  const issue = Effect.fnUntraced(function* (
    { name, ttl_seconds, ...grant }: TokenRequest,
    origin: Origin,
  ) {
    const now = yield* Clock.currentTimeMillis
    if ((yield* validTokens(now)).length >= tokens_max) {
      return yield* unavailable({
        message: `the limit of ${tokens_max} tokens is reached: revoke some`,
      })
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
    // Rejects a token that was issued before, unless by this same command.
    yield* send(origin, sha256Of(token), command).pipe(Effect.mapError(issueFailure))
    return Redacted.make(token)
  })

  /** Positions of the tokens that an earlier attempt of this command revoked. */
  const revokedBefore = ({ command_id, fingerprint }: Origin) =>
    fingerprint === undefined
      ? Effect.succeed([])
      : log.lasts(Token.name).pipe(
          Stream.filter(({ commit }) => commit.commands.includes(command_id)),
          Stream.map(({ position }) => position),
          Stream.runCollect,
          Effect.mapError(asUnavailable),
        )

  /** Returns the number of revoked tokens and the position of the last revocation. */
  const revoke = Effect.fnUntraced(function* (name: string, origin: Origin) {
    const found = (yield* validTokens(yield* Clock.currentTimeMillis)).filter(
      (token) => token.name === name,
    )
    const before = yield* revokedBefore(origin)
    const positions = yield* Effect.forEach(
      found,
      ({ sha256 }) =>
        send(origin, sha256, RevokeToken.make({})).pipe(
          // A concurrent request revoked it.
          Effect.catchIf(
            (refusal) => refusal instanceof NotFound,
            () => Effect.succeed(0),
          ),
          Effect.mapError(asUnavailable),
        ),
      { concurrency: concurrent_max },
    )
    const count = found.length + before.length
    return { count, position: Math.max(0, ...positions, ...before) }
  })
  return { issue, revoke }
})

/** For a standalone program: its retries under one origin get the same token. */
export const logIssuer = Effect.suspend(() => logIssuerWith(randomBytes(retry_key_bytes)))

/** Pause before the migration is retried in milliseconds. */
const retry_ms = 5_000

/**
 * Moves tokens that an earlier release kept in the machine's own file to the log, except those
 * named `own`, so that they can be revoked like all others.
 */
export const adoptTokens = Effect.fnUntraced(function* (store: TokenStore, own: string) {
  const commands = yield* Commands
  const at = isoAt(yield* Clock.currentTimeMillis)
  const isOld = ({ kind, name }: TokenRecord) => kind === "issued" && name !== own
  const old = store.all().filter(isOld)
  const adopt = ({ sha256, expires_at, ...grant }: TokenRecord) => {
    const { name, scopes, roles, project_id, domain_id, user_id } = grant
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
    { concurrency: concurrent_max, discard: true },
  )
  const removeAdopted = Effect.suspend(() =>
    adopted.size === 0
      ? Effect.void
      : store.update((records) => records.filter(({ sha256 }) => !adopted.has(sha256))),
  )
  if (old.length === 0) return
  // Even if others failed: a moved token may be revoked, which the file would not show.
  yield* Effect.exit(adopting).pipe(
    Effect.flatMap((result) => Effect.andThen(removeAdopted, result)),
    Effect.retry(Schedule.spaced(retry_ms)),
    Effect.forkScoped,
  )
})
