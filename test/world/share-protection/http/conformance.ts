/** Checks each response against the endpoint's definition in the API document. */
import { assert } from "@effect/vitest"
import { Schema } from "effect"
import { HttpApi } from "effect/http-api"

interface Documented {
  readonly method: string
  readonly path: RegExp
  readonly successes: ReadonlyMap<number, ReadonlyArray<Schema.Top>>
  readonly errors: ReadonlyMap<number, ReadonlyArray<Schema.Top>>
}

/** Statuses that the HTTP layer returns for any endpoint. */
const of_the_door = new Set([401, 403, 404, 405, 408, 413, 414, 415, 429, 500, 503, 504])

/** The response to a reused idempotency key, which is not the endpoint's own 422. */
const isOfKey = ({ status, text }: Answered) => status === 422 && /Idempotency-Key/.test(text)

interface Answered {
  readonly status: number
  readonly text: string
  readonly body: unknown
}

const fits = (schemas: ReadonlyArray<Schema.Top>, body: unknown) =>
  schemas.some((schema) => {
    // Decoding with these schemas needs no service.
    const codec = schema as unknown as Schema.Codec<unknown, unknown>
    const decode = Schema.decodeUnknownSync(codec, { onExcessProperty: "error" })
    try {
      decode(body)
      return true
    } catch (error) {
      if (schemas.length === 1) throw error
      return false
    }
  })

/** Throws for a status or a body that the endpoint's schemas do not define. */
export const conformance = (api: HttpApi.Constraint) => {
  const all: Array<Documented> = []
  // Every HttpApi has these properties; the library erases their types this way.
  HttpApi.reflect(api as HttpApi.Top, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint: { method, path }, successes, errors }) => {
      const pattern = new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}/?$`)
      all.push({ method, path: pattern, successes, errors })
    },
  })
  return (method: string, url: string, answered: Answered) => {
    const { status, text, body } = answered
    if (isOfKey(answered)) return
    const [path = ""] = url.split("?")
    const documented = all.find((one) => one.method === method && one.path.test(path))
    if (documented === undefined) {
      assert.include([400, 404, 405, 414], status)
      return
    }
    const success = documented.successes.get(status)
    if (success !== undefined) {
      if (status === 204) assert.equal(text, "")
      else assert.isTrue(fits(success, body), `${method} ${path} ${status}: ${text}`)
      return
    }
    const error = documented.errors.get(status)
    const is_known = error !== undefined && fits(error, body)
    assert.isTrue(is_known || of_the_door.has(status), `${method} ${path} ${status}: ${text}`)
  }
}
