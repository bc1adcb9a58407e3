/** The examples of webhooks in the API reference are recorded responses. */
import { describe } from "@effect/vitest"
import { expect } from "vitest"
import { OperationsApi } from "#gateway/system/apis/operations.ts"
import { GiveUpDeliveries } from "#schemas/system/webhook.ts"
import { type Asked, served } from "../../world/system/webhooks-served.ts"
import { documentOf } from "./gaps.ts"
import { fileText, recorder } from "./recording.ts"

const file = `${import.meta.dirname}/../../../gateway/system/apis/webhook-examples.json`

const letterOf = (sequence: number) => ({
  sequence,
  event_id: `${sequence}.0`,
  event_type: "blob_stored",
  event_subject: "e5425f4032ab4cf68e233abd2ed7e829",
  attempts: 12,
  first_failed_at: "2026-11-20T12:00:00.000Z",
  detail: "It answered 500.",
})

type Record = ReturnType<typeof recorder>["record"]

const useWebhooks = async (asked: Asked, record: Record, path: string, who: string) => {
  const ask = async (method: string, at: string, request?: object) => {
    const { status, body } = await asked.ask(who, method, at, request)
    const response = status === 204 ? "" : body
    record({ method, path: at, status, response, ...(request !== undefined && { request }) })
    return body
  }
  const body = {
    url: "https://hooks.example.org/almanac",
    description: "Build pipeline",
    types: ["blob_stored"],
  }
  const { id } = await ask("POST", path, body)
  const at = `${path}/${id}`
  await ask("GET", `${path}?limit=10`)
  await ask("GET", at)
  await ask("PATCH", at, { description: "Nightly build" })
  await ask("POST", `${at}/secret`, { overlap_hours: 24 })
  await ask("POST", `${at}/test`)
  await asked.publish(12)
  await ask("POST", `${at}/replay`, { after: 0 })
  await asked.command(id, GiveUpDeliveries.make({ letters: [3, 5, 9].map(letterOf) }))
  // A write waits for its own position, so later requests see the dead letters too.
  await ask("PATCH", at, { description: "Nightly build" })
  await ask("GET", `${at}/dead-letters?limit=10`)
  await ask("POST", `${at}/dead-letters/5/redeliver`)
  await ask("POST", `${at}/dead-letters/redeliver`)
  await ask("DELETE", at)
  await ask("GET", at)
}

describe("the examples of webhooks", () => {
  served("are recorded responses", async (asked) => {
    const { record, examples } = recorder(documentOf([OperationsApi]))
    await useWebhooks(asked, record, "/v1/webhooks", "one")
    await useWebhooks(asked, record, "/v1/admin/webhooks", "admin")
    await expect(fileText(file, examples)).toMatchFileSnapshot(file)
  })
})
