import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { v7 } from "uuid"
import { type Boot, Compute } from "#actors/share-protection/ports/compute.ts"
import { cloudClient } from "#adapters/keystone/http.ts"
import { KeystoneSession } from "#adapters/keystone/session.ts"
import { computeNova, userData } from "#adapters/share-protection/compute-nova.ts"
import { DomainId, ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import { type ComputePlace, computeContract } from "../../../contract/share-protection/compute.ts"
import { given } from "../../../world/settings-given.ts"
import { novaServer } from "../../../world/share-protection/openstack/nova-server.ts"

const images = { worker: "worker-2", engine_version: "0.19.1", other: "debian" }
const never = Effect.die("It is not asked.")

/** The service user's session, whose catalog contains these two services. */
const sessionAt = Effect.fnUntraced(function* (url: string) {
  const ask = yield* cloudClient("")
  const token = Redacted.make("service-token")
  return KeystoneSession.of({
    token: Effect.succeed(token),
    send: ask,
    keystone: (path) => path,
    authenticate: () => never,
    verifyCredentials: Effect.void,
    service: never,
    roles: never,
    endpoint: (...types) => Effect.succeed(`${url}/${types[0]}`),
    sendAsService: (call) => ask({ ...call, token }),
  })
})

const placed = Effect.fnUntraced(function* (change: Record<string, unknown> = {}) {
  const { cloud } = yield* novaServer
  const session = yield* sessionAt(cloud.url)
  const settings = given({ compute: { kind: "nova", flavor: "small", ...change } })
  return { cloud, compute: yield* computeNova(session, settings) }
})

const bootRequest = (): Boot => ({
  worker_id: WorkerId.make(v7()),
  image: images.worker,
  project_id: ProjectId.make("p"),
  domain_id: null,
})

describe("machines of Nova", () => {
  computeContract((name, body) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const { cloud, compute } = yield* placed()
        const place: ComputePlace = {
          images,
          project_id: "p",
          patience_ms: 1000,
          machines: (worker_id) =>
            Effect.sync(
              () =>
                [...cloud.servers.values()].filter(({ name }) => name.endsWith(worker_id)).length,
            ),
        }
        yield* Effect.provide(body(place), Layer.succeed(Compute, compute))
      }).pipe(Effect.scoped),
    ),
  )

  it.live("are requested by the settings, and receive their identity", () =>
    Effect.gen(function* () {
      const networks = ["net-1", "net-2"]
      const more = { networks, security_groups: ["workers"], key_name: "operators" }
      const { cloud, compute } = yield* placed(more)
      const boot = { ...bootRequest(), domain_id: DomainId.make("domain-1") }
      yield* compute.boot(boot)
      const [server] = cloud.servers.values()
      assert(server !== undefined)
      const { user_data, imageRef, ...rest } = server.boot_request
      assert.isString(imageRef)
      assert.deepEqual(rest, {
        name: `almanac-worker-${boot.worker_id}`,
        flavorRef: "small",
        networks: [{ uuid: "net-1" }, { uuid: "net-2" }],
        security_groups: [{ name: "workers" }],
        key_name: "operators",
        metadata: { almanac_worker_id: boot.worker_id },
      })
      const text = Buffer.from(String(user_data), "base64").toString()
      assert.equal(text, userData(boot))
      const [first, ...lines] = text.split("\n")
      assert.equal(first, "#cloud-config")
      const [[...words]] = JSON.parse(lines.join("\n")).runcmd
      const flags = ["--worker-id", "--project-id", "--image", "--domain-id"].map(
        (flag) => words[words.indexOf(flag) + 1],
      )
      assert.deepEqual(flags, [boot.worker_id, "p", images.worker, "domain-1"])
    }).pipe(Effect.scoped),
  )

  const lasting = {
    "over quota": [403, { forbidden: { code: 403, message: "Quota exceeded for cores" } }],
    "that is wrong": [400, { badRequest: { code: 400, message: "Invalid flavorRef" } }],
    "in conflict": [409, { conflictingRequest: { code: 409, message: "Port is in use" } }],
  } as const
  for (const [what, [status, body]] of Object.entries(lasting)) {
    it.live(`are refused for good ${what}, without Nova's own words`, () =>
      Effect.gen(function* () {
        const { cloud, compute } = yield* placed()
        cloud.fault = { on: /^POST/, status, body }
        const failure = yield* Effect.flip(compute.boot(bootRequest()))
        assert.equal(failure.code, "svc.worker_unavailable")
        assert.notInclude(failure.detail, Object.values(body)[0].message)
      }).pipe(Effect.scoped),
    )
  }

  it.live("wait where Nova or Glance is busy or down", () =>
    Effect.gen(function* () {
      const { cloud, compute } = yield* placed()
      for (const on of [/^POST/, /detail/, /images/]) {
        for (const status of [429, 500, 503]) {
          cloud.fault = { on, status, body: {} }
          const failure = yield* Effect.flip(compute.boot(bootRequest()))
          assert.equal(failure.code, "svc.backend_unavailable", `${on} ${status}`)
        }
      }
      cloud.fault = { on: /^DELETE/, status: 503, body: {} }
      const boot = bootRequest()
      yield* compute.boot(boot)
      const failure = yield* Effect.flip(compute.destroy(boot.worker_id))
      assert.equal(failure.code, "svc.backend_unavailable")
    }).pipe(Effect.scoped),
  )

  it.live("are found again when the answer to their request was lost", () =>
    Effect.gen(function* () {
      const { cloud, compute } = yield* placed()
      const boot = bootRequest()
      cloud.is_answer_lost = true
      const failure = yield* Effect.flip(compute.boot(boot))
      assert.equal(failure.code, "svc.backend_unavailable")
      cloud.is_answer_lost = false
      yield* compute.boot(boot)
      assert.equal(cloud.servers.size, 1)
    }).pipe(Effect.scoped),
  )

  it.live("are unusable if Nova could not create them, and can be released", () =>
    Effect.gen(function* () {
      const { cloud, compute } = yield* placed()
      const boot = bootRequest()
      yield* compute.boot(boot)
      for (const server of cloud.servers.values()) server.status = "ERROR"
      assert.equal(yield* compute.find(boot.worker_id), "gone")
      const failure = yield* Effect.flip(compute.boot(boot))
      assert.equal(failure.code, "svc.worker_unavailable")
      yield* compute.destroy(boot.worker_id)
      assert.equal(cloud.servers.size, 0)
    }).pipe(Effect.scoped),
  )
})
