/** The issued tokens: their hashes and grants, in one private file. */
import { hash, randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect, Option, Schema, Semaphore } from "effect"
import { findBounded, writePrivate } from "#files"
import { IdentityUnavailable } from "#gateway/identity.ts"

/** Stored record of an issued token, without the token itself. */
export const TokenRecord = Schema.Struct({
  /** Lower-case hex. */
  sha256: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/)),
  name: Schema.String,
  kind: Schema.Literals(["issued", "development"]),
  scopes: Schema.Array(Schema.String),
  roles: Schema.Array(Schema.String),
  project_id: Schema.NullOr(Schema.String),
  domain_id: Schema.NullOr(Schema.String),
  user_id: Schema.NullOr(Schema.String),
  /** Unix times in milliseconds; `expires_at` null: never. */
  created_at: Schema.Int,
  expires_at: Schema.NullOr(Schema.Int),
})

export type TokenRecord = typeof TokenRecord.Type

const TokenFile = Schema.fromJsonString(
  Schema.Struct({ version: Schema.Literal(1), tokens: Schema.Array(TokenRecord) }),
)

/** Maximum number of records: each change rewrites the file, and 10,000 are about 4 MB. */
export const tokens_max = 10_000
const file_bytes_max = 64 * 2 ** 20

/** Valid in a header by RFC 6750; the prefix lets scanners find a leaked token. */
export const token_prefix = "alm_"
/** 256 random bits, in bytes. */
const token_bytes = 32

/** A new token of 256 random bits: 47 characters, URL-safe. */
export const newToken = (bytes: Buffer = randomBytes(token_bytes)) =>
  token_prefix + bytes.toString("base64url")

export const token_pattern = /^alm_[\w-]{43}$/

/** Lower-case hex. Tokens are random, so neither a salt nor a slow hash is needed. */
export const sha256Of = (token: string) => hash("sha256", token)

/** Whether it has expired at `now`, in Unix milliseconds. */
export const hasExpired = ({ expires_at }: Pick<TokenRecord, "expires_at">, now: number) =>
  expires_at !== null && now >= expires_at

export interface TokenStore {
  readonly find: (sha256: string) => TokenRecord | undefined
  readonly all: () => ReadonlyArray<TokenRecord>
  /** Replaces the records with the result of `change`; durable when it completes. */
  readonly update: (
    change: (records: ReadonlyArray<TokenRecord>) => ReadonlyArray<TokenRecord>,
  ) => Effect.Effect<void, IdentityUnavailable>
}

/**
 * Opens `identity/tokens.json` in the data folder. Only the process that holds the folder's lock
 * may do so; others send requests to the running server. Fails if the file is invalid.
 */
export const openTokenStore = Effect.fnUntraced(function* (data_dir: string) {
  const path = join(data_dir, "identity", "tokens.json")
  const text = yield* Effect.mapError(findBounded(path, file_bytes_max), unavailable)
  const records = Option.isNone(text) ? [] : (yield* decoded(path, text.value)).tokens
  let by_hash = byHash(records)
  const one_at_a_time = yield* Semaphore.make(1)
  const update: TokenStore["update"] = (change) =>
    one_at_a_time.withPermit(
      Effect.gen(function* () {
        const tokens = change([...by_hash.values()])
        if (tokens.length > tokens_max) {
          const message = `the limit of ${tokens_max} tokens is reached: revoke some`
          return yield* new IdentityUnavailable({ message })
        }
        const file = Schema.encodeSync(TokenFile)({ version: 1, tokens })
        yield* Effect.mapError(writePrivate(path, file), unavailable)
        by_hash = byHash(tokens)
      }),
    )
  const store: TokenStore = {
    find: (sha256) => by_hash.get(sha256),
    all: () => [...by_hash.values()],
    update,
  }
  return store
})

const byHash = (tokens: ReadonlyArray<TokenRecord>) =>
  new Map(tokens.map((record) => [record.sha256, record]))

const decoded = (path: string, text: string) =>
  Effect.mapError(
    Schema.decodeUnknownEffect(TokenFile)(text),
    () => new IdentityUnavailable({ message: `${path} is not a token file: restore or remove it` }),
  )

export const unavailable = ({ message }: { readonly message: string }) =>
  new IdentityUnavailable({ message })
