/**
 * Columns of a table of jobs that the API does not return: the job's age, and its target by name.
 */
import { isFailure } from "#cli/client/failure.ts"
import { formatAge } from "#cli/client/format.ts"
import { isList, isObject, type Json, memberAt, textAt } from "#cli/client/json.ts"
import { type Computed, needOf } from "#cli/client/operation.ts"
import { addressOf } from "#cli/client/request.ts"
import type { Session } from "#cli/client/session.ts"

/** Targets on the page that names are looked up in; other targets are shown by id. */
const targets_max = 1000

/** Names of the targets that the caller may read, by id; none if they cannot be read. */
const targetNames = async ({ http, signal }: Session, is_operator: boolean) => {
  const path = is_operator ? "/v1/admin/targets" : "/v1/targets"
  const request = { method: "GET", need: needOf({ path }), signal } as const
  const fetchTargets = (query: ReadonlyArray<readonly [string, string]>) =>
    http.json({ ...request, path: addressOf(path, query) })
  try {
    // A lower `api.max_limit` rejects this limit: then the default page size applies.
    const { body } = await fetchTargets([["limit", String(targets_max)]]).catch(() =>
      fetchTargets([]),
    )
    const all = memberAt(body, "targets") ?? memberAt(body, "items")
    const named = (isList(all) ? all : []).flatMap((target) => {
      const name = textAt(target, "name") ?? textAt(target, "bucket_name")
      const id = textAt(target, "id")
      return id === undefined || name === undefined ? [] : [[id, name] as const]
    })
    return new Map(named)
  } catch (cause) {
    if (isFailure(cause)) return new Map<string, string>()
    throw cause
  }
}

const ageOf = (job: Json, now_ms: number) => {
  const created_ms = Date.parse(textAt(job, "created_at") ?? "")
  return Number.isNaN(created_ms) ? null : formatAge((now_ms - created_ms) / 1000)
}

/** `age`: the time since the job was created; `target`: the target's name. */
export const job_columns: Computed = {
  columns: ["age", "target"],
  add: async (session, jobs, is_operator) => {
    const names = await targetNames(session, is_operator)
    const now_ms = Date.now()
    return jobs.map((job) => {
      const id = textAt(job, "target_id") ?? ""
      const target = names.get(id) ?? id
      return isObject(job) ? { ...job, age: ageOf(job, now_ms), target } : job
    })
  },
}
