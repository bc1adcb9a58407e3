/**
 * A training in a thread of its own, so that whoever waits for it can stop it at once.
 *
 * What it writes is in a folder beside the wanted one until it is whole; stopped, that folder goes.
 */
import { rm } from "node:fs/promises"
import { Worker } from "node:worker_threads"
import { Effect, Schema } from "effect"
import { causeText } from "#schemas/cause-text.ts"
import { openStaging } from "./files.ts"
import type { DemoJob, FolderJob, Told, TrainingJob } from "./job.ts"

/** Nothing was trained; the message says why, and what to do. */
export class TrainingFailed extends Schema.TaggedError<TrainingFailed>()("TrainingFailed", {
  message: Schema.String,
}) {}

/** What is to be trained; where it is written first is this file's own. */
export type Training = Omit<DemoJob, "staging"> | Omit<FolderJob, "staging">

/** What is said while it runs. */
export type Heard = Extract<Told, { kind: "at" | "line" }>

const program = new URL("./job-thread.ts", import.meta.url)

const failed = (error: unknown) => new TrainingFailed({ message: causeText(error) })

const answerOf = (thread: Worker, hear: (heard: Heard) => void) =>
  Effect.callback<ReadonlyArray<string>, TrainingFailed>((resume) => {
    thread.on("message", (told: Told) => {
      if (told.kind === "done") resume(Effect.succeed(told.summary))
      else if (told.kind === "failed") resume(Effect.fail(failed(told.detail)))
      else hear(told)
    })
    thread.on("error", (error) => resume(Effect.fail(failed(error))))
    thread.on("exit", () => resume(Effect.fail(failed("the training ended without an answer"))))
  })

const inThread = (job: TrainingJob, hear: (heard: Heard) => void) =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Worker(program, { workerData: job })),
    (thread) => answerOf(thread, hear),
    (thread) => Effect.promise(() => thread.terminate()),
  )

/** Trains and writes the folder of the model; answers lines that say how good it is. */
export const training = (
  wanted: Training,
  hear: (heard: Heard) => void,
): Effect.Effect<ReadonlyArray<string>, TrainingFailed> =>
  Effect.acquireUseRelease(
    Effect.tryPromise({ try: () => openStaging(wanted.out), catch: failed }),
    (staging) => inThread({ ...wanted, staging }, hear),
    (staging) => Effect.promise(() => rm(staging, { recursive: true, force: true })),
  )
