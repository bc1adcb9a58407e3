/** The thread that trains: what it is given is one job, and it says how far it has come. */
import { parentPort, workerData } from "node:worker_threads"
import { causeText } from "#schemas/cause-text.ts"
import { runTraining, type Told, type TrainingJob } from "./job.ts"

const tell = (told: Told) => parentPort?.postMessage(told)

// A thread is given what whoever started it gave: plant-training.ts, a job.
const job = workerData as TrainingJob

try {
  tell({ kind: "done", summary: await runTraining(job, tell) })
} catch (error) {
  const message = causeText(error)
  tell({ kind: "failed", detail: message.split("\n", 1)[0] ?? "" })
}
