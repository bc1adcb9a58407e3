/** The API document describes requests that the server accepts. */
import { randomUUID } from "node:crypto"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Result, Schema } from "effect"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { parseSchedule } from "#actors/share-protection/processes/schedule.ts"
import { shape_a } from "#gateway/share-protection/shapes/shape-a.ts"
import { Bytes } from "#schemas/blob-storage/blob.ts"
import { cron_pattern } from "#schemas/share-protection/cron.ts"
import { WebhookUrl } from "#schemas/system/webhook.ts"
import { apisOf } from "../../world/every-api.ts"
import { documentOf, type Json } from "./gaps.ts"

const document = documentOf(apisOf(shape_a))
const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema({ ...document, $id: "almanac" })

/** Whether a value fits a component of the document. */
const fits = (component: string, value: unknown) =>
  ajv.validate({ $ref: `almanac#/components/schemas/${component}` }, value)

/** The schema of a query parameter wherever an operation has it. */
const parametersNamed = (name: string): ReadonlyArray<Json> =>
  Object.values(document.paths)
    .flatMap((operations) => Object.values(operations))
    .flatMap(({ parameters }) => parameters.filter((one) => one.name === name))
    .map(({ schema }) => schema)

const seed = 7

describe("the API document", () => {
  it("describes a time of the past by its format, because a pattern accepts the 40th day", () => {
    const schemas = parametersNamed("as_of")
    assert.isAbove(schemas.length, 5)
    for (const schema of schemas) assert.deepEqual(schema, { type: "string", format: "date-time" })
  })

  it("requires a rule of a retention", () => {
    const requested = { name: "nightly", schedule: "@daily" }
    const ids = { share_id: randomUUID(), target_id: randomUUID() }
    const accepts = (retention: object) => fits("NewPolicy", { ...requested, ...ids, retention })
    assert.isFalse(accepts({}))
    assert.isFalse(accepts({ keep_last: 0, keep_daily: 0 }))
    assert.isTrue(accepts({ keep_last: 0, keep_daily: 1 }))
  })

  it("allows one form of a target's secrets", () => {
    const target = { name: "backups", endpoint: "https://s3.example.org", bucket: "backups" }
    const href = `https://vault.example.org/v1/secrets/${randomUUID()}`
    const refs = { vault_secret_refs: [href, href] }
    const map = { vault_secret_map: { access_key: href, secret_key: href } }
    assert.isTrue(fits("NewTarget", { ...target, ...refs }))
    assert.isTrue(fits("NewTarget", { ...target, ...map }))
    assert.isFalse(fits("NewTarget", { ...target, ...refs, ...map }))
  })

  it("requires a target or a policy of a backup", () => {
    const [id, share_id] = [randomUUID(), randomUUID()]
    const accepts = (fields: object) => fits("NewBackup", { share_id, ...fields })
    assert.isFalse(accepts({}))
    assert.isFalse(accepts({ policy_id: null }))
    assert.isTrue(accepts({ policy_id: id }))
    assert.isTrue(accepts({ target_id: id, policy_id: null }))
  })

  it("accepts only integers of 64 bits in requests, and any of them in responses", () => {
    const text = JSON.stringify(document)
    const bounds = [...text.matchAll(/"maximum":(\d{19,20})(,"format":"int64")?/g)]
    assert.isAbove(bounds.length, 5)
    for (const [, bound = "", format] of bounds) {
      const largest = 2n ** (bound.length === 19 ? 63n : 64n) - 1n
      assert.equal(BigInt(bound) > largest, format !== undefined, bound)
    }
  })

  it("says which images a form has", () => {
    for (const path of ["/predict", "/predict/batch"]) {
      const form = document.paths[path]?.post?.requestBody?.content?.["multipart/form-data"]
      const encoding = { file: { contentType: "image/jpeg, image/png" } }
      assert.deepInclude<object | undefined>(form, { encoding })
    }
  })

  it("describes each response", () => {
    for (const operations of Object.values(document.paths)) {
      for (const { operationId, responses } of Object.values(operations)) {
        for (const { description } of Object.values(responses)) {
          assert.notEqual(description, "<No Content>", operationId)
        }
      }
    }
  })

  it("requires one input of an inference, with a shape and data", () => {
    const input = { name: "image", shape: [1], datatype: "BYTES", data: ["aGVsbG8="] }
    const accepts = (...inputs: ReadonlyArray<object>) => fits("InferenceRequest", { inputs })
    assert.isTrue(accepts(input))
    assert.isFalse(accepts())
    assert.isFalse(accepts(input, input))
    assert.isFalse(accepts({ ...input, shape: [] }))
    assert.isFalse(accepts({ ...input, shape: [0] }))
    assert.isFalse(accepts({ ...input, data: [] }))
  })

  it("describes base64 that the server decodes", () => {
    const [pattern = ""] = /\^\(\[A-Za-z0-9\+\/\]\{4\}[^"]*/.exec(JSON.stringify(document)) ?? []
    const decode = Schema.decodeUnknownSync(Bytes)
    const texts = fc.sample(fc.stringMatching(new RegExp(pattern)), { seed, numRuns: 200 })
    for (const text of texts) assert.equal(Buffer.from(decode(text)).toString("base64"), text)
    assert.isAbove(texts.filter((text) => text.endsWith("=")).length, 50)
  })

  it("describes the URL of a webhook in responses as widely as the server accepts it", () => {
    const url = "https://hooks.example.org*"
    assert.isTrue(Schema.is(WebhookUrl)(url))
    const { properties } = document.components.schemas.WebhookDetail ?? {}
    assert.isTrue(ajv.validate((properties as Record<string, object>).url ?? {}, url))
  })
})

describe("the documented pattern of a schedule", () => {
  const pattern = new RegExp(cron_pattern)
  const isValid = (text: string) => Result.isSuccess(parseSchedule(text, "UTC"))

  it.each([
    "30 2 * * *",
    "*/15 0-6 1,15 jan-MAR mon",
    "0 0 L,15W ? ?",
    "0 0 * * 5#2",
    "0 0 * * MON#L",
    "05 00 01 01 07",
    "1-5/2  * * * 5L",
    " 0 0 * * 1-7 ",
    "@daily",
    "@HOURLY",
  ])("matches %s, which the server accepts", (text) => {
    assert.isTrue(isValid(text))
    assert.match(text, pattern)
  })

  it.each(["", "0", "* * * *", "60 * * * *", "* 24 * * *", "* * 32 * *", "*/0 * * * *", "@never"])(
    "does not match %j",
    (text) => {
      assert.isFalse(isValid(text))
      assert.notMatch(text, pattern)
    },
  )

  it("generates mostly schedules that the server accepts", () => {
    const texts = fc.sample(fc.stringMatching(pattern), { seed, numRuns: 200 })
    assert.isAbove(texts.filter(isValid).length, 100)
  })
})
