/** Why a queued job waits for its target. Source: document 2 §3, Job, Target. */
import { isFailure } from "#cli/client/failure.ts"
import { printable } from "#cli/client/format.ts"
import { isList, type Json, memberAt, textAt } from "#cli/client/json.ts"
import { needOf } from "#cli/client/operation.ts"
import { addressOf, pathOf } from "#cli/client/request.ts"
import type { Session } from "#cli/client/session.ts"

/** Members required for enrollment, null until they are set, with the flags that set them. */
const required_members = [
  ["trust_id", "--trust-id ID"],
  ["vault_secret_map", "--access-key HREF --secret-key HREF"],
] as const

/** The job's target; undefined if the caller cannot read it. */
const targetOf = async (
  { http, signal }: Session,
  job: Json,
  is_operator: boolean,
): Promise<Json | undefined> => {
  const id = textAt(job, "target_id")
  if (id === undefined) return undefined
  const fetchBody = async (path: string) =>
    (await http.json({ method: "GET", path, need: needOf({ path }), signal })).body
  try {
    if (!is_operator) return await fetchBody(pathOf("/v1/targets/{id}", { id }))
    // Operators can only list targets.
    const project_id = textAt(job, "project_id")
    const query = project_id === undefined ? [] : [["project_id", project_id] as const]
    const body = await fetchBody(addressOf("/v1/admin/targets", query))
    const listed = memberAt(body, "targets")
    return isList(listed) ? listed.find((target) => textAt(target, "id") === id) : undefined
  } catch (cause) {
    if (isFailure(cause)) return undefined
    throw cause
  }
}

/** Why a queued job waits, with advice; undefined if it only waits for its turn. */
export const queueReason = async (
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
  const missing = required_members.filter(([member]) => memberAt(target, member) === null)
  if (status === "error") {
    const reason = printable(textAt(target, "reason") ?? "no reason was reported")
    return (
      `The job waits because the enrollment of target ${name} failed: ${reason}\n` +
      `  next: fix the cause, then almanac targets enroll ${id}; the job starts once it is enrolled`
    )
  }
  if (status !== "pending" && status !== "enrolling") return undefined
  if (missing.length > 0) {
    const [members, flags] = [missing.map(([one]) => one), missing.map(([, flag]) => flag)]
    return (
      `The job waits because target ${name} lacks ${members.join(", ")}\n` +
      `  next: almanac targets update ${id} ${flags.join(" ")}`
    )
  }
  if (textAt(job, "job_type") === "target_enroll") return undefined
  return `The job waits until target ${name} is enrolled\n  next: almanac targets show ${id}`
}
