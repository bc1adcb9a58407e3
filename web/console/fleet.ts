/** Workers by pool, and the rollouts of their images. */
import { h } from "../element.ts"
import { type Column, table } from "../table.ts"
import { actionButton } from "./action.ts"
import type { Rollout, Worker } from "./api.ts"
import { getRows, rows_max } from "./client.ts"
import { plural, readable, shortId } from "./format.ts"
import {
  bar,
  emptyBox,
  figure,
  historyLink,
  problemBox,
  statusMark,
  type Tone,
  when,
} from "./parts.ts"
import { pollingView } from "./polling-view.ts"
import type { View } from "./view.ts"

const poll_ms = 5000

/** Maximum number of retired and dead workers to show; the API lists all of them. */
const gone_shown = 20
const is_gone = new Set(["retired", "dead"])

const tones: Readonly<Record<string, Tone>> = {
  ready: "good",
  booting: "waiting",
  draining: "busy",
  retiring: "busy",
  retired: "over",
  dead: "bad",
}
const states = ["ready", "booting", "draining", "retiring", "dead"] as const

/** Workers of one domain. */
export interface Pool {
  /** Null: workers that serve all domains. */
  readonly domain_id: string | null
  readonly workers: readonly Worker[]
}

/** Groups workers by domain; omits retired ones. */
export const poolsOf = (workers: readonly Worker[]): readonly Pool[] =>
  [
    ...Map.groupBy(
      workers.filter(({ state }) => state !== "retired"),
      ({ domain_id }) => domain_id,
    ),
  ]
    .map(([domain_id, pool_workers]) => ({ domain_id, workers: pool_workers }))
    .toSorted((one, other) => ((one.domain_id ?? "") < (other.domain_id ?? "") ? -1 : 1))

/** Progress of a rollout, 0 to 1: finished domains, plus the share of the current one. */
export const progressOf = (rollout: Rollout, workers: readonly Worker[]): number => {
  const { domain_ids, current_domain_id, state, image } = rollout
  if (state === "succeeded" || domain_ids.length === 0) return 1
  const finished = Math.max(0, domain_ids.indexOf(current_domain_id ?? ""))
  const present = workers.filter(
    (worker) => worker.domain_id === current_domain_id && !is_gone.has(worker.state),
  )
  const updated = present.filter(({ image_version }) => image_version === image).length
  const part = present.length === 0 ? 0 : updated / present.length
  return (finished + part) / domain_ids.length
}

const slotsOf = (workers: readonly Worker[]) => {
  const ready = workers.filter(({ state }) => state === "ready")
  const sum = (count: (worker: Worker) => number) =>
    ready.reduce((all, worker) => all + count(worker), 0)
  return {
    taken: sum(({ running_jobs }) => running_jobs),
    all: sum(({ capacity_slots }) => capacity_slots ?? 0),
  }
}

const poolCard = ({ domain_id, workers }: Pool) => {
  const counts = states.map((state) => ({
    state,
    amount: workers.filter((worker) => worker.state === state).length,
  }))
  const present = counts.filter(({ amount }) => amount > 0)
  const { taken, all } = slotsOf(workers)
  const alive = workers.filter(({ state }) => !is_gone.has(state))
  const images = [...new Set(alive.map(({ image_version }) => image_version ?? "?"))]
  return h(
    "section",
    { class: "card", "data-key": domain_id ?? "-" },
    h(
      "h3",
      { title: domain_id },
      domain_id === null ? "All domains" : `Domain ${shortId(domain_id)}`,
    ),
    bar(
      present.map(({ state, amount }) => ({
        tone: tones[state] ?? "over",
        amount,
        title: `${amount} ${state}`,
      })),
    ),
    h(
      "ul",
      { class: "legend" },
      present.map(({ state, amount }) =>
        h("li", { "data-key": state }, statusMark(tones[state] ?? "over", `${amount} ${state}`)),
      ),
    ),
    h(
      "dl",
      { class: "figures" },
      figure(`${taken} of ${all}`, "Slots in use"),
      figure(
        images.length === 0 ? "\u2013" : images.join(", "),
        images.length > 1 ? "Images" : "Image",
      ),
    ),
  )
}

const rollout_tones: Readonly<Record<Rollout["state"], Tone>> = {
  running: "busy",
  succeeded: "good",
  halted: "bad",
}

const rolloutCard = (rollout: Rollout, workers: readonly Worker[], now: number) => {
  const { id, image, state, domain_ids, current_domain_id, replaced_workers, reason } = rollout
  const progress = progressOf(rollout, workers)
  const percent = Math.round(progress * 100)
  const place = domain_ids.indexOf(current_domain_id ?? "") + 1
  return h(
    "li",
    { class: "card", "data-key": id },
    h(
      "div",
      { class: "card-head" },
      h("h3", {}, image),
      historyLink("share-protection.rollout", id),
    ),
    h(
      "p",
      {},
      statusMark(rollout_tones[state], readable(state)),
      ` \u00b7 ${percent}% \u00b7 ${plural(replaced_workers, "worker")} replaced \u00b7 started `,
      when(rollout.created_at, now),
    ),
    bar([{ tone: rollout_tones[state], amount: progress, title: `${percent}%` }], 1),
    h(
      "p",
      { class: "note" },
      current_domain_id === null
        ? plural(domain_ids.length, "domain")
        : `Domain ${place} of ${domain_ids.length}: ${shortId(current_domain_id)}`,
    ),
    reason !== null && h("p", { class: "failure" }, reason),
    state === "halted" &&
      h(
        "p",
        { class: "note" },
        "Check why the new worker did not become ready, then start a new rollout. It continues ",
        "with the workers that still run the old image.",
      ),
  )
}

const drain = ({ id, hostname, state }: Worker, onDone: () => void) =>
  state === "ready" &&
  actionButton({
    verb: "Drain",
    object: hostname ?? shortId(id),
    onDone,
    path: `/v1/admin/workers/${encodeURIComponent(id)}/drain`,
    explanation:
      "The worker finishes its jobs and gets no new ones. A drain cannot be undone; new workers " +
      "boot when jobs need them.",
  })

const columns = (now: number, onDone: () => void): readonly Column<Worker>[] => [
  {
    title: "Worker",
    cell: ({ id, hostname }) => [
      hostname ?? h("span", { class: "none" }, "not registered"),
      h("small", {}, historyLink("share-protection.worker", id)),
    ],
  },
  { title: "State", cell: ({ state }) => statusMark(tones[state] ?? "over", readable(state)) },
  { title: "Image", cell: ({ image_version }) => image_version ?? "\u2013" },
  { title: "Engine", cell: ({ engine_version }) => engine_version ?? "\u2013" },
  {
    title: "Slots",
    is_number: true,
    cell: ({ running_jobs, capacity_slots }) => `${running_jobs} of ${capacity_slots ?? "?"}`,
  },
  { title: "Last heartbeat", class: "when", cell: ({ heartbeat_at }) => when(heartbeat_at, now) },
  { title: "Action", cell: (worker) => drain(worker, onDone) },
]

const noWorker = () =>
  emptyBox({
    title: "No workers",
    text:
      "Workers run the jobs and boot when jobs need them. You can also start one on any machine " +
      "that reaches the bus.",
    commands: ["npm run almanac -- agent --help"],
  })

const parts = async (onDone: () => void) => {
  const [workers, rollouts] = await Promise.all([
    getRows<Worker>("/v1/admin/workers", "workers", rows_max),
    getRows<Rollout>("/v1/admin/rollouts", "rollouts", rows_max),
  ])
  if (workers.kind === "problem") return [problemBox(workers.problem, "Workers")]
  const now = Date.now()
  const all = workers.body.rows
  const newest = (one: { readonly id: string }, other: { readonly id: string }) =>
    one.id < other.id ? 1 : -1
  const gone = all.filter(({ state }) => is_gone.has(state)).toSorted(newest)
  const shown = [...all.filter(({ state }) => !is_gone.has(state)), ...gone.slice(0, gone_shown)]
  const list = rollouts.kind === "problem" ? [] : rollouts.body.rows.toSorted(newest)
  return [
    ...(all.length === 0
      ? [noWorker()]
      : [
          h(
            "section",
            { "aria-labelledby": "pools", "data-key": "pools" },
            h("h2", { id: "pools" }, "Pools"),
            h("div", { class: "cards" }, poolsOf(all).map(poolCard)),
          ),
        ]),
    rollouts.kind === "problem"
      ? problemBox(rollouts.problem, "Rollouts")
      : h(
          "section",
          { "aria-labelledby": "rollouts", "data-key": "rollouts" },
          h("h2", { id: "rollouts" }, "Rollouts"),
          list.length === 0
            ? h("p", { class: "note" }, "No rollouts. POST /v1/admin/rollouts starts one.")
            : h(
                "ul",
                { class: "cards" },
                list.map((one) => rolloutCard(one, all, now)),
              ),
        ),
    ...(shown.length === 0
      ? []
      : [
          table({
            id: "workers",
            title: "Workers",
            caption: "Workers, including recently retired and dead ones",
            columns: columns(now, onDone),
            rows: shown,
            keyOf: ({ id }) => id,
            ...(gone.length > gone_shown && {
              note: `${gone.length - gone_shown} older retired or dead workers are hidden.`,
            }),
          }),
        ]),
  ]
}

export const fleetView: View = {
  name: "workers",
  title: "Workers",
  open: (place) => {
    const polling = pollingView(place, {
      load: () => parts(() => polling.now()),
      ms: () => poll_ms,
      refreshesOn: () => true,
    })
    return { show: () => undefined, close: polling.close }
  },
}
