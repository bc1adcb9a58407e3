/** SSRF through a tenant's endpoint: blocked addresses are never contacted, in any notation. */
import { existsSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Buckets } from "#actors/share-protection/ports/buckets.ts"
import { Engine, EngineFailed } from "#actors/share-protection/ports/engine.ts"
import { addressRule, type Resolve } from "#adapters/outside/address.ts"
import { bucketsS3Within } from "#adapters/share-protection/s3/buckets.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import { buckets, engine } from "#server/agent/ports.ts"
import { settingsWith } from "../../../world/http.ts"
import { temporaryFolder } from "../../../world/programs/nats.ts"
import { fakeRestic, repository, withScript } from "../../../world/share-protection/restic/fake.ts"
import { failing, reachFailure, s3Fake } from "../../../world/share-protection/s3-fake.ts"

const within = (...networks: ReadonlyArray<string>) =>
  Effect.provide(Buckets, bucketsS3Within({ isAllowed: addressRule(networks) }))

/** Notations of this machine's address in endpoints. */
const loopback = [
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0177.0.0.1",
  "0x7f.1",
  "0.0.0.0",
  "localhost",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[::]",
]

const refused = "The S3 service has no address that is public or in targets.allowed_networks"

describe("an endpoint", () => {
  it.live("on this machine is not contacted, under any name", () =>
    Effect.gen(function* () {
      const { bucket, requests } = yield* s3Fake()
      const { port } = new URL(bucket.endpoint)
      for (const host of loopback) {
        const endpoint = `http://${host}:${port}`
        const failure = yield* reachFailure({ ...bucket, endpoint }, within())
        assert.instanceOf(failure, BackendUnavailable, host)
        assert.equal(failure.detail, `${refused} (ERR_ADDRESS_REFUSED).`, host)
      }
      assert.lengthOf(requests, 0)
    }),
  )

  it.live("that is a cloud's metadata or a neighbour is not contacted", () =>
    Effect.gen(function* () {
      const { bucket } = yield* s3Fake()
      const places = ["169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "192.168.0.1", "100.64.0.1"]
      for (const host of places) {
        const failure = yield* reachFailure({ ...bucket, endpoint: `https://${host}` }, within())
        assert.include(failure.detail, refused, host)
      }
    }),
  )

  it.live("of a network that is allowed is asked, and passes its preflight", () =>
    Effect.gen(function* () {
      const { bucket, requests } = yield* s3Fake()
      const { reach } = yield* within("127.0.0.0/8")
      yield* reach(bucket)
      assert.lengthOf(requests, 1)
      const { preflight } = yield* within("127.0.0.0/8")
      assert.isTrue((yield* preflight(bucket, { shape: "B" })).object_lock)
      const named = { ...bucket, endpoint: bucket.endpoint.replace("127.0.0.1", "localhost") }
      yield* reach(named)
    }),
  )

  it.live("that may not be reached fails the preflight's first check", () =>
    Effect.gen(function* () {
      const { bucket, requests } = yield* s3Fake()
      const detail = yield* failing(bucket, within("10.0.0.0/8"))
      assert.match(detail, /^reachability: .*public or in targets\.allowed_networks/)
      assert.lengthOf(requests, 0)
    }),
  )
})

describe("the engine", () => {
  const unlocked = (endpoint: string, networks: ReadonlyArray<string>, resolve?: Resolve) =>
    withScript(
      ['echo run > "$calls"'],
      (folder) =>
        Effect.gen(function* () {
          const { unlock } = yield* Engine
          const exit = yield* Effect.result(unlock({ ...repository, endpoint }))
          const failure = exit._tag === "Failure" ? exit.failure : undefined
          return { failure, ran: existsSync(`${folder}/calls`) }
        }),
      { isAllowed: addressRule(networks), outage_s: 30, ...(resolve && { resolve }) },
    )

  it.live("does not run for a forbidden endpoint", () =>
    Effect.gen(function* () {
      for (const host of ["127.0.0.1", "localhost", "2130706433", "[::1]", "169.254.169.254"]) {
        const { failure, ran } = yield* unlocked(`http://${host}:9`, [])
        assert.instanceOf(failure, EngineFailed, host)
        assert.isTrue(failure instanceof EngineFailed && failure.wrote_nothing)
        assert.equal(failure.detail, `${refused} (ERR_ADDRESS_REFUSED).`, host)
        assert.isFalse(ran, host)
      }
      const allowed = yield* unlocked("http://localhost:9", ["127.0.0.0/8", "::1/128"])
      assert.deepEqual(allowed, { failure: undefined, ran: true })
    }),
  )

  it.live("is not run for a name that means nothing, which is another failure", () =>
    Effect.gen(function* () {
      const { failure, ran } = yield* unlocked("http://s3.example", [], (_, answer) => {
        answer(Object.assign(new Error(), { code: "ENOTFOUND" }), [])
      })
      assert.instanceOf(failure, EngineFailed)
      const why = "The S3 service has a name that cannot be resolved (ENOTFOUND)."
      assert.equal(failure?.detail, why)
      assert.isFalse(ran)
    }),
  )

  it.live("is run when a name server that failed answers again", () =>
    Effect.gen(function* () {
      let requests = 0
      const { failure, ran } = yield* unlocked("http://s3.example", [], (_, answer) => {
        if (requests++ === 0) answer(Object.assign(new Error(), { code: "EAI_AGAIN" }), [])
        else answer(null, [{ address: "8.8.8.8", family: 4 }])
      })
      assert.deepEqual({ failure, ran, requests }, { failure: undefined, ran: true, requests: 2 })
    }),
  )
})

describe("an agent", () => {
  const requests = Effect.fnUntraced(function* (allowed_networks: ReadonlyArray<string>) {
    const folder = yield* temporaryFolder
    const { bucket } = yield* s3Fake()
    const settings = settingsWith({
      data: { dir: folder },
      engine: { binary: fakeRestic(folder, ['echo run > "$calls"']) },
      targets: { allowed_networks },
    })
    const reached = yield* Effect.gen(function* () {
      const { reach } = yield* Buckets
      const { unlock } = yield* Engine
      return [yield* Effect.result(reach(bucket)), yield* Effect.result(unlock(repository))]
    }).pipe(Effect.provide(Layer.mergeAll(engine(settings), buckets(settings))))
    return reached.map(({ _tag }) => _tag)
  })

  it.live("contacts buckets and runs the engine only as targets.allowed_networks allows", () =>
    Effect.gen(function* () {
      assert.deepEqual(yield* requests([]), ["Failure", "Failure"])
      assert.deepEqual(yield* requests(["127.0.0.0/8"]), ["Success", "Success"])
    }).pipe(Effect.scoped),
  )
})
