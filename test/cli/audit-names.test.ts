import { assert, describe, it } from "@effect/vitest"
import { unknownNames } from "#cli/audit/names.ts"
import { typesOf } from "#schemas/message.ts"
import { deciders } from "#server/aggregate-kinds.ts"

describe("a name that the audit is asked for", () => {
  it("is known of every kind of aggregate", () => {
    for (const { name, event } of deciders) {
      const [service = "", aggregate = ""] = name.split(".")
      for (const type of typesOf(event)) {
        assert.deepEqual(unknownNames({ service, aggregate, type }), [])
      }
    }
  })

  it("is reported if it is unknown, with a suggestion if there is one", () => {
    assert.deepEqual(unknownNames({ aggregate: "jbo", type: "\nx" }), [
      "--aggregate: no event of this release has the aggregate jbo; did you mean job?",
      '--type: no event of this release has the type "\\nx"',
    ])
    assert.deepEqual(unknownNames({ actor: "anybody", subject: "anything" }), [])
  })
})
