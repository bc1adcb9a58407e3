/** CLI commands that send requests to a running server, when a response is lost. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { callInstance } from "#cli/instance.ts"
import { settingsWith } from "../../world/http.ts"

/** A server that closes the connection of the first request, or gives it this status. */
const served = Effect.acquireRelease(
  Effect.promise(async () => {
    const keys: Array<string | undefined> = []
    let first: "cut" | number = "cut"
    const server = createServer(({ headers, socket }, response) => {
      keys.push(headers["idempotency-key"]?.toString())
      if (keys.length > 1) response.end("{}")
      else if (first === "cut") socket.destroy()
      else response.writeHead(first).end("{}")
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    // The address of a listening TCP server is an AddressInfo.
    const { port } = server.address() as AddressInfo
    const running = {
      url: `http://127.0.0.1:${port}`,
      nats: { url: "", user: "", password: Redacted.make("") },
      control_token: Redacted.make("admin"),
      pid: process.pid,
      started_at: "2026-11-20T00:00:00Z",
    }
    const begin = (with_: typeof first) => {
      keys.length = 0
      first = with_
    }
    return { server, keys, running, begin }
  }),
  ({ server }) => Effect.sync(() => server.close()),
)

describe("a request of the command line whose answer is lost", () => {
  it.live("is sent again under the same Idempotency-Key, and the next has another", () =>
    Effect.gen(function* () {
      const { keys, running, begin } = yield* served
      const post = callInstance(running, settingsWith(), "POST", "/v1/admin/trusts", {})
      const seen = new Set<string | undefined>()
      for (const first of ["cut", 503, 504] as const) {
        begin(first)
        yield* post
        assert.lengthOf(keys, 2)
        assert.equal(keys[0], keys[1])
        seen.add(keys[0])
      }
      assert.equal(seen.size, 3)
      assert.isFalse(seen.has(undefined))
    }).pipe(Effect.scoped),
  )

  it.live("is sent once where the answer says that it is wrong", () =>
    Effect.gen(function* () {
      const { keys, running, begin } = yield* served
      begin(400)
      const post = callInstance(running, settingsWith(), "POST", "/v1/admin/trusts", {})
      assert.equal((yield* Effect.flip(post)).status, 400)
      assert.lengthOf(keys, 1)
    }).pipe(Effect.scoped),
  )
})
