import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { dispatch } from "#actors/share-protection/dispatch/dispatch.ts"
import type { CompleteBackup } from "#schemas/share-protection/backup.ts"
import {
  begin,
  conducted,
  dispatch_options,
  ready,
} from "../../world/share-protection/conducted.ts"
import {
  availableTarget,
  madeBackup,
  restoreOf,
} from "../../world/share-protection/conducted-scenes.ts"
import { worker_id } from "../../world/share-protection/job-samples.ts"

/** The unread paths in the order for a restore of this backup. */
const toldOf = Effect.fnUntraced(function* (
  made: Partial<typeof CompleteBackup.Type>,
  mode: "in_place" | "new_share" = "in_place",
) {
  yield* begin(dispatch(dispatch_options))
  yield* availableTarget(1)
  yield* madeBackup(1, 1, made)
  const { offered } = yield* ready(worker_id)
  yield* restoreOf(1, 1, 1, { mode, force: true })
  const [order] = offered
  assert(order?.job_type === "restore")
  return order.unread
})

describe("the order for a restore in place", () => {
  const cases = [
    ["names what the backup could not read", { partial: true, unread: ["/a", "/b"] }, ["/a", "/b"]],
    ["lists everything of a partial backup without a report", { partial: true }, ["/"]],
    ["names nothing of one that read all", { partial: false }, []],
  ] as const
  for (const [what, made, unread] of cases) {
    conducted(
      what,
      Effect.gen(function* () {
        assert.deepEqual(yield* toldOf(made), unread)
      }),
    )
  }
})
