import { describe } from "@effect/vitest"
import { Layer } from "effect"
import { webhookCursorsMemory } from "#adapters/system/webhook/cursors-memory.ts"
import { webhookCursorsContract } from "../../contract/webhook-cursors.ts"

describe("webhooks' cursors in memory", () => {
  webhookCursorsContract(() => Layer.fresh(webhookCursorsMemory))
})
