/** Checks of `almanac doctor` over HTTP, with any operator's token. */
import { Effect, Option, Schema } from "effect"
import { warningOf } from "#actors/system/log-standing.ts"
import { type Check, promiseCheck } from "#adapters/doctor/checks.ts"
import { type Finding, fail, listNames, ok, warn } from "#adapters/doctor/finding.ts"
import { metric_checks } from "#cli/doctor/metric-checks.ts"
import { ReadModelList } from "#gateway/system/apis/read-models.ts"
import { LogFigures } from "#schemas/system/audit.ts"

/** A response with its body. */
export interface GatewayResponse {
  readonly status: number
  readonly text: string
}

export type Get = (path: string) => Promise<GatewayResponse>

/** Tolerated lag of a read model, in positions. */
const behind_max = 1000

/** Maximum number of webhooks to check individually. */
const webhooks_max = 100

const decoded = <A>(
  schema: Schema.ConstraintCodec<A, unknown>,
  { status, text }: GatewayResponse,
) => {
  if (status !== 200) return Option.none<A>()
  return Schema.decodeUnknownOption(Schema.fromJsonString(schema))(text)
}

/** Findings for an unexpected status; none for a service that the gateway does not serve. */
const unavailable = (what: string, { status, text }: GatewayResponse): ReadonlyArray<Finding> => {
  if (status === 404) return []
  if (status === 401 || status === 403) {
    return [warn(what, `${status}: this check needs the token of an operator (ALMANAC_TOKEN).`)]
  }
  return [fail(what, `${status} ${text.slice(0, 200)}`)]
}

const ready = async (get: Get): Promise<ReadonlyArray<Finding>> => {
  const { text: first } = await get("/readyz")
  // A service's lazy startup may exceed the deadline once on a busy machine, so retry once.
  const { text } = first.includes("does not answer") ? await get("/readyz") : { text: first }
  return text
    .trim()
    .split("\n")
    .map((line) => {
      if (/^\S+ ok$/.test(line)) return ok("ready", line)
      // Ready with a note: it serves in a degraded state.
      return /^\S+ ok;/.test(line) ? warn("ready", line) : fail("ready", line)
    })
}

const readModels = async (get: Get): Promise<ReadonlyArray<Finding>> => {
  const response = await get("/v1/admin/read-models")
  const found = Option.getOrUndefined(decoded(ReadModelList, response))
  if (found === undefined) return unavailable("read models", response)
  return found.read_models.map(({ name, position, behind }) =>
    behind > behind_max
      ? warn(
          "read model",
          `${name} is ${behind} positions behind the log: check the load of its process`,
        )
      : ok("read model", `${name} is at position ${position}, ${behind} behind the log`),
  )
}

const log = async (get: Get): Promise<ReadonlyArray<Finding>> => {
  const response = await get("/v1/admin/log")
  const found = Option.getOrUndefined(decoded(LogFigures, response))
  if (found === undefined) return unavailable("log size", response)
  const warning = warningOf(found)
  if (warning !== undefined) return [warn("log size", warning.text)]
  const { position, generation, used_share } = found
  const share = used_share === null ? "" : `, ${(used_share * 100).toFixed(1)}% of its limit`
  return [ok("log size", `generation ${generation}, position ${position}${share}`)]
}

const Hooks = Schema.Struct({
  webhooks: Schema.Array(Schema.Struct({ id: Schema.String, state: Schema.String })),
})
const Hook = Schema.Struct({
  delivery: Schema.NullOr(Schema.Struct({ failing_since: Schema.NullOr(Schema.String) })),
})

const webhooks = async (get: Get): Promise<ReadonlyArray<Finding>> => {
  const response = await get(`/v1/webhooks?limit=${webhooks_max}`)
  const found = Option.getOrUndefined(decoded(Hooks, response))
  if (found === undefined) return unavailable("webhooks", response)
  const failing: Array<string> = []
  for (const { id, state } of found.webhooks) {
    if (state === "disabled") failing.push(`${id} is disabled`)
    if (state !== "active") continue
    const hook_response = await get(`/v1/webhooks/${id}`)
    // The webhook was deleted meanwhile.
    if (hook_response.status === 404) continue
    const hook = Option.getOrUndefined(decoded(Hook, hook_response))
    if (hook === undefined) failing.push(`${id} responds with ${hook_response.status}`)
    const since = hook?.delivery?.failing_since ?? null
    if (since !== null) failing.push(`${id} has been failing since ${since}`)
  }
  const { length } = found.webhooks
  const count_text = length < webhooks_max ? `${length}` : `the first ${length}`
  if (failing.length === 0) return [ok("webhooks", `${count_text}, none failing`)]
  return [warn("webhooks", `${listNames(failing)}: almanac webhooks show ID shows the reason.`)]
}

const Ring = Schema.Struct({
  nodes: Schema.Array(Schema.Struct({ node_id: Schema.String, state: Schema.String })),
})

const cluster = async (get: Get): Promise<ReadonlyArray<Finding>> => {
  const response = await get("/v1/cluster/state")
  const found = Option.getOrUndefined(decoded(Ring, response))
  if (found === undefined) return unavailable("blob nodes", response)
  const { nodes } = found
  const offline = nodes.flatMap((node) => (node.state === "offline" ? [node.node_id] : []))
  const count_text = `${nodes.length} in the ring`
  if (offline.length === 0) return [ok("blob nodes", count_text)]
  return [
    warn(
      "blob nodes",
      `${count_text}, ${listNames(offline)} offline: start them, or remove them from the cluster.`,
    ),
  ]
}

/** Checks of the server's metrics, which are read once. */
const metricsChecks = (get: Get): ReadonlyArray<Check> => {
  const read = Effect.runSync(Effect.cached(Effect.tryPromise(() => get("/metrics"))))
  const dependent = Object.entries(metric_checks).map(
    ([name, look]): Check => ({
      name,
      needs: "metrics",
      run: Effect.match(read, {
        // The check that this one depends on reports the cause.
        onFailure: () => [],
        onSuccess: ({ status, text }) => (status === 200 ? look(text) : []),
      }),
    }),
  )
  const metrics = Effect.map(read, (response) =>
    response.status === 200 ? [] : unavailable("metrics", response),
  )
  return [{ name: "metrics", needs: "gateway", run: metrics }, ...dependent]
}

/**
 * The checks of a gateway, with the log's size where the bus has no check. If it does not
 * respond, one check reports that, and the others do nothing.
 */
export const gatewayChecks = (get: Get, is_all: boolean): ReadonlyArray<Check> => {
  const answers = Effect.runSync(
    Effect.cached(Effect.tryPromise({ try: () => get("/livez"), catch: (cause) => cause })),
  )
  const dependent_checks: ReadonlyArray<Check> = [
    promiseCheck("ready", () => ready(get)),
    promiseCheck("read-models", () => readModels(get)),
    ...(is_all ? [promiseCheck("log-size", () => log(get))] : []),
    promiseCheck("webhooks", () => webhooks(get)),
    promiseCheck("blob-nodes", () => cluster(get)),
    ...metricsChecks(get),
  ]
  return [
    { name: "gateway", run: Effect.as(answers, []) },
    ...dependent_checks.map(
      ({ name, needs = "gateway", run: look }): Check => ({
        name,
        needs,
        run: Effect.matchEffect(answers, {
          onFailure: () => Effect.succeed([]),
          onSuccess: () => look,
        }),
      }),
    ),
  ]
}
