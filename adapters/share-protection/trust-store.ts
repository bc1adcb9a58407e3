/** The ids of this service and the trusts that tenants gave it, in one private file. */
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect, Option, Redacted, Schema, Semaphore } from "effect"
import { sharedId } from "#adapters/identity/shared-key.ts"
import { unavailable } from "#adapters/identity/token-store.ts"
import { findBounded, readBounded, writePrivate } from "#files"
import { IdentityUnavailable } from "#gateway/identity.ts"
import { ServiceInfo } from "#schemas/share-protection/service-info.ts"

/** A trust in Keystone's terms; times are Unix milliseconds. */
export const TrustRecord = Schema.Struct({
  trust_id: Schema.String,
  project_id: Schema.String,
  /** Null if an operator created it for the whole project. */
  trustor_user_id: Schema.NullOr(Schema.String),
  trustee_user_id: Schema.String,
  roles: Schema.Array(Schema.String),
  impersonation: Schema.Boolean,
  /** How many more times it may be redeemed; null means unlimited. */
  remaining_uses: Schema.NullOr(Schema.Int),
  created_at: Schema.Int,
  expires_at: Schema.NullOr(Schema.Int),
  revoked_at: Schema.NullOr(Schema.Int),
  /** Id of the command that revoked it, if its request had an Idempotency-Key. */
  revoked_by: Schema.optionalKey(Schema.String),
})
export type TrustRecord = typeof TrustRecord.Type

/** Roles of a user in a project, in addition to those in tokens. */
const Assignment = Schema.Struct({
  user_id: Schema.String,
  project_id: Schema.String,
  roles: Schema.Array(Schema.String),
})
export type Assignment = typeof Assignment.Type

const TrustContents = Schema.Struct({
  assignments: Schema.Array(Assignment),
  trusts: Schema.Array(TrustRecord),
})
/** The part of the file that changes. */
export type TrustContents = typeof TrustContents.Type

const Contents = Schema.Struct({
  version: Schema.Literal(1),
  service: ServiceInfo,
  /** In hex; signs the tokens of trusts. */
  key: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/)),
  ...TrustContents.fields,
})

const TrustFile = Schema.fromJsonString(Contents)

/** Maximum number of records: each change rewrites the file, and 10,000 are about 4 MB. */
export const trusts_max = 10_000
const file_bytes_max = 64 * 2 ** 20
/** The length of SHA-256: HMAC gains nothing from a longer key. */
const key_bytes = 32

export interface TrustStore {
  readonly service: ServiceInfo
  readonly key: Uint8Array
  readonly find: (trust_id: string) => TrustRecord | undefined
  /** The roles of a user in a project. */
  readonly rolesOf: (user_id: string, project_id: string) => ReadonlySet<string>
  /** Replaces the contents with the result of `change`; durable when it completes. */
  readonly update: (
    change: (current: TrustContents) => TrustContents,
  ) => Effect.Effect<void, IdentityUnavailable>
}

/** Processes with the same secret are one service with the same workers. */
const newContents = (secret: Redacted.Redacted): typeof Contents.Type => ({
  version: 1,
  service: {
    service_user: { id: sharedId(secret, "service-user"), name: "almanac" },
    worker_project: { id: sharedId(secret, "worker-project"), name: "almanac-workers" },
  },
  key: randomBytes(key_bytes).toString("hex"),
  assignments: [],
  trusts: [],
})

/** Path of the trust file. */
export const trustFile = (data_dir: string) => join(data_dir, "identity", "trusts.json")

/** The trusts, read-only. Fails if the file does not exist. */
export const readTrustStore = Effect.fnUntraced(function* (data_dir: string) {
  const path = trustFile(data_dir)
  const text = yield* Effect.mapError(readBounded(path, file_bytes_max), unavailable)
  const contents = yield* decoded(path, text)
  const by_id = indexById(contents.trusts)
  const store: TrustStore = {
    service: contents.service,
    key: Buffer.from(contents.key, "hex"),
    find: (trust_id) => by_id.get(trust_id),
    rolesOf: (user_id, project_id) => rolesIn(contents, user_id, project_id),
    update: () => unavailable({ message: `${path} is written by another process` }),
  }
  return store
})

/**
 * Opens `identity/trusts.json` in the data folder. A missing file is created with ids that all
 * processes with the same secret share. Only one process may have it open. Fails if the file is
 * invalid.
 */
export const openTrustStore = Effect.fnUntraced(function* (
  data_dir: string,
  secret: Redacted.Redacted = Redacted.make(""),
) {
  const path = trustFile(data_dir)
  const write = (contents: typeof Contents.Type) =>
    Effect.mapError(writePrivate(path, Schema.encodeSync(TrustFile)(contents)), unavailable)
  const text = yield* Effect.mapError(findBounded(path, file_bytes_max), unavailable)
  let current = Option.isNone(text) ? newContents(secret) : yield* decoded(path, text.value)
  if (Option.isNone(text)) yield* write(current)
  let by_id = indexById(current.trusts)
  const one_at_a_time = yield* Semaphore.make(1)
  const store: TrustStore = {
    service: current.service,
    key: Buffer.from(current.key, "hex"),
    find: (trust_id) => by_id.get(trust_id),
    rolesOf: (user_id, project_id) => rolesIn(current, user_id, project_id),
    update: (change) =>
      one_at_a_time.withPermit(
        Effect.gen(function* () {
          const { assignments, trusts } = change(current)
          if (trusts.length > trusts_max) {
            return yield* unavailable({ message: `the limit of ${trusts_max} trusts is reached` })
          }
          const contents = { ...current, assignments, trusts }
          yield* write(contents)
          current = contents
          by_id = indexById(trusts)
        }),
      ),
  }
  return store
})

const decoded = (path: string, text: string) =>
  Effect.mapError(
    Schema.decodeUnknownEffect(TrustFile)(text),
    () => new IdentityUnavailable({ message: `${path} is not a trust file: restore or remove it` }),
  )

const indexById = (trusts: ReadonlyArray<TrustRecord>) =>
  new Map(trusts.map((trust) => [trust.trust_id, trust]))

const rolesIn = ({ assignments }: TrustContents, user_id: string, project_id: string) =>
  new Set(
    assignments
      .filter((one) => one.user_id === user_id && one.project_id === project_id)
      .flatMap(({ roles }) => roles),
  )

/** Adds these roles of a user in a project. */
export const withAssignment = (
  assignments: ReadonlyArray<Assignment>,
  { user_id, project_id, roles }: Assignment,
): ReadonlyArray<Assignment> => {
  const isSame = (one: Assignment) => one.user_id === user_id && one.project_id === project_id
  const existing = assignments.filter(isSame).flatMap((one) => one.roles)
  const all = [...new Set([...existing, ...roles])]
  return [...assignments.filter((one) => !isSame(one)), { user_id, project_id, roles: all }]
}
