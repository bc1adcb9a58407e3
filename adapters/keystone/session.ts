/**
 * The service user's session: a cached token, and the service catalogue.
 *
 * Source: document 2 §5; decisions of document 2, identity, secrets, shares.
 */
import { Clock, Context, Effect, Layer, Redacted, Schema, Semaphore } from "effect"
import {
  type Answer,
  type Ask,
  asking,
  type Call,
  decoded,
  unexpected,
} from "#adapters/keystone/http.ts"
import type { Settings } from "#schemas/settings.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import type { ServiceInfo } from "#schemas/share-protection/service-info.ts"
import { PrincipalId } from "#schemas/token.ts"

type Secret = Redacted.Redacted<string>

export class KeystoneSession extends Context.Service<
  KeystoneSession,
  {
    /** The service user's token, renewed shortly before it expires. */
    readonly token: Effect.Effect<Secret, BackendUnavailable>
    /** The endpoint of a service, by the first of these types that the catalogue has. */
    readonly endpoint: (
      ...types: ReadonlyArray<string>
    ) => Effect.Effect<string, BackendUnavailable>
    /** The URL of a path below Keystone's endpoint, for example `/auth/tokens`. */
    readonly keystone: (path: string) => string
    /** Sends a call with its own token, if any. */
    readonly ask: Ask
    /** Sends a call with the service user's token, and retries with a new one if it is rejected. */
    readonly askAsService: Ask
    /** Requests a token of the service user with this scope, by password. */
    readonly authenticate: (scope: object) => Effect.Effect<Answer, BackendUnavailable>
    /** Verifies that Keystone currently accepts the service user. */
    readonly proven: Effect.Effect<void, BackendUnavailable>
    readonly service: Effect.Effect<ServiceInfo, BackendUnavailable>
    /** Names of the service user's roles. */
    readonly roles: Effect.Effect<ReadonlySet<string>, BackendUnavailable>
  }
>()("adapters/KeystoneSession") {}

const Named = Schema.Struct({ id: PrincipalId, name: Schema.String })

const Endpoint = Schema.Struct({
  interface: Schema.String,
  region_id: Schema.NullOr(Schema.String),
  url: Schema.String,
})

const Issued = Schema.Struct({
  token: Schema.Struct({
    expires_at: Schema.String,
    user: Named,
    project: Named,
    roles: Schema.Array(Schema.Struct({ name: Schema.String })),
    catalog: Schema.Array(
      Schema.Struct({ type: Schema.String, endpoints: Schema.Array(Endpoint) }),
    ),
  }),
})

/** A token with the content of Keystone's response. */
type Own = (typeof Issued.Type)["token"] & { readonly secret: Secret; readonly ends_ms: number }

/** Minimum remaining lifetime in milliseconds, because a call may take a while. */
const token_left_ms_min = 120_000

/** Maximum length of a token in the header X-Subject-Token. */
export const token_length_max = 4096

const keystone = { service: "Keystone" } as const

/** The session of section `[keystone_authtoken]`. Fails only if `cafile` cannot be read. */
export const keystoneSession = (settings: Pick<Settings, "keystone_authtoken" | "DEFAULT">) =>
  Layer.effect(
    KeystoneSession,
    Effect.gen(function* () {
      const { auth_url, cafile } = settings.keystone_authtoken
      const ask = yield* asking(cafile)
      const base = `${auth_url.replace(/\/+$/, "").replace(/\/v3$/, "")}/v3`
      const authenticate = (scope: object, query = "?nocatalog") =>
        ask({
          ...keystone,
          method: "POST",
          url: `${base}/auth/tokens${query}`,
          body: { auth: { identity: identityOf(settings), scope } },
          is_repeatable: true,
        })
      const own = yield* ownToken(Effect.suspend(() => authenticate(projectOf(settings), "")))
      const token = Effect.map(own.current, ({ secret }) => secret)
      const askAsService: Ask = Effect.fnUntraced(function* (call) {
        const first = yield* token
        const answer = yield* ask({ ...call, token: first })
        if (answer.status !== 401) return answer
        yield* own.renew(first)
        const second = yield* ask({ ...call, token: yield* token })
        return second.status === 401 ? yield* unexpected(call, second) : second
      })
      return {
        token,
        ask,
        askAsService,
        authenticate,
        keystone: (path) => base + path,
        endpoint: endpointOf(settings, own),
        proven: Effect.flatMap(token, own.renew),
        service: Effect.map(own.current, ({ user, project }) => ({
          service_user: user,
          worker_project: project,
        })),
        roles: Effect.map(own.current, ({ roles }) => new Set(roles.map(({ name }) => name))),
      }
    }),
  )

const identityOf = ({ keystone_authtoken }: Pick<Settings, "keystone_authtoken">) => {
  const { username, password, user_domain_id } = keystone_authtoken
  const user = {
    name: username,
    domain: { id: user_domain_id },
    password: Redacted.value(password),
  }
  return { methods: ["password"], password: { user } }
}

const projectOf = ({ keystone_authtoken }: Pick<Settings, "keystone_authtoken">) => {
  const { project_name, project_domain_id } = keystone_authtoken
  return { project: { name: project_name, domain: { id: project_domain_id } } }
}

interface OwnToken {
  /** A valid token; concurrent callers share one request. */
  readonly current: Effect.Effect<Own, BackendUnavailable>
  /** Replaces a rejected token, unless another caller already has. */
  readonly renew: (refused: Secret) => Effect.Effect<void, BackendUnavailable>
}

const ownToken = Effect.fnUntraced(function* (issue: Effect.Effect<Answer, BackendUnavailable>) {
  const one_at_a_time = yield* Semaphore.make(1)
  let kept: Own | undefined
  const fresh = Effect.flatMap(issue, issued)
  const good = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const is_good = kept !== undefined && kept.ends_ms - now > token_left_ms_min
    if (kept === undefined || !is_good) kept = yield* fresh
    return kept
  })
  const renew = Effect.fnUntraced(function* (refused: Secret) {
    if (kept === undefined || kept.secret === refused) kept = yield* fresh
  })
  const own: OwnToken = {
    current: one_at_a_time.withPermit(good),
    renew: (refused) => one_at_a_time.withPermit(renew(refused)),
  }
  return own
})

const issued = Effect.fnUntraced(function* (answer: Answer) {
  if (answer.status === 401 || answer.status === 403) return yield* refused
  if (answer.status !== 201) return yield* unexpected(keystone, answer)
  const { token } = yield* decoded(Issued, keystone, answer)
  const secret = Redacted.make(answer.headers["x-subject-token"] ?? "")
  const own: Own = { ...token, secret, ends_ms: Date.parse(token.expires_at) }
  return own
})

const refused = new BackendUnavailable({
  detail: "Keystone refuses the service user: its password, or its role in its project.",
})

/** OpenStack's clients call the interface `public` `publicURL`. */
const interfaceOf = ({ DEFAULT }: Pick<Settings, "DEFAULT">) =>
  DEFAULT.endpoint_type.replace("URL", "")

const endpointOf =
  (settings: Pick<Settings, "keystone_authtoken" | "DEFAULT">, own: OwnToken) =>
  (...types: ReadonlyArray<string>) => {
    const { region } = settings.keystone_authtoken
    const side = interfaceOf(settings)
    const find = ({ catalog }: Own) =>
      types
        .flatMap((type) => catalog.filter((entry) => entry.type === type))
        .flatMap(({ endpoints }) => endpoints)
        .find((one) => one.interface === side && (region === "" || one.region_id === region))
        ?.url.replace(/\/+$/, "")
    return Effect.gen(function* () {
      const known = yield* own.current
      const url = find(known)
      if (url !== undefined) return url
      // The service may have been registered after the token was issued.
      yield* own.renew(known.secret)
      const found = find(yield* own.current)
      if (found !== undefined) return found
      const detail = `The catalogue has no ${side} endpoint of type ${types.join(" or ")}.`
      return yield* new BackendUnavailable({ detail })
    })
  }

/** A call of Keystone by the service user. */
export const keystoneCall = (
  { keystone: at }: KeystoneSession["Service"],
  method: Call["method"],
  path: string,
  more: Partial<Call> = {},
): Call => ({ ...keystone, method, url: at(path), ...more })
