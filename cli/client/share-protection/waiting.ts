/** Why a job waits, where its target says so. Source: document 2 §3, Job, Target. */
import { isFailure } from "#cli/client/failure.ts"
import { isList, type Json, memberAt, textAt } from "#cli/client/json.ts"
import { needOf } from "#cli/client/operation.ts"
import { addressOf, pathOf } from "#cli/client/request.ts"
import type { Session } from "#cli/client/session.ts"
import { printable } from "#cli/client/shown.ts"

/** Without these nobody can enroll a target: they are null until they are given. */
const needed = [
  ["trust_id", "--trust-id ID"],
  ["vault_secret_map", "--access-key HREF --secret-key HREF"],
] as const

/** The job's target as the caller may see it; undefined where that cannot be had. */
const targetOf = async (
  { http, signal }: Session,
  job: Json,
  is_operator: boolean,
): Promise<Json | undefined> => {
  const id = textAt(job, "target_id")
  if (id === undefined) return undefined
  const asked = async (path: string) =>
    (await http.json({ method: "GET", path, need: needOf({ path }), signal })).body
  try {
    if (!is_operator) return await asked(pathOf("/v1/targets/{id}", { id }))
    // Operators have a list only.
    const project_id = textAt(job, "project_id")
    const query = project_id === undefined ? [] : [["project_id", project_id] as const]
    const body = await asked(addressOf("/v1/admin/targets", query))
    const listed = memberAt(body, "targets")
    return isList(listed) ? listed.find((target) => textAt(target, "id") === id) : undefined
  } catch (cause) {
    if (isFailure(cause)) return undefined
    throw cause
  }
}

/** What a queued job waits for and what to do about it; undefined where it only waits its turn. */
export const waitingFor = async (
  session: Session,
  job: Json,
  is_operator: boolean,
): Promise<string | undefined> => {
  if (textAt(job, "state") !== "queued") return undefined
  const target = await targetOf(session, job, is_operator)
  const id = textAt(target, "id")
  if (target === undefined || id === undefined) return undefined
  const name = printable(textAt(target, "name") ?? textAt(target, "bucket_name") ?? id)
  const status = textAt(target, "status")
  const missing = needed.filter(([member]) => memberAt(target, member) === null)
  if (status === "error") {
    const reason = printable(textAt(target, "reason") ?? "it does not say why")
    return (
      `The job waits, since the enrollment of target ${name} failed: ${reason}\n` +
      `  next: mend that, then: almanac targets enroll ${id}; the job goes on when it is enrolled`
    )
  }
  if (status !== "pending" && status !== "enrolling") return undefined
  if (missing.length > 0) {
    const [members, flags] = [missing.map(([one]) => one), missing.map(([, flag]) => flag)]
    return (
      `The job waits, since target ${name} lacks ${members.join(", ")}\n` +
      `  next: almanac targets update ${id} ${flags.join(" ")}`
    )
  }
  if (textAt(job, "job_type") === "target_enroll") return undefined
  return `The job waits until target ${name} is enrolled\n  next: almanac targets show ${id}`
}
