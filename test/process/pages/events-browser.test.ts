/** The browsers' `EventSource`, which sends no headers, against a running server. */
import { Effect, Exit, Scope } from "effect"
import type { Page } from "playwright-core"
import { assert, expect, it } from "vitest"
import { proxy } from "../../world/proxy.ts"
import { connect } from "../../world/server/client.ts"
import { minute_ms, pageServer } from "../../world/server/page-server.ts"
import type { Server } from "../../world/server/server.ts"
import { describeWithChromium } from "../../world/web/chromium.ts"

const environment = { ALMANAC_SERVICES: '["blob-storage"]', ALMANAC_LOG__LEVEL: "debug" }

/** The state that the page's script keeps about its stream. */
interface Kept {
  source: EventSource
  ids: Array<string>
  /** Events without a type, which ours never are, and events without data. */
  empty: number
  errors: number
}
declare global {
  // A global variable of the page.
  var kept: Kept
}

/** Subscribes as a page does: gets a ticket for the token, then uses the browser's own class. */
const subscribe = (page: Page, token: string, query: string) =>
  page.evaluate(
    async ([token, query]) => {
      const headers = { authorization: `Bearer ${token}` }
      const answer = await fetch("/v1/events/tickets", { method: "POST", headers })
      const { ticket } = (await answer.json()) as { ticket: string }
      const source = new EventSource(`/v1/events?ticket=${ticket}${query}`)
      const kept: Kept = { source, ids: [], empty: 0, errors: 0 }
      globalThis.kept = kept
      source.onmessage = () => kept.empty++
      source.onerror = () => kept.errors++
      for (const type of ["blob_stored", "node_joined"]) {
        source.addEventListener(type, (event) => {
          const { data, lastEventId } = event as MessageEvent<string>
          if (data === "") kept.empty++
          kept.ids.push(`${lastEventId} ${type} ${(JSON.parse(data) as { type: string }).type}`)
        })
      }
      return ticket
    },
    [token, query] as const,
  )

const seen = async (page: Page) => (await page.evaluate(() => globalThis.kept.ids)).map(String)
const standing = (page: Page) => page.evaluate(() => globalThis.kept.source.readyState)

const operator = ({ url, credentials }: Server) => {
  const { ask, close } = connect(url, credentials.admin.token)
  const headers = { "content-type": "application/json" }
  const post = async (path: string, body: object) => {
    const answer = await ask("POST", path, { headers, body: JSON.stringify(body) })
    assert.equal(answer.status, 200, answer.body.toString())
    return JSON.parse(answer.body.toString())
  }
  return { post, close }
}

const put = async ({ url, credentials }: Server, text: string) => {
  const { ask, close } = connect(url, credentials.blob.token)
  const headers = { "content-type": "application/octet-stream" }
  const { status } = await ask("POST", "/v1/blobs/stream", { headers, body: text })
  assert.equal(status, 200)
  close()
}

describeWithChromium("a browser's EventSource", () => {
  const { newPage, server: running } = pageServer(environment)

  it("subscribes with a ticket, reconnects, and stops when its token is revoked", {
    timeout: 3 * minute_ms,
  }, async () => {
    const server = running()
    const { post, close } = operator(server)
    const { token } = await post("/v1/admin/tokens", {
      name: "page",
      scopes: ["blobs:read"],
      roles: [],
    })
    const scope = Scope.makeUnsafe()
    const between = await Effect.runPromise(Scope.provide(proxy(new URL(server.url).host), scope))
    const { page } = await newPage()
    await page.goto(`http://${between.url}/asyncapi.json`)
    const ticket = await subscribe(page, token, "&since=0&type=blob_stored&type=node_joined")
    await put(server, "one")
    const types = async () => (await seen(page)).map((one) => one.replace(/^\S+-(?=\d)/, ""))
    await expect.poll(async () => (await types()).length).toBe(2)
    assert.match((await types())[0] ?? "", /^\d+ node_joined node_joined$/)
    assert.match((await types())[1] ?? "", /^\d+ blob_stored blob_stored$/)
    between.cut()
    await put(server, "two")
    await expect.poll(async () => (await types()).length, { timeout: 20_000 }).toBe(3)
    // Each event once, over two connections with one URL.
    const all = await seen(page)
    assert.equal(new Set(all).size, all.length)
    const { empty, errors } = await page.evaluate(() => globalThis.kept)
    assert.equal(empty, 0)
    assert.isAtLeast(errors, 1)
    assert.equal(await standing(page), 1)
    await post("/v1/admin/tokens/page/revoke", {})
    await expect.poll(() => standing(page), { timeout: 40_000 }).toBe(2)
    assert.deepEqual(await seen(page), all)
    await page.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    close()
    assert.isAbove(server.printed.stderr.length, 0)
    assert.notInclude(server.printed.stderr + server.printed.stdout, ticket.slice(0, 24))
  })
})
