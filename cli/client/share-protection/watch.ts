/** Waiting for a job: one live line until it ends. Source: document 2 §3, Job. */
import { setTimeout as pause } from "node:timers/promises"
import { failure } from "#cli/client/failure.ts"
import { type Json, memberAt, textAt } from "#cli/client/json.ts"
import { needOf } from "#cli/client/operation.ts"
import { progressOn } from "#cli/client/progress.ts"
import { pathOf } from "#cli/client/request.ts"
import type { Session } from "#cli/client/session.ts"
import { waitingFor } from "#cli/client/share-protection/waiting.ts"
import { printable } from "#cli/client/shown.ts"

/** Between two looks, in ms: soon at first, since many jobs are short. */
const look_ms_first = 200
const look_ms_max = 2_000
const look_factor = 1.5

const numberAt = (job: Json, name: string) => {
  const found = memberAt(job, name)
  return typeof found === "number" ? found : undefined
}

const stepOf = (job: Json) => {
  const [type = "job", state = ""] = [textAt(job, "job_type"), textAt(job, "state")]
  return {
    label: printable(`${type} ${state.replaceAll("_", " ")}`),
    done: numberAt(job, "bytes_done"),
    total: numberAt(job, "bytes_total"),
    percent: numberAt(job, "progress"),
  }
}

const ended = (job: Json) => {
  const state = textAt(job, "state")
  return state === "available" || state === "error"
}

/** The job when it has ended well, an operator's of any project. ClientFailed where it failed. */
export const watchJob = async (
  session: Session,
  id: string,
  is_operator: boolean,
): Promise<Json> => {
  const { http, screen, signal } = session
  const progress = progressOn(screen)
  const path = pathOf(is_operator ? "/v1/admin/jobs/{id}" : "/v1/jobs/{id}", { id })
  const need = needOf({ path })
  const look = async () => (await http.json({ method: "GET", path, need, signal })).body
  try {
    let job = await look()
    let told: string | undefined
    for (let ms = look_ms_first; !ended(job); ms = Math.min(look_ms_max, ms * look_factor)) {
      progress.at(stepOf(job))
      const waiting = await waitingFor(session, job, is_operator)
      if (waiting !== undefined && waiting !== told) {
        progress.end()
        screen.err(`${waiting}\n`)
      }
      told = waiting
      await pause(ms, undefined, { signal }).catch(() => {
        const again = `almanac jobs watch ${id}${is_operator ? " --admin" : ""}`
        throw failure("interrupted", "Interrupted; the job goes on", again)
      })
      job = await look()
    }
    // Its last step is shown where lines are kept.
    if (screen.err_columns === undefined) progress.at(stepOf(job))
    if (textAt(job, "state") !== "error") return job
    const code = printable(textAt(job, "error.code") ?? "error")
    const detail = printable(textAt(job, "error.detail") ?? "")
    const next =
      textAt(job, "error_category") === "tenant_action_required"
        ? `mend what the error says and start it anew; an operator may: almanac jobs retry ${id}`
        : `ask the operator; once it is mended: almanac jobs retry ${id}`
    throw failure("job_failed", `The job ${id} ended in ${code}: ${detail}`, next)
  } finally {
    progress.end()
  }
}

/** The id of the job that an answer tells of: in it, or in its Location. */
export const jobIn = (body: Json, location: string | undefined) =>
  textAt(body, "job.id") ??
  (/\/jobs\/([^/?]+)$/.exec(location ?? "")?.[1] || textAt(body, "job_id")) ??
  (textAt(body, "job_type") === undefined ? undefined : textAt(body, "id"))
