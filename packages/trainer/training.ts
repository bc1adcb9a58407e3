/**
 * Runs a training in a thread, so that it can be interrupted immediately.
 *
 * The model is written to a temporary folder next to the output, which is removed on interruption.
 */
import { rm } from "node:fs/promises"
import { Worker } from "node:worker_threads"
import { Effect, Schema } from "effect"
import { causeText } from "#schemas/cause-text.ts"
import { openStaging } from "./files.ts"
import type { DemoJob, FolderJob, JobMessage, TrainingJob } from "./job.ts"

/** Nothing was trained. The message says why and what to do. */
export class TrainingFailed extends Schema.TaggedError<TrainingFailed>()("TrainingFailed", {
  message: Schema.String,
}) {}

/** The options of a training. */
export type Training = Omit<DemoJob, "staging"> | Omit<FolderJob, "staging">

/** A progress report. */
export type TrainingProgress = Extract<JobMessage, { kind: "at" | "line" }>

const program = new URL("./job-thread.ts", import.meta.url)

const failed = (error: unknown) => new TrainingFailed({ message: causeText(error) })

const awaitResult = (thread: Worker, onProgress: (progress: TrainingProgress) => void) =>
  Effect.callback<ReadonlyArray<string>, TrainingFailed>((resume) => {
    thread.on("message", (message: JobMessage) => {
      if (message.kind === "done") resume(Effect.succeed(message.summary))
      else if (message.kind === "failed") resume(Effect.fail(failed(message.detail)))
      else onProgress(message)
    })
    thread.on("error", (error) => resume(Effect.fail(failed(error))))
    thread.on("exit", () =>
      resume(Effect.fail(failed("the training thread exited without a result"))),
    )
  })

const runInThread = (job: TrainingJob, onProgress: (progress: TrainingProgress) => void) =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Worker(program, { workerData: job })),
    (thread) => awaitResult(thread, onProgress),
    (thread) => Effect.promise(() => thread.terminate()),
  )

/** Trains a network and writes the model's folder. Returns a summary, one line each. */
export const training = (
  options: Training,
  onProgress: (progress: TrainingProgress) => void,
): Effect.Effect<ReadonlyArray<string>, TrainingFailed> =>
  Effect.acquireUseRelease(
    Effect.tryPromise({ try: () => openStaging(options.out), catch: failed }),
    (staging) => runInThread({ ...options, staging }, onProgress),
    (staging) => Effect.promise(() => rm(staging, { recursive: true, force: true })),
  )
