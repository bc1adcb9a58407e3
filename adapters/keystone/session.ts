/**
 * The service user's session: a cached token, and the service catalogue.
 *
 * Source: document 2 §5; decisions of document 2, identity, secrets, shares.
 */
import { Clock, Context, Effect, Layer, Redacted, Schema, Semaphore } from "effect"
import {
  type Call,
  type CloudResponse,
  cloudClient,
  decodeResponse,
  type SendCall,
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
    readonly send: SendCall
    /** Sends a call with the service user's token, and retries with a new one if it is rejected. */
    readonly sendAsService: SendCall
    /** Requests a token of the service user with this scope, by password. */
    readonly authenticate: (scope: object) => Effect.Effect<CloudResponse, BackendUnavailable>
    /** Verifies that Keystone currently accepts the service user. */
    readonly verifyCredentials: Effect.Effect<void, BackendUnavailable>
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
type ServiceToken = (typeof Issued.Type)["token"] & {
  readonly secret: Secret
  readonly ends_ms: number
}

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
      const send = yield* cloudClient(cafile)
      const base = `${auth_url.replace(/\/+$/, "").replace(/\/v3$/, "")}/v3`
      const authenticate = (scope: object, query = "?nocatalog") =>
        send({
          ...keystone,
          method: "POST",
          url: `${base}/auth/tokens${query}`,
          body: { auth: { identity: identityOf(settings), scope } },
          is_repeatable: true,
        })
      const tokens = yield* tokenCache(Effect.suspend(() => authenticate(projectOf(settings), "")))
      const token = Effect.map(tokens.current, ({ secret }) => secret)
      const sendAsService: SendCall = Effect.fnUntraced(function* (call) {
        const first = yield* token
        const response = yield* send({ ...call, token: first })
        if (response.status !== 401) return response
        yield* tokens.renew(first)
        const second = yield* send({ ...call, token: yield* token })
        return second.status === 401 ? yield* unexpected(call, second) : second
      })
      return {
        token,
        send,
        sendAsService,
        authenticate,
        keystone: (path) => base + path,
        endpoint: endpointOf(settings, tokens),
        verifyCredentials: Effect.flatMap(token, tokens.renew),
        service: Effect.map(tokens.current, ({ user, project }) => ({
          service_user: user,
          worker_project: project,
        })),
        roles: Effect.map(tokens.current, ({ roles }) => new Set(roles.map(({ name }) => name))),
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

interface TokenCache {
  /** A valid token; concurrent callers share one request. */
  readonly current: Effect.Effect<ServiceToken, BackendUnavailable>
  /** Replaces a rejected token, unless another caller already has. */
  readonly renew: (rejected_token: Secret) => Effect.Effect<void, BackendUnavailable>
}

const tokenCache = Effect.fnUntraced(function* (
  issue: Effect.Effect<CloudResponse, BackendUnavailable>,
) {
  const one_at_a_time = yield* Semaphore.make(1)
  let cached: ServiceToken | undefined
  const requestToken = Effect.flatMap(issue, decodeToken)
  const currentToken = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const is_valid = cached !== undefined && cached.ends_ms - now > token_left_ms_min
    if (cached === undefined || !is_valid) cached = yield* requestToken
    return cached
  })
  const renew = Effect.fnUntraced(function* (rejected_token: Secret) {
    if (cached === undefined || cached.secret === rejected_token) cached = yield* requestToken
  })
  const cache: TokenCache = {
    current: one_at_a_time.withPermit(currentToken),
    renew: (rejected_token) => one_at_a_time.withPermit(renew(rejected_token)),
  }
  return cache
})

const decodeToken = Effect.fnUntraced(function* (response: CloudResponse) {
  if (response.status === 401 || response.status === 403) return yield* rejected
  if (response.status !== 201) return yield* unexpected(keystone, response)
  const { token } = yield* decodeResponse(Issued, keystone, response)
  const secret = Redacted.make(response.headers["x-subject-token"] ?? "")
  const service_token: ServiceToken = { ...token, secret, ends_ms: Date.parse(token.expires_at) }
  return service_token
})

const rejected = new BackendUnavailable({
  detail: "Keystone rejects the service user: check its password and its role in its project.",
})

/** OpenStack's clients call the interface `public` `publicURL`. */
const interfaceOf = ({ DEFAULT }: Pick<Settings, "DEFAULT">) =>
  DEFAULT.endpoint_type.replace("URL", "")

const endpointOf =
  (settings: Pick<Settings, "keystone_authtoken" | "DEFAULT">, tokens: TokenCache) =>
  (...types: ReadonlyArray<string>) => {
    const { region } = settings.keystone_authtoken
    const interface_name = interfaceOf(settings)
    const find = ({ catalog }: ServiceToken) =>
      types
        .flatMap((type) => catalog.filter((entry) => entry.type === type))
        .flatMap(({ endpoints }) => endpoints)
        .find(
          (one) => one.interface === interface_name && (region === "" || one.region_id === region),
        )
        ?.url.replace(/\/+$/, "")
    return Effect.gen(function* () {
      const known = yield* tokens.current
      const url = find(known)
      if (url !== undefined) return url
      // The service may have been registered after the token was issued.
      yield* tokens.renew(known.secret)
      const found = find(yield* tokens.current)
      if (found !== undefined) return found
      const type = types.join(" or ")
      const detail = `The service catalogue has no ${interface_name} endpoint of type ${type}.`
      return yield* new BackendUnavailable({ detail })
    })
  }

/** A call to Keystone by the service user. */
export const keystoneCall = (
  { keystone: urlOf }: KeystoneSession["Service"],
  method: Call["method"],
  path: string,
  options: Partial<Call> = {},
): Call => ({ ...keystone, method, url: urlOf(path), ...options })
