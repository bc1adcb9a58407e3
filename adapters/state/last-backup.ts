/** The time of the last state backup, stored in the data folder for `almanac doctor`. */
import { join } from "node:path"
import { Schema } from "effect"
import { writeForOwner } from "#files"

export const last_backup_file = "last-backup.json"

export const LastBackup = Schema.fromJsonString(
  Schema.Struct({
    /** RFC 3339, UTC. */
    at: Schema.String,
    position: Schema.Int,
    /** The folder of the backup. */
    to: Schema.String,
  }),
)

export const recordBackup = (data_dir: string, record: typeof LastBackup.Type) =>
  writeForOwner(join(data_dir, last_backup_file), Schema.encodeSync(LastBackup)(record))
