/** `/asyncapi.json`: valid by the official schemas and a linter, and consistent with publishing. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { createConfig, lintFromString } from "@redocly/openapi-core"
import { Ajv } from "ajv"
import { assert, describe, expect, it } from "vitest"
import { asyncApiOf } from "#gateway/system/asyncapi.ts"
import { published_types } from "#server/published.ts"
import { publishedEvent } from "../world/system/events-served.ts"
import { services } from "./events-page.ts"

const document = asyncApiOf(published_types)

/** The parts that the tests read. */
interface Document {
  readonly channels: Readonly<Record<string, { address: string; messages: object }>>
  readonly components: { readonly messages: Readonly<Record<string, { payload: object }>> }
}
// The document consists of plain objects, which the schemas below verify.
const { channels, components } = document as unknown as Document

/** Ignores formats, and keywords that only AsyncAPI defines. */
const lax = { strict: false, validateFormats: false } as const

const specification = () => {
  const path = createRequire(import.meta.url).resolve("@asyncapi/specs/schemas/3.0.0.json")
  return JSON.parse(readFileSync(path, "utf8"))
}

describe("/asyncapi.json", () => {
  it("is an AsyncAPI 3.0.0 document by the specification's own schema", () => {
    const ajv = new Ajv({ ...lax, meta: false, validateSchema: false, allErrors: true })
    const isValid = ajv.compile(specification())
    isValid(document)
    expect(isValid.errors ?? []).toEqual([])
    assert.isFalse(isValid({ ...document, channels: { events: { address: 3 } } }))
  })

  it("passes the linter", async () => {
    const config = await createConfig({ extends: ["recommended"] })
    const problems = await lintFromString({ source: JSON.stringify(document), config })
    expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
  })

  it("has each published type as a message, in all three channels", async () => {
    const names = (await services()).flatMap(([service, types]) =>
      Object.keys(types).map((type) => `${service}.${type}`),
    )
    expect(Object.keys(components.messages).toSorted()).toEqual(names.toSorted())
    for (const name of ["events", "webhook"]) {
      expect(Object.keys(channels[name]?.messages ?? {})).toEqual(Object.keys(components.messages))
    }
    for (const name of names) assert.isDefined(channels[`bus.${name}`])
  })

  it("takes an event of its type, and none whose data lacks a field", () => {
    const ajv = new Ajv(lax)
    const isValid = ajv.compile(components.messages["system.webhook_paused"]?.payload ?? false)
    const of = { service: "system", aggregate: "webhook", type: "webhook_paused" }
    const { event } = publishedEvent(1, { ...of, data: { webhook_id: "w" } })
    assert.isTrue(isValid(event))
    assert.isFalse(isValid({ ...event, data: {} }))
    assert.isFalse(isValid({ ...event, type: "webhook_enabled" }))
    assert.isFalse(isValid({ ...event, source: "/almanac/system/election" }))
  })
})
