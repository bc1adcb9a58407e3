/** Query plans of webhooks and dead letters. */
import { describe, expect, it } from "vitest"
import { countWebhooks, listLetters, listWebhooks } from "#projections/system/webhook.ts"
import { blueprint } from "#projections/system/webhook-model.ts"
import { planOf } from "../../world/query-plan.ts"

const page = { limit: 100 }

describe("an index finds", () => {
  it("a project's webhooks in the order of their ids", async () => {
    const plan = await planOf(blueprint, (db) => listWebhooks(db, "p", page))
    expect(plan).toMatch(/INDEX system_webhook_project_id \(project_id=\? AND id>\?\)/)
    expect(plan).not.toContain("B-TREE")
  })

  it("the number of a project's webhooks", async () => {
    const plan = await planOf(blueprint, (db) => countWebhooks(db, "p"))
    expect(plan).toContain("INDEX system_webhook_project_id (project_id=?)")
  })

  it("a webhook's dead letters in the order of the events", async () => {
    const plan = await planOf(blueprint, (db) => listLetters(db, "w", page))
    expect(plan).toMatch(/\(webhook_id=\? AND sequence>\?\)/)
    expect(plan).not.toContain("B-TREE")
  })
})
