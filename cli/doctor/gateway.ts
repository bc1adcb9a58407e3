/** What `almanac doctor` finds over HTTP: what any operator's token may ask. */
import { Effect, Option, Schema } from "effect"
import { warningOf } from "#actors/system/log-standing.ts"
import { type Check, promised } from "#adapters/doctor/checks.ts"
import { type Finding, fail, ok, some, warn } from "#adapters/doctor/finding.ts"
import { metric_looks } from "#cli/doctor/metric-checks.ts"
import { ReadModelList } from "#gateway/system/apis/read-models.ts"
import { LogFigures } from "#schemas/system/audit.ts"

/** An answer: undefined where there was none, with why. */
export interface Answered {
  readonly status: number
  readonly text: string
}

export type Get = (path: string) => Promise<Answered>

/** Positions that a read model may be behind for a moment. */
const behind_max = 1000

/** Webhooks that are looked at one by one. */
const webhooks_max = 100

const decoded = <A>(schema: Schema.ConstraintCodec<A, unknown>, { status, text }: Answered) => {
  if (status !== 200) return Option.none<A>()
  return Schema.decodeUnknownOption(Schema.fromJsonString(schema))(text)
}

/** Why there is nothing to be said: a service that is not served here, or a token that may not. */
const untold = (what: string, { status, text }: Answered): ReadonlyArray<Finding> => {
  if (status === 404) return []
  if (status === 401 || status === 403) {
    return [warn(what, `${status}: give an operator's token (ALMANAC_TOKEN) to look at this.`)]
  }
  return [fail(what, `${status} ${text.slice(0, 200)}`)]
}

const ready = async (get: Get): Promise<ReadonlyArray<Finding>> => {
  const { text: first } = await get("/readyz")
  // What a service begins with when it is first asked may take a busy machine too long, once.
  const { text } = first.includes("does not answer") ? await get("/readyz") : { text: first }
  return text
    .trim()
    .split("\n")
    .map((line) => {
      if (/^\S+ ok$/.test(line)) return ok("ready", line)
      // Ready with a note: it serves, and not as it might.
      return /^\S+ ok;/.test(line) ? warn("ready", line) : fail("ready", line)
    })
}

const readModels = async (get: Get): Promise<ReadonlyArray<Finding>> => {
  const answer = await get("/v1/admin/read-models")
  const found = Option.getOrUndefined(decoded(ReadModelList, answer))
  if (found === undefined) return untold("read models", answer)
  return found.read_models.map(({ name, position, behind }) =>
    behind > behind_max
      ? warn("read model", `${name} is ${behind} positions behind: is its process overloaded?`)
      : ok("read model", `${name} shows position ${position}, ${behind} behind`),
  )
}

const log = async (get: Get): Promise<ReadonlyArray<Finding>> => {
  const answer = await get("/v1/admin/log")
  const found = Option.getOrUndefined(decoded(LogFigures, answer))
  if (found === undefined) return untold("log size", answer)
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
  const answer = await get(`/v1/webhooks?limit=${webhooks_max}`)
  const found = Option.getOrUndefined(decoded(Hooks, answer))
  if (found === undefined) return untold("webhooks", answer)
  const failing: Array<string> = []
  for (const { id, state } of found.webhooks) {
    if (state === "disabled") failing.push(`${id} is disabled`)
    if (state !== "active") continue
    const shown = await get(`/v1/webhooks/${id}`)
    // It was deleted meanwhile.
    if (shown.status === 404) continue
    const hook = Option.getOrUndefined(decoded(Hook, shown))
    if (hook === undefined) failing.push(`${id} answers ${shown.status}`)
    const since = hook?.delivery?.failing_since ?? null
    if (since !== null) failing.push(`${id} fails since ${since}`)
  }
  const { length } = found.webhooks
  const told = length < webhooks_max ? `${length}` : `the first ${length}`
  if (failing.length === 0) return [ok("webhooks", `${told}, none fails`)]
  return [warn("webhooks", `${some(failing)}: almanac webhooks show ID says why.`)]
}

const Ring = Schema.Struct({
  nodes: Schema.Array(Schema.Struct({ node_id: Schema.String, state: Schema.String })),
})

const cluster = async (get: Get): Promise<ReadonlyArray<Finding>> => {
  const answer = await get("/v1/cluster/state")
  const found = Option.getOrUndefined(decoded(Ring, answer))
  if (found === undefined) return untold("blob nodes", answer)
  const { nodes } = found
  const away = nodes.flatMap((node) => (node.state === "offline" ? [node.node_id] : []))
  const told = `${nodes.length} in the ring`
  if (away.length === 0) return [ok("blob nodes", told)]
  return [warn("blob nodes", `${told}, ${some(away)} offline: start them, or let them leave.`)]
}

/** What the server says of itself in its metrics, read once for all that look into it. */
const ofMetrics = (get: Get): ReadonlyArray<Check> => {
  const read = Effect.runSync(Effect.cached(Effect.tryPromise(() => get("/metrics"))))
  const looks = Object.entries(metric_looks).map(
    ([name, look]): Check => ({
      name,
      needs: "metrics",
      look: Effect.match(read, {
        // The check that this one needs says why.
        onFailure: () => [],
        onSuccess: ({ status, text }) => (status === 200 ? look(text) : []),
      }),
    }),
  )
  const metrics = Effect.map(read, (answer) =>
    answer.status === 200 ? [] : untold("metrics", answer),
  )
  return [{ name: "metrics", needs: "gateway", look: metrics }, ...looks]
}

/**
 * The checks of a gateway, with the log's size where the bus has no check. If it does not answer at
 * all, one check reports that, and the others do nothing.
 */
export const gatewayChecks = (get: Get, is_all: boolean): ReadonlyArray<Check> => {
  const answers = Effect.runSync(
    Effect.cached(Effect.tryPromise({ try: () => get("/livez"), catch: (cause) => cause })),
  )
  const asked: ReadonlyArray<Check> = [
    promised("ready", () => ready(get)),
    promised("read-models", () => readModels(get)),
    ...(is_all ? [promised("log-size", () => log(get))] : []),
    promised("webhooks", () => webhooks(get)),
    promised("blob-nodes", () => cluster(get)),
    ...ofMetrics(get),
  ]
  return [
    { name: "gateway", look: Effect.as(answers, []) },
    ...asked.map(
      ({ name, needs = "gateway", look }): Check => ({
        name,
        needs,
        look: Effect.matchEffect(answers, {
          onFailure: () => Effect.succeed([]),
          onSuccess: () => look,
        }),
      }),
    ),
  ]
}
