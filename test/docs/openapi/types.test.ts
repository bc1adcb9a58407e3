/**
 * Clients generated from the API document have named types, and responses have the types that a
 * server sends, which are stricter than those that it accepts.
 */
import { assert, describe, it } from "vitest"
import { shape_a } from "#gateway/share-protection/shapes/shape-a.ts"
import { shape_b } from "#gateway/share-protection/shapes/shape-b.ts"
import { apisOf } from "../../world/every-api.ts"
import { type Document, documentOf, type Json } from "./gaps.ts"

const documents = [shape_a, shape_b].map((shape) => documentOf(apisOf(shape)))

interface Body {
  readonly place: string
  readonly is_request: boolean
  readonly schema: Json
}

/** The bodies of requests and of successful responses. */
const bodiesIn = ({ paths }: Document): ReadonlyArray<Body> =>
  Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody, responses }]) => {
      const successes = Object.entries(responses).filter(([status]) => status < "400")
      const bodies = [
        { is_request: true, content: requestBody?.content ?? {} },
        ...successes.map(([, { content = {} }]) => ({ is_request: false, content })),
      ]
      return bodies.flatMap(({ is_request, content }) =>
        Object.entries(content).flatMap(([type, { schema }]) =>
          schema === undefined ? [] : [{ place: `${method} ${path} ${type}`, is_request, schema }],
        ),
      )
    }),
  )

/** The components that a part of the document refers to, also indirectly. */
const componentsOf = ({ components }: Document, part: unknown) => {
  const found = new Set<string>()
  const visit = (one: unknown) => {
    for (const [, name = ""] of JSON.stringify(one).matchAll(/#\/components\/schemas\/(\w+)/g)) {
      if (found.has(name)) continue
      found.add(name)
      visit(components.schemas[name])
    }
  }
  visit(part)
  return found
}

describe("the API document", () => {
  it("names the type of each body with fields", () => {
    const unnamed = documents.flatMap(bodiesIn).filter(({ schema }) => {
      const { properties, anyOf } = schema
      return properties !== undefined || anyOf !== undefined
    })
    assert.deepEqual(
      unnamed.map(({ place }) => place),
      [],
    )
  })

  it("names types as programs do, and uses each of them", () => {
    for (const document of documents) {
      const names = Object.keys(document.components.schemas)
      for (const name of names) assert.match(name, /^[A-Z][A-Za-z0-9]+$/)
      for (const name of names) assert.notMatch(name, /Encoded|Schema$/)
      assert.deepEqual(new Set(names), componentsOf(document, document.paths))
    }
  })

  it("has no property whose schema is a boolean, which generators do not read", () => {
    const places: Array<string> = []
    const visit = (part: unknown, place: string) => {
      if (typeof part !== "object" || part === null) return
      for (const [name, one] of Object.entries(part)) {
        if (/\.properties$/.test(place) && typeof one === "boolean") places.push(`${place}.${name}`)
        if (name !== "example") visit(one, `${place}.${name}`)
      }
    }
    for (const document of documents) visit(document, "")
    assert.deepEqual(places, [])
  })

  it("has one type of error for each group of paths, and one with more members", () => {
    for (const { paths, components } of documents) {
      const errors = Object.values(paths).flatMap((operations) =>
        Object.values(operations).flatMap(({ responses }) =>
          Object.entries(responses).flatMap(([status, { content }]) =>
            status >= "400" ? [content?.["application/json"]?.schema?.$ref] : [],
          ),
        ),
      )
      const types = ["BlobError", "DashboardError", "Error", "NodeUnknownError", "ServiceError"]
      const names = types.map((name) => `#/components/schemas/${name}`)
      assert.deepEqual(new Set(errors), new Set(names))
      const text = JSON.stringify(components.schemas.BlobError)
      assert.include(text, '"enum":["ALREADY_EXISTS","DEADLINE_EXCEEDED",')
    }
  })

  it("names a blob's ID and the lines of a search, which have fields within fields", () => {
    for (const { components } of documents) {
      const names = ["BlobId", "SearchProgress", "SearchSummary", "SearchFailure"]
      assert.containsAllKeys(components.schemas, names)
      const put = components.schemas.PutResponse as { properties: Record<string, Json> }
      assert.equal(put.properties.id?.$ref, "#/components/schemas/BlobId")
      assert.notMatch(JSON.stringify(components.schemas), /"title":"(BlobId|Search)/)
    }
  })

  it("has the members of each array, which the Python generator requires", () => {
    const arraysIn = (value: unknown): ReadonlyArray<Json> => {
      if (typeof value !== "object" || value === null) return []
      const own = "type" in value && value.type === "array" ? [value as Json] : []
      return [...own, ...Object.values(value).flatMap(arraysIn)]
    }
    const arrays = documents.flatMap(({ components }) => arraysIn(components))
    assert.isAbove(arrays.length, 100)
    assert.deepEqual(
      arrays.filter((schema) => !("items" in schema || "prefixItems" in schema)),
      [],
    )
  })

  it("accepts two forms of a blob's ID and of 64-bit integers, and sends one", () => {
    for (const document of documents) {
      const bodies = bodiesIn(document)
      const partOf = (is_request: boolean) => {
        const part = bodies.filter((one) => one.is_request === is_request)
        return componentsOf(document, part)
      }
      const { schemas } = document.components
      const sent = [...partOf(false)].map((name) => JSON.stringify(schemas[name]))
      const accepted = [...partOf(true)].map((name) => JSON.stringify(schemas[name]))
      const two_forms = /"anyOf":\[\{"type":"(integer|object)"[^[]*\},\{"type":"string"/
      assert.isTrue(accepted.some((text) => two_forms.test(text)))
      assert.deepEqual(
        sent.filter((text) => two_forms.test(text)),
        [],
      )
      // A type for both directions would have the form of only one of them.
      assert.deepEqual(
        accepted.filter((text) => text.includes('"int64"')),
        [],
      )
    }
  })

  it('has 64-bit integers as strings with json.int64 = "string"', () => {
    const { components } = documentOf(apisOf(shape_a), "string")
    const meta = components.schemas.BlobMeta as { properties: Record<string, Json> }
    assert.deepInclude(meta.properties.size, { type: "string", format: "int64" })
    assert.deepEqual(meta.properties.policy?.type, "string")
  })
})
