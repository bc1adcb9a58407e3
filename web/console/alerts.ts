/** Derives alerts for operators from the data of the views, worst first. */
import type { ClusterMetrics, Coverage, Job, LogUsage, ReadModels, Rollout, Worker } from "./api.ts"
import { ago, plural, shortId } from "./format.ts"
import { addressOf, historyAddress } from "./view.ts"

export interface Alert {
  /** `bad` needs action; `waiting` may resolve by itself. */
  readonly tone: "bad" | "waiting"
  readonly title: string
  readonly text: string
  readonly href: string
}

/** The responses; those that failed or are forbidden raise no alert. */
export interface AlertSources {
  readonly readiness?: readonly string[] | undefined
  readonly read_models?: ReadModels["read_models"] | undefined
  readonly cluster?: ClusterMetrics | undefined
  readonly failed_jobs?: readonly Job[] | undefined
  readonly workers?: readonly Worker[] | undefined
  readonly rollouts?: readonly Rollout[] | undefined
  readonly coverage?: readonly Coverage[] | undefined
  readonly log?: LogUsage | undefined
}

/** Older failures raise no alert. */
const recent_ms = 24 * 3_600_000
/** Maximum lag of a read model without an alert: it catches up within milliseconds. */
const behind_max = 100
/** Share of a node's capacity: beyond it, little room is left for the blobs of a lost node. */
const full_share = 0.85

/** Shares of the log's limit, the same as in the server's warnings. */
const log_share = { waiting: 0.7, bad: 0.85 } as const

/** Parses a line of /readyz into the service and its status. */
export const readinessOf = (line: string) => {
  const space = line.indexOf(" ")
  const status = line.slice(space + 1)
  return { name: line.slice(0, space), is_ready: /^ok(;|$)/.test(status), status }
}

const readinessAlerts = (lines: readonly string[]): readonly Alert[] =>
  lines
    .map(readinessOf)
    .filter(({ is_ready }) => !is_ready)
    .map(({ name, status }) => ({
      tone: "bad",
      title: `${name} is not ready`,
      text: `Reported status: ${status}.`,
      href: "#overview",
    }))

const readModelAlerts = (models: ReadModels["read_models"]): readonly Alert[] =>
  models
    .filter(({ behind }) => behind > behind_max)
    .map(({ name, behind }) => ({
      tone: "waiting",
      title: `The read model of ${name} is behind`,
      text: `It lags by ${plural(behind, "commit")}, so queries return older data.`,
      href: "#overview",
    }))

const clusterAlerts = ({ nodes, under_replicated }: ClusterMetrics): readonly Alert[] => {
  const missing = Number(under_replicated)
  // REPLICA3, the default policy, needs three nodes.
  const has_too_few_nodes = nodes.filter(({ state }) => state === "active").length < 3
  const offline = nodes.filter(({ state }) => state === "offline")
  const full = nodes.filter(
    ({ used_bytes, capacity_bytes }) => Number(used_bytes) > full_share * Number(capacity_bytes),
  )
  const href = addressOf("ring")
  return [
    ...offline.map(
      ({ node_id }): Alert => ({
        tone: "bad",
        title: `Node ${shortId(node_id)} is offline`,
        text: "Its blobs are read from other nodes. Restart it, or remove it from the cluster.",
        href,
      }),
    ),
    ...(missing === 0
      ? []
      : [
          {
            tone: "bad" as const,
            title: `${plural(missing, "blob")} with too few copies`,
            text: has_too_few_nodes
              ? "Their policy needs more active nodes. Start more nodes, or use another policy."
              : "Repair restores the missing copies while enough nodes are active.",
            href,
          },
        ]),
    ...full.map(
      ({ node_id }): Alert => ({
        tone: "waiting",
        title: `Node ${shortId(node_id)} is nearly full`,
        text: "Add a node, or raise its capacity. A full node rejects new blobs.",
        href,
      }),
    ),
  ]
}

const logAlerts = ({ used_share }: LogUsage): readonly Alert[] =>
  used_share === null || used_share < log_share.waiting
    ? []
    : [
        {
          tone: used_share < log_share.bad ? "waiting" : "bad",
          title: `The log is ${Math.round(used_share * 100)}% full`,
          text: "Commits are never deleted. Begin a new generation, or raise the limit.",
          href: "#overview",
        },
      ]

const rolloutAlerts = (rollouts: readonly Rollout[]): readonly Alert[] =>
  // Newest first: only the last rollout counts, because it supersedes the others.
  rollouts
    .slice(0, 1)
    .filter(({ state }) => state === "halted")
    .map(({ id, image, reason }) => ({
      tone: "bad",
      title: `The rollout of ${image} halted`,
      text: reason ?? "No reason was recorded.",
      href: historyAddress(`share-protection.rollout.${id}`),
    }))

const workerAlerts = (workers: readonly Worker[], now: number): readonly Alert[] => {
  const dead = workers.filter(
    ({ state, updated_at }) => state === "dead" && now - Date.parse(updated_at) < recent_ms,
  )
  const has_no_ready = workers.length > 0 && !workers.some(({ state }) => state === "ready")
  return [
    ...(has_no_ready
      ? [
          {
            tone: "bad" as const,
            title: "No worker is ready",
            text: "Jobs stay queued until one is ready. Check why no worker has booted.",
            href: "#workers",
          },
        ]
      : []),
    ...dead.map(
      ({ id, hostname, updated_at }): Alert => ({
        tone: "waiting",
        title: `Worker ${hostname ?? shortId(id)} died ${ago(updated_at, now)}`,
        text: "Its leases were revoked; its jobs restart on other workers.",
        href: historyAddress(`share-protection.worker.${id}`),
      }),
    ),
  ]
}

const jobAlerts = (jobs: readonly Job[], now: number): readonly Alert[] => {
  const failed = jobs.filter(({ updated_at }) => now - Date.parse(updated_at) < recent_ms)
  const [newest] = failed
  if (newest === undefined) return []
  return [
    {
      tone: "bad",
      title: `${plural(failed.length, "job")} failed in the last 24 hours`,
      text: `Latest: ${newest.job_type}: ${newest.error?.detail ?? "no reason recorded"}`,
      href: addressOf("jobs", { state: "error" }),
    },
  ]
}

const coverageAlerts = (coverage: readonly Coverage[]): readonly Alert[] => {
  const unprotected = coverage.filter((entry) => !entry.protected).length
  const failed_tests = coverage.filter((entry) => entry.restore_test_failure !== null)
  const href = addressOf("protection")
  return [
    ...failed_tests.map(
      ({ share_id, restore_test_failure }): Alert => ({
        tone: "bad",
        title: `Restore test of share ${shortId(share_id)} failed`,
        text: restore_test_failure?.reason ?? "",
        href,
      }),
    ),
    ...(unprotected === 0
      ? []
      : [
          {
            tone: "waiting" as const,
            title: `${plural(unprotected, "share")} without protection`,
            text: "No enabled policy backs them up.",
            href,
          },
        ]),
  ]
}

/** All alerts, worst first, otherwise in the order of the views. */
export const alertsOf = (sources: AlertSources, now: number): readonly Alert[] => {
  const all = [
    ...readinessAlerts(sources.readiness ?? []),
    ...(sources.log === undefined ? [] : logAlerts(sources.log)),
    ...(sources.cluster === undefined ? [] : clusterAlerts(sources.cluster)),
    ...rolloutAlerts(sources.rollouts ?? []),
    ...workerAlerts(sources.workers ?? [], now),
    ...jobAlerts(sources.failed_jobs ?? [], now),
    ...coverageAlerts(sources.coverage ?? []),
    ...readModelAlerts(sources.read_models ?? []),
  ]
  return [
    ...all.filter(({ tone }) => tone === "bad"),
    ...all.filter(({ tone }) => tone === "waiting"),
  ]
}
