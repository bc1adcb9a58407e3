/** Ids of share protection. Ours are UUIDv7; those of shares and projects come from the cloud. */
import { Schema } from "effect"
import { Token } from "#schemas/message.ts"

/** A UUID of any version, in lower case. */
export const Uuid = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/u, {
    expected: "a UUID in lower case",
  }),
)

const uuid = (description: string) => Uuid.annotate({ description })

export const TargetId = uuid("ID of the target.").pipe(Schema.brand("TargetId"))
export type TargetId = typeof TargetId.Type

export const TargetTemplateId = uuid("ID of the target template.").pipe(
  Schema.brand("TargetTemplateId"),
)
export type TargetTemplateId = typeof TargetTemplateId.Type

export const PolicyId = uuid("ID of the policy.").pipe(Schema.brand("PolicyId"))
export type PolicyId = typeof PolicyId.Type

export const BackupId = uuid("ID of the backup.").pipe(Schema.brand("BackupId"))
export type BackupId = typeof BackupId.Type

export const RestoreId = uuid("ID of the restore.").pipe(Schema.brand("RestoreId"))
export type RestoreId = typeof RestoreId.Type

export const JobId = uuid("ID of the job.").pipe(Schema.brand("JobId"))
export type JobId = typeof JobId.Type

export const RolloutId = uuid("ID of the rollout.").pipe(Schema.brand("RolloutId"))
export type RolloutId = typeof RolloutId.Type

export const WorkerId = Token.annotate({ description: "ID of the worker." }).pipe(
  Schema.brand("WorkerId"),
)
export type WorkerId = typeof WorkerId.Type

/** A share of the shared file system service. */
export const ShareId = uuid("ID of the share in the shared file system service.").pipe(
  Schema.brand("ShareId"),
)
export type ShareId = typeof ShareId.Type

/** A project of the identity service: 32 hex digits or a UUID in Keystone. */
export const ProjectId = Token.annotate({
  description: "ID of the project in the identity service.",
}).pipe(Schema.brand("ProjectId"))
export type ProjectId = typeof ProjectId.Type

export const DomainId = Token.annotate({
  description: "ID of the domain in the identity service.",
}).pipe(Schema.brand("DomainId"))
export type DomainId = typeof DomainId.Type
