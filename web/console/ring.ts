/** The blob nodes: the ring, their contents, and pending migrations and repairs. */
import { h } from "../element.ts"
import { type Column, table } from "../table.ts"
import type { ClusterMetrics, ClusterNode } from "./api.ts"
import { get, type Result } from "./client.ts"
import { bytes, percentage, readable, shortId } from "./format.ts"
import { bar, emptyBox, figure, problemBox, statusMark, when } from "./parts.ts"
import { pollingView } from "./polling-view.ts"
import { node_tones, ringPicture } from "./ring-drawing.ts"
import { historyAddress, type View } from "./view.ts"

const poll_ms = 3000
const ns_per_ms = 1_000_000

/** The response that a token with scope blobs:read may see. */
interface ClusterState {
  readonly ring_version: number | string
  readonly nodes: readonly Pick<
    ClusterNode,
    "node_id" | "address" | "state" | "capacity_bytes" | "used_bytes" | "blob_count"
  >[]
}

const no_activity = {
  pending_migrations: 0,
  bytes_moved: 0,
  repairs: 0,
  replication_failures: 0,
  under_replicated: 0,
}

/** Converts a state to metrics. Active nodes get equal shares, because a state has no shares. */
export const metricsOf = ({ ring_version, nodes }: ClusterState): ClusterMetrics => {
  const active = nodes.filter(({ state }) => state === "active").length
  const evenly = ({ state }: { readonly state: string }) => (state === "active" ? 1 / active : 0)
  return {
    ring_version,
    vnodes_per_node: 0,
    ...no_activity,
    nodes: nodes.map((node) => ({ ...node, ...no_activity, ring_share: evenly(node) })),
  }
}

const count = (value: number | string) => Number(value).toLocaleString("en-US")

const lastHeartbeat = ({ last_heartbeat_at: ns }: ClusterNode, now: number) =>
  ns === undefined ? "\u2013" : when(new Date(Number(ns) / ns_per_ms).toISOString(), now)

const columns = (now: number, has_metrics: boolean): readonly Column<ClusterNode>[] => [
  {
    title: "Node",
    cell: ({ node_id, address }) => [
      h("code", { title: node_id }, shortId(node_id)),
      h("small", {}, address),
    ],
  },
  { title: "State", cell: ({ state }) => statusMark(node_tones[state] ?? "over", readable(state)) },
  {
    title: "Used",
    class: "progress",
    cell: ({ used_bytes, capacity_bytes }) => [
      h("small", {}, `${bytes(Number(used_bytes))} of ${bytes(Number(capacity_bytes))}`),
      bar([{ tone: "busy", amount: Number(used_bytes), title: "used" }], Number(capacity_bytes)),
    ],
  },
  { title: "Copies", is_number: true, cell: ({ blob_count }) => count(blob_count) },
  ...(has_metrics
    ? ([
        { title: "Ring share", is_number: true, cell: ({ ring_share }) => percentage(ring_share) },
        {
          title: "Pending migrations",
          is_number: true,
          cell: (node) => count(node.pending_migrations),
        },
        { title: "Too few copies", is_number: true, cell: (node) => count(node.under_replicated) },
        { title: "Repaired", is_number: true, cell: ({ repairs }) => count(repairs) },
        { title: "Last heartbeat", class: "when", cell: (node) => lastHeartbeat(node, now) },
      ] satisfies readonly Column<ClusterNode>[])
    : []),
]

const empty_state = {
  title: "No nodes",
  text: "A node joins when its server starts. This command starts six on one machine.",
  commands: ["npm run cluster -- --nodes 6"],
}

const getRing = async (): Promise<Result<ClusterMetrics> & { readonly has_metrics: boolean }> => {
  const metrics = await get<ClusterMetrics>("/v1/cluster/metrics")
  if (metrics.kind === "ok" || metrics.problem.status !== 403) {
    return { ...metrics, has_metrics: true }
  }
  const state = await get<ClusterState>("/v1/cluster/state")
  if (state.kind === "problem") return { ...metrics, has_metrics: true }
  return { kind: "ok", body: metricsOf(state.body), has_metrics: false }
}

const figures = (body: ClusterMetrics) =>
  h(
    "dl",
    { class: "figures", "data-key": "figures" },
    figure(count(body.under_replicated), "Blobs with too few copies"),
    figure(count(body.pending_migrations), "Pending migrations"),
    figure(bytes(Number(body.bytes_moved)), "Moved"),
    figure(count(body.repairs), "Repaired"),
    figure(count(body.replication_failures), "Failed replications"),
    figure(body.vnodes_per_node, "Virtual nodes per node"),
  )

const partial = () =>
  h(
    "p",
    { class: "note", "data-key": "partial" },
    "This token can read the state of the cluster, but not its metrics. Nodes are drawn with ",
    "equal shares; migrations and missing copies are hidden. Metrics need the scope ",
    "cluster:admin.",
  )

const parts = async () => {
  const result = await getRing()
  if (result.kind === "problem") return [problemBox(result.problem, "Ring")]
  const { body, has_metrics } = result
  if (body.nodes.length === 0) return [emptyBox(empty_state)]
  const nodes = body.nodes.toSorted((one, other) => (one.node_id < other.node_id ? -1 : 1))
  return [
    h(
      "section",
      { class: "card ring", "aria-labelledby": "ring", "data-key": "ring" },
      h(
        "div",
        { class: "card-head" },
        h("h2", { id: "ring" }, "Ring"),
        h("a", { href: historyAddress("blob-storage.cluster") }, "View history"),
      ),
      h(
        "div",
        { class: "side-by-side" },
        ringPicture(nodes, String(body.ring_version)),
        has_metrics ? figures(body) : partial(),
      ),
    ),
    table({
      id: "nodes",
      title: "Nodes",
      caption: "Nodes, by id",
      columns: columns(Date.now(), has_metrics),
      rows: nodes,
      keyOf: ({ node_id }) => node_id,
      ...(nodes.length === 1 && {
        note: "One node keeps one copy of each blob. npm run cluster -- --nodes 6 starts six.",
      }),
    }),
  ]
}

export const ringView: View = {
  name: "ring",
  title: "Blob ring",
  open: (place) => {
    const { close } = pollingView(place, { load: parts, ms: () => poll_ms })
    return { show: () => undefined, close }
  },
}
