import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Redacted, Schedule, Scope } from "effect"
import { v7 } from "uuid"
import { type Boot, Compute } from "#actors/share-protection/ports/compute.ts"
import { ensureDefaultImage, findImage } from "#adapters/share-protection/compute-images.ts"
import { computeLocal, type LocalComputeOptions } from "#adapters/share-protection/compute-local.ts"
import { type BusUser, BusUserRefused, type BusUsers } from "#bus"
import { ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import { type ComputePlace, computeContract } from "../../../contract/share-protection/compute.ts"
import { temporaryFolder } from "../../../world/programs/nats.ts"

const engine_version = "0.19.1"
const images = { worker: "almanac-agent", engine_version, other: "debian" }
const patience_ms = 10_000
const soon = Schedule.spaced(10)

/** A bus that records its admitted users. */
const door = () => {
  const inside = new Map<string, BusUser>()
  const users: BusUsers = {
    admit: (user) => Effect.asVoid(Effect.sync(() => inside.set(user.name, user))),
    dismiss: (name) => Effect.asVoid(Effect.sync(() => inside.delete(name))),
  }
  return { inside, users }
}

const room = Effect.fnUntraced(function* (
  how: ReadonlyArray<string> = [],
  options: Partial<LocalComputeOptions> = {},
) {
  const folder = yield* temporaryFolder
  yield* ensureDefaultImage(folder, engine_version)
  writeFileSync(join(folder, "debian.json"), '{"name":"debian"}')
  const calls_path = join(folder, "said")
  const local = yield* computeLocal({
    images_dir: folder,
    max_machines: 8,
    users: undefined,
    agent: {
      program: process.execPath,
      args: [join(import.meta.dirname, "hold-agent.ts"), calls_path, ...how],
      environment: { PATH: process.env.PATH },
      credentials: (boot, seed) =>
        JSON.stringify({ ...boot, seed: seed === null ? null : Redacted.value(seed) }),
    },
    ...options,
  })
  const heard = until(() => JSON.parse(readFileSync(calls_path, "utf8")))
  return { ...local, folder, heard }
})

/** Polls until the function returns a value other than false without throwing, for at most 10 s. */
const until = <A>(look: () => A) =>
  Effect.suspend(() => {
    try {
      const found = look()
      return found === false ? Effect.fail("not yet") : Effect.succeed(found)
    } catch {
      return Effect.fail("not yet")
    }
  }).pipe(Effect.retry({ times: 1000, schedule: soon }), Effect.orDie)

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Running agents that were started for this folder; each test has its own folder. */
const processesIn = (folder: string) =>
  readdirSync("/proc").filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(join(folder, "said"))
    } catch {
      return false
    }
  }).length

const bootRequest = (): Boot => ({
  worker_id: WorkerId.make(v7()),
  image: images.worker,
  project_id: ProjectId.make("p"),
  domain_id: null,
})

describe("local machines", () => {
  computeContract((name, body) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const { compute, folder } = yield* room()
        const place: ComputePlace = {
          images,
          project_id: "p",
          patience_ms,
          machines: () => Effect.sync(() => processesIn(folder)),
        }
        yield* Effect.provide(body(place), Layer.succeed(Compute, compute))
      }).pipe(Effect.scoped),
    ),
  )

  it.live("give an agent its credentials, and let its user in for as long as it runs", () =>
    Effect.gen(function* () {
      const { inside, users } = door()
      const { compute, heard } = yield* room([], { users })
      const boot = bootRequest()
      yield* compute.boot(boot)
      const { pid, credentials } = yield* heard
      const { seed, ...who } = JSON.parse(credentials)
      assert.deepEqual(who, boot)
      assert.match(seed, /^SU/)
      assert.match(inside.get(boot.worker_id)?.public_key ?? "", /^U/)
      assert.notInclude(readFileSync(`/proc/${pid}/cmdline`, "utf8"), seed)
      assert.notInclude(readFileSync(`/proc/${pid}/environ`, "utf8"), seed)
      yield* compute.destroy(boot.worker_id)
      yield* until(() => !isAlive(pid) && !inside.has(boot.worker_id))
    }).pipe(Effect.scoped),
  )

  it.live("boot none whom the bus does not let in", () =>
    Effect.gen(function* () {
      const admit = () => Effect.fail(new BusUserRefused({ message: "The bus is full." }))
      const { compute } = yield* room([], { users: { admit, dismiss: () => Effect.void } })
      const boot = bootRequest()
      const failure = yield* Effect.flip(compute.boot(boot))
      assert.equal(failure.detail, "The bus is full.")
      assert.equal(yield* compute.find(boot.worker_id), "gone")
    }).pipe(Effect.scoped),
  )

  it.live("are no more than they may be, and one that went makes room", () =>
    Effect.gen(function* () {
      const { compute } = yield* room([], { max_machines: 1 })
      const [one, other] = [bootRequest(), bootRequest()]
      yield* compute.boot(one)
      const failure = yield* Effect.flip(compute.boot(other))
      assert.equal(failure.detail, "The maximum of 1 workers is running.")
      yield* compute.destroy(one.worker_id)
      yield* Effect.retry(compute.boot(other), { times: 1000, schedule: soon })
    }).pipe(Effect.scoped),
  )

  it.live("are gone when their agent ended by itself", () =>
    Effect.gen(function* () {
      const { inside, users } = door()
      const { compute } = yield* room(["--brief"], { users })
      const boot = bootRequest()
      yield* compute.boot(boot)
      yield* until(() => !inside.has(boot.worker_id))
      assert.equal(yield* compute.find(boot.worker_id), "gone")
    }).pipe(Effect.scoped),
  )

  it.live("leave no engine behind when their agent is killed", () =>
    Effect.gen(function* () {
      const { compute, heard } = yield* room(["--engine"])
      yield* compute.boot(bootRequest())
      const { pid, engine } = yield* heard
      assert.isTrue(isAlive(engine))
      process.kill(pid, "SIGKILL")
      yield* until(() => !isAlive(engine))
    }).pipe(Effect.scoped),
  )

  it.live("end with the server, once its shutdown begins", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { compute, shutdown, heard } = yield* Effect.provideService(room(), Scope.Scope, scope)
      const boot = bootRequest()
      yield* compute.boot(boot)
      const { pid } = yield* heard
      yield* shutdown
      const failure = yield* Effect.flip(compute.boot(bootRequest()))
      assert.equal(failure.detail, "The server is stopping.")
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(isAlive(pid))
    }),
  )

  it.live("are killed when they do not hear", () =>
    Effect.gen(function* () {
      const { compute, heard } = yield* room(["--deaf"], { stop_ms: 300 })
      const boot = bootRequest()
      yield* compute.boot(boot)
      const { pid } = yield* heard
      yield* compute.destroy(boot.worker_id)
      assert.equal(yield* compute.find(boot.worker_id), "active")
      yield* until(() => !isAlive(pid))
    }).pipe(Effect.scoped),
  )
})

describe("local images", () => {
  it.live("are what the newest manifest of the name says; other files are passed over", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* ensureDefaultImage(folder, "0.18.0")
      yield* ensureDefaultImage(folder, engine_version)
      for (const text of ["", "{", '{"name":""}', '{"name":7}', "x".repeat(10_000)]) {
        writeFileSync(join(folder, "broken.json"), text)
        const found = yield* findImage(folder, images.worker)
        assert.equal(found?.properties.engine_version, engine_version)
      }
    }).pipe(Effect.scoped),
  )

  it.live("are none where there is no folder", () =>
    Effect.gen(function* () {
      assert.isUndefined(yield* findImage("/nowhere/images", images.worker))
    }),
  )
})
