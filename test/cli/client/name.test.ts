/** Names instead of ids: which fields accept them, and the errors for ambiguous names. */
import { assert, describe, it } from "@effect/vitest"
import type { CommandGroup } from "#cli/client/operation.ts"
import { runOperation } from "#cli/client/run.ts"
import { backups } from "#cli/client/share-protection/backup.ts"
import { policies } from "#cli/client/share-protection/policy.ts"
import { targets } from "#cli/client/share-protection/target.ts"
import { endingOf, json, scripted, sessionWith } from "./scripted.ts"

const id = (n: number) => `0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e${String(n).padStart(2, "0")}`
const known = [
  { id: id(1), name: "nightly", endpoint: "http://one" },
  { id: id(2), name: "twice", endpoint: "http://one" },
  { id: id(3), name: "twice", endpoint: "http://two" },
  { id: id(4), name: "odd/../name", endpoint: "http://one" },
]

/** A server that lists these resources under any path, two per page. */
const server = () =>
  scripted(({ path, method }, answer) => {
    const { pathname, searchParams } = new URL(path, "http://x")
    const is_list = method === "GET" && /(targets|policies)$/.test(pathname)
    if (!is_list) return json(answer, 200, { id: "done" })
    // As with a small `api.max_limit`.
    if (Number(searchParams.get("limit") ?? 2) > 2) return json(answer, 400, { detail: "limit" })
    const from = Number(searchParams.get("marker") ?? 0)
    const next_marker = from + 2 < known.length ? String(from + 2) : null
    const items = known.slice(from, from + 2)
    json(answer, 200, { items, pagination: { next_marker } })
  })

const nothing = { arguments: {}, fields: {}, limit: 10, wait: false }

const verb = ({ operations }: CommandGroup, name: string) => {
  const found = operations.find((one) => one.command === name)
  if (found === undefined) throw new Error(`There is no ${name}.`)
  return found
}

const doing = async (noun: CommandGroup, name: string, typed: Partial<typeof nothing> & object) => {
  const { url, heard, close } = await server()
  try {
    const { session } = sessionWith(url, { json: true })
    const ended = await endingOf(runOperation(session, verb(noun, name), { ...nothing, ...typed }))
    const last = heard.at(-1)
    return { ...ended, heard, request: `${last?.method} ${last?.path}`, body: String(last?.body) }
  } finally {
    await close()
  }
}

describe("a name in place of an id", () => {
  it("is searched on all pages, with any characters", async () => {
    for (const { name, id } of [known[0], known[3]].flatMap((one) => one ?? [])) {
      const { request } = await doing(targets, "delete", { arguments: { id: name } })
      assert.equal(request, `DELETE /v1/targets/${id}`)
    }
    const { request } = await doing(policies, "show", { arguments: { id: "nightly" } })
    assert.equal(request, `GET /v1/policies/${id(1)}`)
  })

  it("is resolved in queries and bodies too", async () => {
    const listed = await doing(backups, "list", { fields: { target_id: "nightly" } })
    assert.equal(listed.request, `GET /v1/backups?target_id=${id(1)}&limit=10`)
    const fields = { share_id: "nightly", target_id: "nightly", policy_id: id(9) }
    const { request, body } = await doing(backups, "create", { fields })
    assert.equal(request, "POST /v1/backups")
    // Shares have no names here, and ids are never looked up.
    assert.deepEqual(JSON.parse(body), { share_id: "nightly", target_id: id(1), policy_id: id(9) })
  })

  it("resolves as of the requested time", async () => {
    const { heard } = await doing(targets, "show", {
      arguments: { id: "nightly" },
      fields: { as_of: "2026-11-01T00:00:00Z" },
    })
    const then = "as_of=2026-11-01T00%3A00%3A00Z"
    assert.deepEqual(
      heard.map(({ path }) => path),
      [`/v1/targets?${then}`, `/v1/targets?${then}&marker=2`, `/v1/targets/${id(1)}?${then}`],
    )
  })

  it("is rejected if it is ambiguous, with both matches", async () => {
    const { ending, message, heard } = await doing(targets, "delete", {
      arguments: { id: "twice" },
    })
    assert.equal(ending, "usage")
    assert.match(message, /more than one target named twice/)
    for (const n of [2, 3]) assert.include(message, id(n))
    assert.isTrue(heard.every(({ method }) => method === "GET"))
  })

  it("fails if nothing matches, without sending a request", async () => {
    const { ending, message, heard } = await doing(targets, "delete", { arguments: { id: "none" } })
    assert.equal(ending, "not_found")
    assert.equal(message, "There is no target named none")
    assert.isTrue(heard.every(({ method }) => method === "GET"))
  })

  it("is searched in all projects for an operator", async () => {
    const { heard } = await doing(targets, "upgrade-format", { arguments: { id: "nightly" } })
    assert.equal(heard[0]?.path, "/v1/admin/targets")
    assert.match(heard.at(-1)?.path ?? "", /^\/v1\/admin\/targets\/0193/)
  })
})
