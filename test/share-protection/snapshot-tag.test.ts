import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import {
  backupTag,
  readTags,
  type SnapshotTags,
  tagsOf,
} from "#actors/share-protection/snapshot-tag.ts"
import { backup_id, policy_id, project_id, share_id } from "../world/share-protection/samples.ts"

const tags: SnapshotTags = { backup_id, project_id, share_id, policy_id, crash_consistent: true }

describe("a snapshot's tags", () => {
  for (const fields of [tags, { ...tags, policy_id: null }, { ...tags, crash_consistent: false }]) {
    it(`encode ${JSON.stringify(fields)}`, () => {
      assert.deepEqual(readTags(tagsOf(fields)), Option.some(fields))
      assert.deepEqual(readTags(tagsOf(fields).toReversed()), Option.some(fields))
      assert.include(tagsOf(fields), backupTag(backup_id))
    })
  }

  it("have no comma, which would split a tag", () => {
    assert.isTrue(tagsOf(tags).every((tag) => /^[\w=-]+$/.test(tag)))
  })

  for (const [what, foreign] of [
    ["no tags", []],
    ["tags of somebody else", ["nightly", "host=a"]],
    ["an id that is none", [...tagsOf(tags).slice(1), "backup=1"]],
    ["no share", tagsOf(tags).filter((tag) => !tag.startsWith("share="))],
  ] as const) {
    it(`decode to nothing if there are ${what}`, () => {
      assert.deepEqual(readTags(foreign), Option.none())
    })
  }
})
