/** Responses go only to the requester's own inbox; reply subjects outside it are rejected. */
import { assert, describe, it } from "vitest"
import { responseSubject } from "#bus"

const inbox = "_INBOX_worker-1"

describe("the subject of an answer", () => {
  it("is in the inbox of the requester", () => {
    for (const reply of [`${inbox}.aZ09`, `${inbox}.AB12.CD34`]) {
      assert.equal(responseSubject(inbox, { reply }), reply)
    }
  })

  const hostile = [
    undefined,
    "",
    inbox,
    `${inbox}.`,
    `${inbox}..a`,
    `${inbox}.a.`,
    `${inbox}.a.b.c`,
    `${inbox}.*`,
    `${inbox}.>`,
    `${inbox}.a b`,
    `${inbox}.a\r\nPUB commit.x 0`,
    `${inbox}.${"a".repeat(65)}`,
    `${inbox}2.a`,
    `_INBOX_worker-2.a`,
    "_INBOX.a",
    "commit.share-protection.target.forged",
    "events.share-protection.target.forged",
    "$JS.API.STREAM.DELETE.ALMANAC_LOG",
    "$KV.leases.conductor",
    "agent.worker-2.offer",
  ]
  for (const reply of hostile) {
    it(`is none for ${JSON.stringify(reply)}`, () => {
      assert.isUndefined(responseSubject(inbox, reply === undefined ? {} : { reply }))
    })
  }
})
