import { assert, describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { NodeAddress } from "#schemas/blob-storage/node.ts"
import { cluster } from "#schemas/blob-storage/settings.ts"
import { decodeSetting } from "#schemas/setting.ts"

const path = "cluster.advertise_address"
const decode = (text: string) => decodeSetting(path, cluster.advertise_address, text)

describe("the address that a node advertises", () => {
  const taken = [
    "",
    "node-1:80",
    "node_1.example.org:9797",
    "10.0.0.1:65535",
    "[2001:db8::1]:1",
    `${"h".repeat(122)}:65535`,
  ]
  for (const text of taken) {
    it(`may be ${text.slice(0, 40) || "left out"}`, () => {
      assert.deepEqual(decode(text), Result.succeed(text))
      if (text !== "") assert.equal(Schema.decodeUnknownSync(NodeAddress)(text), text)
    })
  }

  const refused = [
    "node-1",
    "node-1:",
    ":80",
    "node-1:0",
    "node-1:65536",
    "node-1:123456",
    "-a:80",
    ".a:80",
    "a-:80",
    "a b:80",
    "http://a:80",
    "2001:db8::1:80",
    "[]:80",
    " ",
    "a:80\n",
    `${"h".repeat(123)}:65535`,
    `${"h".repeat(253)}:80`,
  ]
  for (const text of refused) {
    it(`is not ${JSON.stringify(text.slice(0, 40))}, in one line that says what it must be`, () => {
      const decoded = decode(text)
      assert.isTrue(Result.isFailure(decoded))
      const wrong = Result.isFailure(decoded) ? decoded.failure : undefined
      assert.equal(wrong?.path, path)
      expect(wrong?.problem).toMatch(
        /^must be a string \(host:port; IPv6 in brackets; at most 128 .+$/,
      )
      assert.notInclude(wrong?.problem ?? "", "\n")
    })
  }
})
