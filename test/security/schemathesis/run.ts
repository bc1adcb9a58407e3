/**
 * Runs schemathesis against a server with demo data on which every caller is permitted, and judges
 * its report. Shared by the test and the soak.
 */
import { newFolder, runVerb, type Server, startServer } from "../../world/server/server.ts"
import { install, type Plan, runSchemathesis } from "./program.ts"
import { type Found, isInvalid, readReport, type Statuses } from "./report.ts"

/** Everyone is permitted, and no generated webhook is rejected for their number. */
const settings = {
  ALMANAC_API__NOAUTH: "true",
  ALMANAC_WEBHOOKS__MAX_PER_PROJECT: "1000",
}

/** The share of valid requests that must be accepted. */
export const accepted_min = 0.5

/** Valid requests of an operation that a verdict about its schema needs. */
const requests_min = 10

/** Operations that reject most valid requests, with what a schema cannot say. */
const exempt: ReadonlyMap<string, string> = new Map([
  ["GET /api/search", "The range is short, and its start is not above its end."],
  ["GET /v1/admin/audit/{service}/{aggregate}/{id}", "A time or a position, not both."],
  ["GET /v1/blobs", "A cursor comes from a response."],
  ["PATCH /v1/admin/domains/{domain_id}", "Each minimum is not above its maximum."],
  ["POST /v1/admin/rollouts", "The image of workers exists, which needs a cloud."],
  ["POST /v1/blobs/stream", "An expected id is a hash of the content."],
  ["POST /v2/models/{name}/infer", "The data matches the shape, and the shape matches the model."],
])

const sum = (statuses: Statuses, is_counted: (status: number) => boolean) =>
  [...statuses].reduce((total, [status, count]) => total + (is_counted(status) ? count : 0), 0)

const all = () => true
const isAccepted = (status: number) => status < 400

const merged = (parts: Iterable<Statuses>): Statuses => {
  const total = new Map<number, number>()
  for (const part of parts) {
    for (const [status, count] of part) total.set(status, (total.get(status) ?? 0) + count)
  }
  return total
}

const text = (statuses: Statuses) =>
  [...statuses]
    .toSorted(([one], [other]) => one - other)
    .map(([status, count]) => `${count} times ${status}`)
    .join(", ")

/** Operations that reject most valid requests, so that the document is looser than the server. */
const looseOf = ({ positive, rejected }: Found) =>
  [...positive].flatMap(([operation, statuses]) => {
    const count = sum(statuses, all)
    if (exempt.has(operation)) return []
    const is_loose = count >= requests_min && sum(statuses, isInvalid) * 2 > count
    return is_loose ? [`${operation}: ${text(statuses)}: ${rejected.get(operation)}`] : []
  })

/**
 * A verdict on a run. A request is accepted if its status is below 400. Ids that do not exist are
 * 404 and conflicts are 409, although the requests are valid, so the share of requests that were
 * rejected for what they contain says more about the document.
 */
export const verdictOf = (found: Found) => {
  const positive = merged(found.positive.values())
  const count = sum(positive, all)
  return {
    wrong: found.wrong,
    loose: looseOf(found),
    operations: found.positive.size,
    requests: count + sum(found.negative, all),
    accepted: sum(positive, isAccepted) / count,
    invalid: sum(positive, isInvalid) / count,
    summary: [
      `${count} valid requests: ${text(positive)}`,
      `${sum(found.negative, all)} others: ${text(found.negative)}`,
      `checks: ${[...found.checks].map(([name, times]) => `${times} ${name}`).join(", ")}`,
    ].join("\n"),
  }
}

/** Creates a target and a policy; returns what fields of requests can refer to. */
const prepare = async ({ url, credentials }: Server) => {
  const { share_id, trust_id } = credentials.tenant
  const create = async (path: string, body: object): Promise<Created> => {
    const headers = { "content-type": "application/json" }
    const request = { method: "POST", headers, body: JSON.stringify(body) }
    const response = await fetch(new URL(path, url), request)
    if (!response.ok) throw new Error(await response.text())
    return await response.json()
  }
  const bucket = { name: "backups", endpoint: "http://s3.invalid", bucket: "backups" }
  const { target } = await create("/v1/targets", bucket)
  const target_id = target?.id ?? ""
  const plan = { name: "nightly", schedule: "0 2 * * *", retention: { keep_last: 3 } }
  const policy = await create("/v1/policies", { ...plan, share_id, target_id })
  return { share_id, trust_id, target_id, policy_id: policy.id, timezone: "Europe/Berlin" }
}

interface Created {
  readonly id: string
  /** Of a target, whose job is the other part. */
  readonly target?: { readonly id: string }
}

interface ClusterState {
  readonly nodes: ReadonlyArray<{ readonly node_id: string }>
}

/** Starts a server with demo data, runs schemathesis against it, and returns the verdict. */
export const schemathesis = async (plan: Omit<Plan, "url" | "node_id" | "known">) => {
  const [folder, work] = [newFolder(), newFolder()]
  const installed = install(work)
  await runVerb(folder, ["carriers", "import", "--demo"])
  await runVerb(folder, ["ingest", "--demo"])
  const server = await startServer(folder, settings)
  const { url } = server
  await installed
  const known = await prepare(server)
  const state = await fetch(new URL("/v1/cluster/state", url))
  const { nodes }: ClusterState = await state.json()
  const [{ node_id } = { node_id: "" }] = nodes
  const { report, output } = await runSchemathesis(work, { ...plan, url, node_id, known })
  await server.stop()
  return { ...verdictOf(await readReport(report)), output }
}
