import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import {
  cancelJob,
  type Hold,
  type JobFacts,
  failJob,
  assignJob,
  startJob,
  rejectJob,
} from "#actors/share-protection/job-course.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { definePolicy, deletePolicy } from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import { upkeep } from "#actors/share-protection/upkeep.ts"
import { FinishBackupRestore, StartBackupRestore } from "#schemas/share-protection/backup.ts"
import { type DefinePolicy, UpdatePolicy } from "#schemas/share-protection/policy.ts"
import { RecordTargetUsage } from "#schemas/share-protection/target.ts"
import { ask, begin, conducted, happenings, instant, pass, secondsOf, types } from "./conducted.ts"
import {
  availableTarget,
  backUp,
  backupId,
  madeBackup,
  ownJobId,
  restoreId,
  shareId,
  targetId,
} from "./conducted-scenes.ts"
import { factsOf, jobNow, registerWorkers } from "./course.ts"
import { worker_id } from "./job-samples.ts"
import { other_policy_id, policy, policy_id, usage_stats } from "./samples.ts"
