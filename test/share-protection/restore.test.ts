import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { machine, Restore } from "#actors/share-protection/restore.ts"
import {
  RestoreCompleted,
  type RestoreEvent,
  RestoreFailed,
  RestoreQueued,
  RestoreRequested,
  RestoreRetried,
  RestoreStarted,
} from "#events/share-protection/restore.ts"
import {
  CompleteRestore,
  FailRestore,
  QueueRestore,
  RequestRestore,
  RestoreStatus,
  RetryRestore,
  StartRestore,
  SubPath,
} from "#schemas/share-protection/restore.ts"
import { histories } from "../world/histories.ts"
import {
  longest,
  longest_project_id,
  new_share_id,
  restore,
  restored,
} from "../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const reason = "The engine exited with 1."
const requested = RestoreRequested.make(restore)
const queued = RestoreQueued.make({})
const started = RestoreStarted.make({})
const completed = RestoreCompleted.make(restored)
const failed = RestoreFailed.make({ reason })
const retried = RestoreRetried.make({})

const states = {
  absent: [],
  pending: [requested],
  queued: [requested, queued],
  running: [requested, queued, started],
  "running without having been queued": [requested, started],
  available: [requested, queued, started, completed],
  error: [requested, queued, started, failed],
  "queued again": [requested, failed, retried],
} satisfies Record<string, ReadonlyArray<RestoreEvent>>

const absent = { absent: "svc.not_found" } as const
const illegal = "svc.invalid_state_transition"

const known = (...events: ReadonlyArray<RestoreEvent>) =>
  events.reduce(Restore.evolve, Restore.initialState).context

describe("a restore", () => {
  everyState(Restore, states, {
    RequestRestore: [
      {
        command: RequestRestore.make(restore),
        in: { absent: [requested] },
        otherwise: "svc.conflict",
      },
    ],
    QueueRestore: [
      {
        command: QueueRestore.make({}),
        in: { ...absent, pending: [queued], queued: [], "queued again": [] },
        otherwise: illegal,
      },
    ],
    StartRestore: [
      {
        command: StartRestore.make({}),
        in: { ...absent, pending: [started], queued: [started], "queued again": [started] },
        otherwise: illegal,
      },
    ],
    CompleteRestore: [
      {
        command: CompleteRestore.make(restored),
        in: {
          ...absent,
          running: [completed],
          "running without having been queued": [completed],
        },
        otherwise: illegal,
      },
    ],
    FailRestore: [
      {
        command: FailRestore.make({ reason }),
        in: { ...absent, available: illegal, error: illegal },
        otherwise: [failed],
      },
    ],
    RetryRestore: [
      {
        command: RetryRestore.make({}),
        in: { ...absent, error: [retried] },
        otherwise: "svc.conflict",
      },
    ],
  })

  it("reaches exactly the documented states", () => {
    const events = [requested, queued, started, completed, failed, retried]
    const met = new Set([...histories(machine, events, 6)].map(({ state }) => state.value))
    assert.deepEqual(met, new Set(RestoreStatus.literals))
  })

  it("keeps its request, its new share and its error", () => {
    const body = { ...restore, new_share_id: null, reason: null }
    assert.deepEqual(known(requested, queued, started), body)
    assert.deepEqual(known(...states.available), { ...body, new_share_id })
    assert.deepEqual(known(...states.error), { ...body, reason })
    assert.deepEqual(known(...states["queued again"]), body)
  })

  it("fits in a snapshot with every field at its longest", () => {
    // A quotation mark takes one byte in the path and two bytes in JSON.
    const sub_path = `/${'"'.repeat(4095)}`
    const long = RestoreRequested.make({ ...restore, project_id: longest_project_id, sub_path })
    const saved = assertStorable(Restore, [long, RestoreFailed.make({ reason: longest(1024) })])
    assert.isAbove(JSON.stringify(saved).length, 14_000)
  })
})

describe("a path inside a share", () => {
  const is = Schema.is(SubPath)
  const right = ["/", "/a", "/a/b.txt", "/a/", "/..a", "/a..", "/...", "/a b", "/\u20ac", "/a//b"]
  const wrong = ["", "a", "./a", "..", "/..", "/../a", "/a/..", "/a/../b", "/a\nb", "/a\u0000", "~"]
  for (const path of right) it(`may be ${path}`, () => assert.isTrue(is(path)))
  for (const path of wrong) {
    it(`may not be ${JSON.stringify(path)}`, () => assert.isFalse(is(path)))
  }
  it("has at most 4096 bytes", () => {
    assert.isTrue(is(`/${"x".repeat(4095)}`))
    assert.isFalse(is(`/${"x".repeat(4096)}`))
    assert.isTrue(is(`/${"\u20ac".repeat(1365)}`))
    assert.isFalse(is(`/${"\u20ac".repeat(1366)}`))
  })
})

describe("a restore's fields", () => {
  const is = Schema.is(RequestRestore)
  const all = { type: "RequestRestore", ...restore }
  it("are validated", () => {
    assert.isTrue(is(all))
    assert.isTrue(is({ ...all, mode: "in_place", force: true, sub_path: "/a" }))
    const wrong = [{ mode: "copy" }, { force: "true" }, { sub_path: "a" }, { backup_id: "1" }]
    for (const fields of wrong) assert.isFalse(is({ ...all, ...fields }), JSON.stringify(fields))
  })
  it("at its end are integers, and an optional share", () => {
    const completes = Schema.is(CompleteRestore)
    const end = { type: "CompleteRestore", ...restored }
    assert.isTrue(completes({ ...end, new_share_id: null, files: 0, bytes: 0 }))
    for (const fields of [{ files: -1 }, { bytes: 0.5 }, { new_share_id: "1" }]) {
      assert.isFalse(completes({ ...end, ...fields }), JSON.stringify(fields))
    }
  })
})
