/**
 * Snapshot tags: the metadata of a snapshot, from which the catalog can be rebuilt with only the
 * repository.
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

/** The tag that identifies a backup's snapshot: snapshot ids may change, tags do not. */
export const backupTag = (backup_id: BackupId) => `backup=${backup_id}`

export const tagsOf = (tags: SnapshotTags): ReadonlyArray<string> => [
  backupTag(tags.backup_id),
  `project=${tags.project_id}`,
  `share=${tags.share_id}`,
  ...(tags.policy_id === null ? [] : [`policy=${tags.policy_id}`]),
  `crash_consistent=${tags.crash_consistent}`,
]

const decode = Schema.decodeUnknownOption(SnapshotTags)

/** Decodes a snapshot's tags; none if this service did not make it. */
export const readTags = (tags: ReadonlyArray<string>) => {
  const values = new Map(
    tags.map((tag) => {
      const separator = tag.indexOf("=")
      return [tag.slice(0, separator), tag.slice(separator + 1)]
    }),
  )
  return decode({
    backup_id: values.get("backup"),
    project_id: values.get("project"),
    share_id: values.get("share"),
    policy_id: values.get("policy") ?? null,
    crash_consistent: values.get("crash_consistent") === "true",
  })
}
