/** The tokens that we issued: their hashes and what they grant, in one private file. */
import { hash, randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect, Option, Schema, Semaphore } from "effect"
import { findBounded, writePrivate } from "#files"
import { IdentityUnavailable } from "#gateway/identity.ts"

/** An issued token as it is kept; the token itself is not in it. */
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

/** The file is written whole at each change: 10,000 records are about 4 MB. */
export const tokens_max = 10_000
const file_bytes_max = 64 * 2 ** 20

/** RFC 6750 allows it in a header as it is; the prefix lets scanners find a leaked one. */
export const token_prefix = "alm_"
/** 256 random bits, in bytes. */
const token_bytes = 32

/** 256 random bits that no rule can guess; 47 characters, safe in a URL. */
export const newToken = (bytes: Buffer = randomBytes(token_bytes)) =>
  token_prefix + bytes.toString("base64url")

export const token_pattern = /^alm_[\w-]{43}$/

/** Lower-case hex. Tokens are random, so that neither salt nor a slow hash adds anything. */
export const sha256Of = (token: string) => hash("sha256", token)

/** Whether its time is over at `now`, in Unix milliseconds. */
export const hasExpired = ({ expires_at }: Pick<TokenRecord, "expires_at">, now: number) =>
  expires_at !== null && now >= expires_at

export interface TokenStore {
  readonly find: (sha256: string) => TokenRecord | undefined
  readonly all: () => ReadonlyArray<TokenRecord>
  /** Replaces the records by what `change` answers of them; durable before it answers. */
  readonly update: (
    change: (records: ReadonlyArray<TokenRecord>) => ReadonlyArray<TokenRecord>,
  ) => Effect.Effect<void, IdentityUnavailable>
}

/**
 * Opens `identity/tokens.json` in the data folder. One process at a time may: who has no lock on
 * the folder asks the running server. Fails when the file is not what we wrote.
 */
export const openTokenStore = Effect.fnUntraced(function* (data_dir: string) {
  const path = join(data_dir, "identity", "tokens.json")
  const text = yield* Effect.mapError(findBounded(path, file_bytes_max), unavailable)
  const kept = Option.isNone(text) ? [] : (yield* decoded(path, text.value)).tokens
  let by_hash = byHash(kept)
  const one_at_a_time = yield* Semaphore.make(1)
  const update: TokenStore["update"] = (change) =>
    one_at_a_time.withPermit(
      Effect.gen(function* () {
        const tokens = change([...by_hash.values()])
        if (tokens.length > tokens_max) {
          const message = `at most ${tokens_max} tokens are kept: revoke some`
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
