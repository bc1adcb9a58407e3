/** The overview: alerts, key figures of the five services, the log and its read models. */
import { h } from "../element.ts"
import { sentence, signed } from "../format.ts"
import { type AlertSources, alertsOf, readinessOf } from "./alerts.ts"
import type {
  AuditPage,
  ClusterMetrics,
  Coverage,
  Job,
  LogUsage,
  ReadModels,
  Rollout,
  Worker,
} from "./api.ts"
import { get, getReadiness, getRows, type Result, type Rows, rows_max } from "./client.ts"
import { bytes, plural } from "./format.ts"
import { emptyBox, figure, problemBox, statusMark, token_command, when } from "./parts.ts"
import { pollingView } from "./polling-view.ts"
import type { View } from "./view.ts"

/** Polling interval, unless an event triggers a request. */
const poll_ms = 10_000

/** Maximum number of failed jobs to request; the count stops there. */
const failed_max = 100

interface Sources {
  readonly sources: readonly {
    readonly registry: string
    readonly carriers: number | null
    readonly is_demo: boolean
  }[]
}
interface Model {
  readonly name: string
  readonly is_demo: boolean
}
interface Dashboard {
  readonly composite: { readonly z: number; readonly z_label: string } | null
  readonly demo: boolean
}

const fetchAll = async () => {
  const [readiness, read_models, newest, cluster, jobs, workers, rollouts, coverage, ...others] =
    await Promise.all([
      getReadiness(),
      get<ReadModels>("/v1/admin/read-models"),
      get<AuditPage>("/v1/admin/audit?limit=1"),
      get<ClusterMetrics>("/v1/cluster/metrics"),
      getRows<Job>("/v1/admin/jobs?state=error", "jobs", failed_max),
      getRows<Worker>("/v1/admin/workers", "workers", rows_max),
      getRows<Rollout>("/v1/admin/rollouts", "rollouts", rows_max),
      getRows<Coverage>("/v1/admin/coverage", "coverage"),
      get<Dashboard>("/api/dashboard", "others"),
      get<Sources>("/api/search/sources", "others"),
      get<Model>("/predict/model", "others"),
      get<LogUsage>("/v1/admin/log"),
    ])
  const [dashboard, sources, model, log] = others
  const of_shares = { jobs, workers, rollouts, coverage }
  return { readiness, read_models, newest, cluster, ...of_shares, dashboard, sources, model, log }
}
type Results = Awaited<ReturnType<typeof fetchAll>>

const bodyOf = <A>(result: Result<A>): A | undefined =>
  result.kind === "ok" ? result.body : undefined
const rowsOf = <A>(result: Result<Rows<A>>): readonly A[] | undefined => bodyOf(result)?.rows

/** The API lists the oldest rollout first. */
const newestFirst = (rollouts: readonly Rollout[]) =>
  rollouts.toSorted((one, other) => (one.created_at < other.created_at ? 1 : -1))

const alertSourcesOf = (all: Results): AlertSources => ({
  readiness: bodyOf(all.readiness)?.lines,
  read_models: bodyOf(all.read_models)?.read_models,
  cluster: bodyOf(all.cluster),
  failed_jobs: rowsOf(all.jobs),
  workers: rowsOf(all.workers),
  rollouts: newestFirst(rowsOf(all.rollouts) ?? []),
  coverage: rowsOf(all.coverage),
  log: bodyOf(all.log),
})

/** Explains why a figure is missing, so that no one takes it for zero. */
const missingFigure = (result: Result<unknown>, of: string) => {
  if (result.kind === "ok") return undefined
  const { status, text } = result.problem
  const why = status === 403 ? "access denied" : status === 404 ? "disabled" : "unavailable"
  return figure(h("span", { class: "none", title: text }, why), of)
}

const blobFigures = ({ cluster }: Results) => {
  const body = bodyOf(cluster)
  if (body === undefined) return [missingFigure(cluster, "Ring")]
  const { nodes, ring_version } = body
  const active = nodes.filter(({ state }) => state === "active").length
  const sum = (count: (node: (typeof nodes)[number]) => number | string) =>
    nodes.reduce((all, node) => all + Number(count(node)), 0)
  const used = sum((node) => node.used_bytes)
  const capacity = sum((node) => node.capacity_bytes)
  return [
    figure(`${active} of ${nodes.length}`, "Nodes active", "#ring"),
    figure(sum((node) => node.blob_count).toLocaleString("en-US"), "Copies"),
    figure(`${bytes(used)} of ${bytes(capacity)}`, "Used"),
    figure(String(ring_version), "Ring version"),
  ]
}

const shareFigures = ({ workers, coverage, jobs }: Results) => {
  const all_workers = rowsOf(workers)
  const all_shares = rowsOf(coverage)
  const failed = rowsOf(jobs)
  const running = all_workers?.reduce((sum, { running_jobs }) => sum + running_jobs, 0)
  const ready = all_workers?.filter(({ state }) => state === "ready").length
  const protected_count = all_shares?.filter((entry) => entry.protected).length
  return [
    all_workers === undefined
      ? missingFigure(workers, "Workers")
      : figure(`${ready}`, "Workers ready", "#workers"),
    running !== undefined && figure(`${running}`, "Jobs running", "#jobs"),
    failed === undefined
      ? missingFigure(jobs, "Jobs")
      : figure(
          failed.length >= failed_max ? `${failed_max}+` : `${failed.length}`,
          "Jobs failed",
          "#jobs?state=error",
        ),
    all_shares === undefined
      ? missingFigure(coverage, "Coverage")
      : figure(`${protected_count} of ${all_shares.length}`, "Shares protected", "#protection"),
  ]
}

const capitalFigures = ({ dashboard }: Results) => {
  const body = bodyOf(dashboard)
  if (body === undefined) {
    const is_private = dashboard.kind === "problem" && dashboard.problem.status === 401
    return [
      is_private
        ? figure("token required", "Composite", "/")
        : missingFigure(dashboard, "Composite"),
    ]
  }
  const { composite, demo } = body
  const words = composite === null ? "no data yet" : `${signed(composite.z)}, ${composite.z_label}`
  return [figure(demo ? `${words} (demo)` : words, "Composite", "/")]
}

const carrierFigures = ({ sources }: Results) => {
  const [first] = bodyOf(sources)?.sources ?? []
  if (first === undefined) return [missingFigure(sources, "Registry")]
  const { registry, carriers, is_demo } = first
  const words = registry === "none" ? "not configured" : registry
  return [
    figure(is_demo ? `${words} (demo)` : words, "Registry", "/carriers"),
    carriers !== null && figure(carriers.toLocaleString("en-US"), "Carriers"),
  ]
}

const plantFigures = ({ model }: Results) => {
  const body = bodyOf(model)
  if (body === undefined) return [missingFigure(model, "Model")]
  return [figure(body.is_demo ? `${body.name} (demo)` : body.name, "Model", "/plants")]
}

const services = [
  ["blob-storage", "Blob storage", blobFigures],
  ["share-protection", "Share protection", shareFigures],
  ["capital-pressure", "Capital pressure", capitalFigures],
  ["carrier-search", "Carrier search", carrierFigures],
  ["plant-disease", "Plant disease", plantFigures],
] as const

const serviceCard = (all: Results, [name, title, figures]: (typeof services)[number]) => {
  const line = bodyOf(all.readiness)
    ?.lines.map(readinessOf)
    .find((one) => one.name === name)
  const words =
    line === undefined ? "Disabled on this server" : line.is_ready ? "Ready" : "Not ready"
  const tone = line === undefined ? "over" : line.is_ready ? "good" : "bad"
  const note = line?.status.replace(/^ok(; )?/, "") ?? ""
  return h(
    "section",
    { class: "card", "aria-labelledby": `s-${name}`, "data-key": name },
    h("h3", { id: `s-${name}` }, title),
    h("p", {}, statusMark(tone, words)),
    line !== undefined && h("dl", { class: "figures" }, figures(all)),
    note !== "" && h("p", { class: "note" }, sentence(note)),
  )
}

const attention = (all: Results, now: number) => {
  const alerts = alertsOf(alertSourcesOf(all), now)
  return h(
    "section",
    { class: "attention", "aria-labelledby": "attention", "data-key": "attention" },
    h("h2", { id: "attention" }, alerts.length === 0 ? "No alerts" : "Needs attention"),
    alerts.length === 0 &&
      h("p", { class: "note" }, "All services that this token can read work normally."),
    h(
      "ul",
      {},
      alerts.map(({ tone, title, text, href }) =>
        h(
          "li",
          { "data-key": `${href} ${title}` },
          statusMark(tone, ""),
          h("div", {}, h("a", { href }, title), h("p", {}, text)),
        ),
      ),
    ),
  )
}

const logFigures = ({ log }: Results) => {
  const usage = bodyOf(log)
  if (usage === undefined) return [missingFigure(log, "Size")]
  const { bytes: size, limit_bytes: limit, aggregates, generation } = usage
  return [
    figure(limit === null ? bytes(size) : `${bytes(size)} of ${bytes(limit)}`, "Size"),
    figure(aggregates.toLocaleString("en-US"), "Aggregates"),
    figure(generation, "Generation"),
  ]
}

const logPart = (all: Results, now: number) => {
  const { newest, read_models } = all
  if (newest.kind === "problem") return problemBox(newest.problem, "The log")
  const { events, position } = newest.body
  const [last] = events
  if (last === undefined) {
    return emptyBox({
      title: "The log is empty",
      text: "The log records every change. Store a blob, protect a share or ingest data.",
      commands: ["npm run almanac -- ingest --demo", token_command],
    })
  }
  const models = bodyOf(read_models)?.read_models ?? []
  return h(
    "section",
    { class: "card log", "aria-labelledby": "log", "data-key": "log" },
    h("h2", { id: "log" }, "The log"),
    h(
      "dl",
      { class: "figures" },
      figure(position.toLocaleString("en-US"), "Position", "#audit"),
      figure(when(last.at, now), "Last event"),
      figure(last.type, "Type"),
      logFigures(all),
    ),
    h("h3", {}, "Read models"),
    read_models.kind === "problem"
      ? problemBox(read_models.problem, "Read models")
      : h(
          "ul",
          { class: "models" },
          models.map(({ name, position: model_position, behind }) =>
            h(
              "li",
              { "data-key": name },
              statusMark(behind > 0 ? "waiting" : "good", name),
              h("span", {}, behind > 0 ? `${plural(behind, "commit")} behind` : "up to date"),
              h("span", { class: "none" }, `at ${model_position.toLocaleString("en-US")}`),
            ),
          ),
        ),
  )
}

const parts = (all: Results, now: number) => [
  ...(all.readiness.kind === "problem" ? [problemBox(all.readiness.problem, "Readiness")] : []),
  attention(all, now),
  h(
    "section",
    { class: "services", "aria-labelledby": "services", "data-key": "services" },
    h("h2", { id: "services" }, "Services"),
    h(
      "div",
      { class: "cards" },
      services.map((one) => serviceCard(all, one)),
    ),
  ),
  logPart(all, now),
]

export const overviewView: View = {
  name: "overview",
  title: "Overview",
  open: (place) => {
    const { close } = pollingView(place, {
      load: async () => parts(await fetchAll(), Date.now()),
      ms: () => poll_ms,
      refreshesOn: () => true,
    })
    return { show: () => undefined, close }
  },
}
