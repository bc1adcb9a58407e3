/** The program of the training thread: runs one job and reports its progress. */
import { parentPort, workerData } from "node:worker_threads"
import { causeText } from "#schemas/cause-text.ts"
import { type JobMessage, runTraining, type TrainingJob } from "./job.ts"

const report = (message: JobMessage) => parentPort?.postMessage(message)

// `training.ts` starts this thread with a job.
const job = workerData as TrainingJob

try {
  report({ kind: "done", summary: await runTraining(job, report) })
} catch (error) {
  const message = causeText(error)
  report({ kind: "failed", detail: message.split("\n", 1)[0] ?? "" })
}
