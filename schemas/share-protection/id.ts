/** Ids of share protection. Ours are UUIDv7; those of shares and projects come from the cloud. */
import { Schema } from "effect"
import { Token } from "#schemas/message.ts"

/** A UUID of any version, in lower case. */
export const Uuid = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/u, {
    expected: "a UUID in lower case",
  }),
)

export const TargetId = Uuid.pipe(Schema.brand("TargetId"))
export type TargetId = typeof TargetId.Type

export const TargetTemplateId = Uuid.pipe(Schema.brand("TargetTemplateId"))
export type TargetTemplateId = typeof TargetTemplateId.Type

export const PolicyId = Uuid.pipe(Schema.brand("PolicyId"))
export type PolicyId = typeof PolicyId.Type

export const BackupId = Uuid.pipe(Schema.brand("BackupId"))
export type BackupId = typeof BackupId.Type

export const RestoreId = Uuid.pipe(Schema.brand("RestoreId"))
export type RestoreId = typeof RestoreId.Type

export const JobId = Uuid.pipe(Schema.brand("JobId"))
export type JobId = typeof JobId.Type

export const RolloutId = Uuid.pipe(Schema.brand("RolloutId"))
export type RolloutId = typeof RolloutId.Type

export const WorkerId = Token.pipe(Schema.brand("WorkerId"))
export type WorkerId = typeof WorkerId.Type

/** A share of the shared file system service. */
export const ShareId = Uuid.pipe(Schema.brand("ShareId"))
export type ShareId = typeof ShareId.Type

/** A project of the identity service: 32 hex digits or a UUID in Keystone. */
export const ProjectId = Token.pipe(Schema.brand("ProjectId"))
export type ProjectId = typeof ProjectId.Type

export const DomainId = Token.pipe(Schema.brand("DomainId"))
export type DomainId = typeof DomainId.Type
