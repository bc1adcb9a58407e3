/**
 * Snapshot tags: what a snapshot says of itself, so that the catalogue can be made anew from the
 * repository alone.
 */
import { Schema } from "effect"
import { BackupId, PolicyId, ProjectId, ShareId } from "#schemas/share-protection/id.ts"

const SnapshotTags = Schema.Struct({
  backup_id: BackupId,
  project_id: ProjectId,
  share_id: ShareId,
  policy_id: Schema.NullOr(PolicyId),
  crash_consistent: Schema.Boolean,
})
export type SnapshotTags = typeof SnapshotTags.Type

/** By it a backup's snapshot is found: ids of snapshots may change, tags stay. */
export const backupTag = (backup_id: BackupId) => `backup=${backup_id}`

export const tagsOf = (tags: SnapshotTags): ReadonlyArray<string> => [
  backupTag(tags.backup_id),
  `project=${tags.project_id}`,
  `share=${tags.share_id}`,
  ...(tags.policy_id === null ? [] : [`policy=${tags.policy_id}`]),
  `crash_consistent=${tags.crash_consistent}`,
]

const decode = Schema.decodeUnknownOption(SnapshotTags)

/** What a snapshot's tags say; none when it is not of this service. */
export const readTags = (tags: ReadonlyArray<string>) => {
  const said = new Map(
    tags.map((tag) => {
      const sign = tag.indexOf("=")
      return [tag.slice(0, sign), tag.slice(sign + 1)]
    }),
  )
  return decode({
    backup_id: said.get("backup"),
    project_id: said.get("project"),
    share_id: said.get("share"),
    policy_id: said.get("policy") ?? null,
    crash_consistent: said.get("crash_consistent") === "true",
  })
}
