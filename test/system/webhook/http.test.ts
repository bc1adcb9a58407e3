/** `/v1/webhooks` behind the gateway: each status, and the visibility per caller. */
import { assert, describe } from "@effect/vitest"
import { DisableWebhook, GiveUpDeliveries, RotateWebhookSecret } from "#schemas/system/webhook.ts"
import { type Asked, limit, served } from "../../world/system/webhooks-served.ts"

const url = "https://example.com/hook"
const hooks = "/v1/webhooks"

/** Creates a webhook and returns its id. */
const made = async ({ ask }: Asked, who: string, more: object = {}) => {
  const { status, body } = await ask(who, "POST", hooks, { url, ...more })
  assert.equal(status, 201)
  return String(body.id)
}

const letterOf = (sequence: number) => ({
  sequence,
  event_id: "4.0",
  event_type: "blob_stored",
  event_subject: "b",
  attempts: 12,
  first_failed_at: "2026-11-22T00:00:00.000Z",
  detail: "It answered 400.",
})

const paths = [
  ["GET", ""] as const,
  ["PATCH", ""] as const,
  ["DELETE", ""] as const,
  ["POST", "/secret"] as const,
  ["POST", "/test"] as const,
  ["POST", "/replay"] as const,
  ["GET", "/dead-letters"] as const,
  ["POST", "/dead-letters/redeliver"] as const,
  ["POST", "/dead-letters/9/redeliver"] as const,
]
const bodies: Readonly<Record<string, object>> = {
  "PATCH ": { enabled: false },
  "POST /secret": {},
  "POST /replay": { after: 0 },
}

describe("access to webhooks", () => {
  served("requires a token, with the role", async (world) => {
    const id = await made(world, "admin")
    for (const [method, path] of [["GET", "none"], ["POST", "none"], ...paths] as const) {
      const where = path === "none" ? hooks : `${hooks}/${id}${path}`
      const body = bodies[`${method} ${path}`] ?? (path === "none" ? { url } : undefined)
      const sent = method === "GET" ? undefined : body
      assert.equal((await world.ask("stranger", method, where, sent)).status, 403, where)
    }
    assert.equal((await world.ask("homeless", "GET", hooks)).status, 403)
    assert.equal((await world.ask("homeless", "POST", hooks, { url })).status, 403)
  })

  served("all of it is at /v1/admin/webhooks too, for operators alone", async (world) => {
    const { ask } = world
    const admin_hooks = "/v1/admin/webhooks"
    const id = await made(world, "one")
    assert.equal((await ask("one", "GET", admin_hooks)).status, 403)
    assert.equal((await ask("one", "POST", admin_hooks, { url })).status, 403)
    for (const [method, path] of paths) {
      assert.equal((await ask("one", method, `${admin_hooks}/${id}${path}`)).status, 403)
    }
    const [found] = (await ask("admin", "GET", admin_hooks)).body.webhooks
    assert.equal(found.id, id)
    const { status, body } = await ask("admin", "POST", admin_hooks, { url })
    assert.equal(status, 201)
    assert.equal((await ask("admin", "DELETE", `${admin_hooks}/${body.id}`)).status, 204)
    assert.equal((await ask("admin", "GET", `${hooks}/${body.id}`)).status, 404)
  })

  served("a member sees only the project's own", async (world) => {
    const { ask } = world
    const mine = await made(world, "one")
    const theirs = await made(world, "two")
    const everybodys = await made(world, "admin")
    const seenBy = async (who: string) => {
      const { body } = await ask(who, "GET", hooks)
      // The list in the body.
      return (body.webhooks as ReadonlyArray<{ id: string }>).map(({ id }) => id).toSorted()
    }
    assert.deepEqual(await seenBy("one"), [mine])
    assert.deepEqual(await seenBy("two"), [theirs])
    assert.deepEqual(await seenBy("admin"), [mine, theirs, everybodys].toSorted())
    for (const id of [theirs, everybodys]) {
      for (const [method, path] of paths) {
        const body = bodies[`${method} ${path}`]
        assert.equal((await ask("one", method, `${hooks}/${id}${path}`, body)).status, 404, path)
      }
    }
    assert.equal((await ask("admin", "DELETE", `${hooks}/${theirs}`)).status, 204)
  })

  served("a member makes them of the own project alone, an operator of any", async (world) => {
    const { ask } = world
    const of = async (who: string, project_id?: string | null) => {
      const more = project_id === undefined ? {} : { project_id }
      const { status, body } = await ask(who, "POST", hooks, { url, ...more })
      return status === 201 ? body.project_id : status
    }
    assert.equal(await of("one"), "p1")
    assert.equal(await of("one", "p1"), "p1")
    assert.equal(await of("one", "p2"), 403)
    assert.equal(await of("one", null), 403)
    assert.equal(await of("admin"), null)
    assert.equal(await of("admin", "p2"), "p2")
    assert.equal(await of("admin", "p".repeat(128)), "p".repeat(128))
    assert.equal(await of("admin", "p".repeat(129)), 400)
    assert.equal(await of("admin", ""), 400)
  })

  served(`a project has at most ${limit} of them`, async (world) => {
    const ids: Array<string> = []
    for (let n = 0; n < limit; n++) ids.push(await made(world, "one"))
    const { status, body } = await world.ask("one", "POST", hooks, { url })
    assert.deepEqual([status, body.code], [403, "svc.quota_exceeded"])
    await made(world, "two")
    await world.ask("one", "DELETE", `${hooks}/${ids[0]}`)
    await made(world, "one")
  })
})

describe("a webhook over HTTP", () => {
  served("shows its secret when it is made, and never again", async (request) => {
    const { ask, logText } = request
    const { body, headers } = await ask("one", "POST", hooks, { url, description: "mine" })
    const secret = String(body.secret)
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.equal(headers.get("cache-control"), "no-store")
    assert.match(headers.get("x-almanac-position") ?? "", /^\d+$/)
    const id = String(body.id)
    for (const path of [hooks, `${hooks}/${id}`]) {
      assert.notInclude(JSON.stringify((await ask("one", "GET", path)).body), "whsec_")
    }
    assert.notInclude(await logText(), secret.slice("whsec_".length))
    const rotated = await ask("one", "POST", `${hooks}/${id}/secret`, { overlap_hours: 1 })
    assert.deepInclude(rotated.body, { secret_version: 2 })
    assert.notEqual(rotated.body.secret, secret)
  })

  served("is made once for a key, and answered with the same secret", async ({ ask }) => {
    const key = { "idempotency-key": "again" }
    const first = await ask("one", "POST", hooks, { url }, key)
    const second = await ask("one", "POST", hooks, { url }, key)
    assert.equal(second.status, 201)
    assert.deepEqual(second.body, first.body)
    assert.lengthOf((await ask("one", "GET", hooks)).body.webhooks, 1)
  })

  served("is not answered for a key that was used for another", async ({ ask }) => {
    const key = { "idempotency-key": "again" }
    await ask("one", "POST", hooks, { url }, key)
    const second = await ask("one", "POST", hooks, { url, description: "another" }, key)
    assert.deepEqual([second.status, second.body.code], [422, "svc.validation_error"])
    assert.equal((await ask("one", "POST", hooks, { url }, key)).status, 201)
  })

  served("is not made again by the key of one that was deleted", async ({ ask }) => {
    const key = { "idempotency-key": "again" }
    const { body } = await ask("one", "POST", hooks, { url }, key)
    await ask("one", "DELETE", `${hooks}/${body.id}`)
    const again = await ask("one", "POST", hooks, { url }, key)
    assert.deepEqual([again.status, again.body.code], [409, "svc.conflict"])
  })

  for (const [what, body] of [
    ["no URL", {}],
    ["no web URL", { url: "ftp://example.com/" }],
    ["a URL with a password", { url: "https://a:b@example.com/" }],
    ["a URL with a fragment", { url: "https://example.com/#x" }],
    ["a URL that is not allowed", { url: "http://127.0.0.1/" }],
    ["a URL that is too long", { url: `https://example.com/${"x".repeat(2000)}` }],
    ["a type with a wildcard", { url, types: ["*"] }],
    ["too many types", { url, types: Array.from({ length: 101 }, (_, n) => `t${n}`) }],
    ["a place that was never reached", { url, after: 99 }],
    ["a negative place", { url, after: -1 }],
    ["a long description", { url, description: "x".repeat(257) }],
  ] as const) {
    served(`with ${what} is refused`, async ({ ask }) => {
      const answer = await ask("one", "POST", hooks, body)
      assert.deepEqual([answer.status, answer.body.code], [400, "svc.validation_error"])
    })
  }

  for (const [names, detail] of [
    [{ types: ["blob_stored", "blob_store"] }, "body.types: there is no event type blob_store; "],
    [{ services: ["blob"] }, "body.services: there is no service blob; "],
  ] as const) {
    served(`of ${JSON.stringify(names)}, which are never published, is rejected`, async (world) => {
      const { ask } = world
      const id = await made(world, "one")
      for (const [method, path, body] of [
        ["POST", hooks, { url, ...names }],
        ["PATCH", `${hooks}/${id}`, names],
      ] as const) {
        const { status, body: text } = await ask("one", method, path, body)
        assert.deepEqual([status, text.code], [400, "svc.validation_error"])
        assert.include(text.detail, detail)
      }
      const { body } = await ask("one", "GET", hooks)
      assert.deepInclude(body.webhooks, { ...body.webhooks[0], types: [], services: [] })
    })
  }

  served("is changed, paused, enabled and deleted", async (world) => {
    const { ask, command } = world
    const id = await made(world, "one")
    const path = `${hooks}/${id}`
    const patched = await ask("one", "PATCH", path, { types: ["blob_stored"], enabled: false })
    assert.deepInclude(patched.body, { types: ["blob_stored"], state: "paused", url })
    assert.equal((await ask("one", "PATCH", path, { url: "http://10.0.0.1" })).status, 400)
    assert.deepInclude((await ask("one", "PATCH", path, { enabled: true })).body, {
      state: "active",
    })
    await command(id, DisableWebhook.make({ reason: "gone", detail: "It answered 410." }))
    await ask("one", "PATCH", path, { description: "still" })
    const { body } = await ask("one", "GET", path)
    assert.deepInclude(body, { state: "disabled", reason: "gone", detail: "It answered 410." })
    assert.isNull(body.delivery)
    assert.equal((await ask("one", "DELETE", path)).status, 204)
    for (const method of ["GET", "DELETE"]) {
      assert.equal((await ask("one", method, path)).status, 404)
    }
    assert.equal((await ask("one", "GET", `${hooks}/not-an-id`)).status, 404)
  })

  served("is listed in pages", async (world) => {
    const ids = [await made(world, "one"), await made(world, "one"), await made(world, "two")]
    const page = async (query: string) => (await world.ask("admin", "GET", query)).body
    const first = await page(`${hooks}?limit=2`)
    assert.deepInclude(first.pagination, { limit: 2, count: 2 })
    const second = await page(`${hooks}?limit=2&marker=${first.pagination.next_marker}`)
    assert.isNull(second.pagination.next_marker)
    const seen = [...first.webhooks, ...second.webhooks].map(({ id }) => id)
    assert.deepEqual(seen, ids.toSorted())
    assert.equal((await world.ask("admin", "GET", `${hooks}?limit=0`)).status, 400)
    assert.equal((await world.ask("admin", "GET", `${hooks}?marker=x`)).status, 400)
  })

  served("is pinged in any state, signed like a delivery", async (world) => {
    const { ask, command, sent } = world
    const id = await made(world, "one", { enabled: false })
    const versions = async () => {
      const { status, body } = await ask("one", "POST", `${hooks}/${id}/test`)
      assert.equal(status, 200)
      assert.deepInclude(body, { is_delivered: true, status: 200 })
      assert.deepInclude(sent.at(-1)?.event, { type: "webhook_pinged", subject: id })
      return sent.at(-1)?.secrets.map(({ version }) => version)
    }
    assert.deepEqual(await versions(), [1])
    await ask("one", "POST", `${hooks}/${id}/secret`, { overlap_hours: 1 })
    assert.deepEqual(await versions(), [2, 1])
    await ask("one", "POST", `${hooks}/${id}/secret`, { overlap_hours: 0 })
    assert.deepEqual(await versions(), [3])
    // Its secret uses a key that this server no longer has.
    const lost = { key_id: "0123456789abcdef", previous_until: "2026-11-22T00:00:00.000Z" }
    await command(id, RotateWebhookSecret.make(lost))
    await versions()
    assert.equal(sent.at(-1)?.secrets[0]?.key_id, lost.key_id)
  })

  served("is replayed from a place that was reached", async (world) => {
    await world.publish(3)
    const id = await made(world, "one")
    const path = `${hooks}/${id}/replay`
    assert.equal((await world.ask("one", "POST", path, { after: 1 })).status, 202)
    assert.equal((await world.ask("one", "POST", path, { after: 4 })).status, 400)
    assert.equal((await world.ask("one", "POST", path, {})).status, 400)
    assert.include(await world.logText(), "WebhookReplayStarted")
  })
})

describe("dead letters over HTTP", () => {
  served("are listed in pages, and tried again one by one or all", async (world) => {
    const { ask, command } = world
    const id = await made(world, "one")
    const path = `${hooks}/${id}/dead-letters`
    await command(id, GiveUpDeliveries.make({ letters: [3, 5, 9].map(letterOf) }))
    // A write waits for its own position, so later requests see the dead letters too.
    await ask("one", "PATCH", `${hooks}/${id}`, { description: "seen" })
    const list = async (query = "") => (await ask("one", "GET", path + query)).body
    const first = await list("?limit=2")
    assert.deepEqual(first.pagination, { limit: 2, count: 2, next_marker: "5" })
    assert.deepInclude(first.dead_letters[0], { ...letterOf(3), is_redelivering: false })
    assert.equal((await list("?limit=2&marker=5")).dead_letters[0].sequence, 9)

    assert.equal((await ask("one", "POST", `${path}/4/redeliver`)).status, 404)
    assert.equal((await ask("one", "POST", `${path}/x/redeliver`)).status, 404)
    const one = await ask("one", "POST", `${path}/5/redeliver`)
    assert.deepEqual([one.status, one.body], [202, { redelivering: 1 }])
    assert.isTrue((await list()).dead_letters[1].is_redelivering)
    const rest = await ask("one", "POST", `${path}/redeliver`)
    assert.deepEqual(rest.body, { redelivering: 2 })
    const none = await ask("one", "POST", `${path}/redeliver`)
    assert.deepEqual([none.status, none.body], [202, { redelivering: 0 }])
  })

  served("are not tried again while their webhook waits", async (world) => {
    const { ask, command } = world
    const id = await made(world, "one")
    await command(id, GiveUpDeliveries.make({ letters: [letterOf(3)] }))
    await ask("one", "PATCH", `${hooks}/${id}`, { enabled: false })
    const { status, body } = await ask("one", "POST", `${hooks}/${id}/dead-letters/redeliver`)
    assert.deepEqual([status, body.code], [409, "svc.conflict"])
  })
})
