/** Waits for a job with one live progress line. Source: document 2 §3, Job. */
import { setTimeout as pause } from "node:timers/promises"
import { failure } from "#cli/client/failure.ts"
import { printable } from "#cli/client/format.ts"
import { type Json, memberAt, textAt } from "#cli/client/json.ts"
import { needOf } from "#cli/client/operation.ts"
import { progressOn } from "#cli/client/progress.ts"
import { pathOf } from "#cli/client/request.ts"
import type { Session } from "#cli/client/session.ts"
import { queueReason } from "#cli/client/share-protection/queue-reason.ts"

/** Polling intervals in ms: short at first, because many jobs are short. */
const poll_ms_first = 200
const poll_ms_max = 2_000
const poll_factor = 1.5

/** Time between two redraws of the live line, in ms: the elapsed time moves between polls. */
const tick_ms = 500

const numberAt = (job: Json, name: string) => {
  const found = memberAt(job, name)
  return typeof found === "number" ? found : undefined
}

const stepOf = (job: Json, elapsed_s: number) => {
  const [type = "job", state = ""] = [textAt(job, "job_type"), textAt(job, "state")]
  return {
    label: printable(`${type} ${state.replaceAll("_", " ")}`),
    done: numberAt(job, "bytes_done"),
    total: numberAt(job, "bytes_total"),
    percent: numberAt(job, "progress"),
    elapsed_s,
  }
}

const hasEnded = (job: Json) => {
  const state = textAt(job, "state")
  return state === "available" || state === "error"
}

/** Waits `ms`, and calls `onTick` periodically. Throws if it is aborted. */
const pauseFor = async (ms: number, onTick: () => void, signal: AbortSignal) => {
  for (let left = ms; left > 0; left -= tick_ms) {
    onTick()
    await pause(Math.min(left, tick_ms), undefined, { signal })
  }
}

/** Returns the job once it succeeds; operators may watch any project's. ClientFailed on error. */
export const watchJob = async (
  session: Session,
  id: string,
  is_operator: boolean,
): Promise<Json> => {
  const { http, screen, signal } = session
  const progress = progressOn(screen)
  const path = pathOf(is_operator ? "/v1/admin/jobs/{id}" : "/v1/jobs/{id}", { id })
  const need = needOf({ path })
  const started_ms = performance.now()
  const show = (job: Json) => progress.at(stepOf(job, (performance.now() - started_ms) / 1000))
  const fetchJob = async () => (await http.json({ method: "GET", path, need, signal })).body
  try {
    let job = await fetchJob()
    let printed: string | undefined
    for (let ms = poll_ms_first; !hasEnded(job); ms = Math.min(poll_ms_max, ms * poll_factor)) {
      show(job)
      const waiting = await queueReason(session, job, is_operator)
      if (waiting !== undefined && waiting !== printed) {
        progress.end()
        screen.err(`${waiting}\n`)
      }
      printed = waiting
      const current = job
      const onTick = screen.err_columns === undefined ? () => undefined : () => show(current)
      await pauseFor(ms, onTick, signal).catch(() => {
        const again = `almanac jobs watch ${id}${is_operator ? " --admin" : ""}`
        throw failure("interrupted", "Interrupted; the job keeps running", again)
      })
      job = await fetchJob()
    }
    // Without a terminal, log the last step too.
    if (screen.err_columns === undefined) show(job)
    if (textAt(job, "state") !== "error") return job
    const code = printable(textAt(job, "error.code") ?? "error")
    const detail = printable(textAt(job, "error.detail") ?? "")
    const next =
      textAt(job, "error_category") === "tenant_action_required"
        ? `fix the cause and start the operation again, or as an operator: almanac jobs retry ${id}`
        : `inform an operator, who can retry it once the cause is fixed: almanac jobs retry ${id}`
    throw failure("job_failed", `Job ${id} failed with ${code}: ${detail}`, next)
  } finally {
    progress.end()
  }
}

/** Id of the job that a response names in its body or Location header. */
export const jobIn = (body: Json, location: string | undefined) =>
  textAt(body, "job.id") ??
  (/\/jobs\/([^/?]+)$/.exec(location ?? "")?.[1] || textAt(body, "job_id")) ??
  (textAt(body, "job_type") === undefined ? undefined : textAt(body, "id"))
