/**
 * `almanac plant train`: trains the demo model on drawn leaves, or a small network on a folder of
 * images. Source: issue 7, demo model; decision 0103.
 */
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { withInterruptExitCode } from "#cli/dashboard/ingest-outcome.ts"
import { progressTo } from "#cli/progress.ts"
import type { Training, TrainingProgress } from "#trainer"

/** The flags contradict each other: exit code 1. */
class FlagUnusable extends Schema.TaggedError<FlagUnusable>()("FlagUnusable", {
  message: Schema.String,
}) {}

/** The settings that the bundled demo model was trained with. */
const demo_defaults = { epochs: 12, leaves: 2550 }
/** More epochs do not improve a data set of PlantVillage's size. */
const folder_epochs = 12
/** Per class; a fifth, as in Keras's examples. */
const held_out_share = 0.2
/** For evaluation: 60 of each class, and 120 without a leaf. */
const demo_held_out = 1020
const demo_negatives = 100

/** The leaves of two epochs are in memory, 37 kB each. */
const leaves_max = 20_000
const epochs_max = 1000
const seed_max = 2 ** 32 - 1

const integerFlag = (name: string, low: number, high: number, what: string) =>
  Flag.Int(name).pipe(
    Flag.withDescription(what),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: low, maximum: high }))),
  )

interface Flags {
  readonly folder: Option.Option<string>
  readonly demo: boolean
  readonly seed: number
  readonly epochs: Option.Option<number>
  readonly leaves: Option.Option<number>
  readonly out: string
}

const flagError = (message: string) => Effect.fail(new FlagUnusable({ message }))

const trainingOf = Effect.fnUntraced(function* (flags: Flags) {
  const { seed, out, demo } = flags
  const folder = Option.getOrUndefined(flags.folder)
  if (demo === (folder !== undefined)) {
    return yield* flagError("use either --demo or a folder with one subfolder per class")
  }
  if (folder === undefined) {
    const epochs = Option.getOrElse(flags.epochs, () => demo_defaults.epochs)
    const leaves = Option.getOrElse(flags.leaves, () => demo_defaults.leaves)
    const evaluation = { held_out: demo_held_out, negatives: demo_negatives }
    const training_options: Training = { kind: "demo", seed, epochs, leaves, out, ...evaluation }
    return training_options
  }
  if (Option.isSome(flags.leaves)) return yield* flagError("--leaves requires --demo")
  const epochs = Option.getOrElse(flags.epochs, () => folder_epochs)
  const training_options: Training = {
    kind: "folder",
    folder,
    share: held_out_share,
    seed,
    epochs,
    out,
  }
  return training_options
})

/** Imports the trainer on first use, because it loads threads and a decoder. */
const runTraining = Effect.fnUntraced(function* (training_options: Training) {
  const { training } = yield* Effect.promise(() => import("#trainer"))
  const progress = progressTo(training_options.epochs)
  const context = yield* Effect.context()
  const onProgress = (update: TrainingProgress) => {
    if (update.kind === "at") progress.at(update.label, update.done, update.total)
    else Effect.runSyncWith(context)(progress.done(update.text))
  }
  return yield* Effect.ensuring(training(training_options, onProgress), progress.end)
})

export const train = Command.make(
  "train",
  {
    folder: Argument.String("folder").pipe(
      Argument.withDescription("Folder with one subfolder per class, as in PlantVillage"),
      Argument.optional,
    ),
    demo: Flag.Boolean("demo").pipe(
      Flag.withDescription("Train the demo model on drawn leaves"),
      Flag.withDefault(false),
    ),
    seed: integerFlag("seed", 0, seed_max, "Seed of the random numbers (default: 7)").pipe(
      Flag.withDefault(7),
    ),
    epochs: integerFlag("epochs", 1, epochs_max, "Number of passes over the images").pipe(
      Flag.optional,
    ),
    leaves: integerFlag(
      "leaves",
      1,
      leaves_max,
      "Number of new leaves per epoch (with --demo)",
    ).pipe(Flag.optional),
    out: Flag.String("out").pipe(
      Flag.withDescription("Output folder, new or empty (default: plant-model)"),
      Flag.withDefault("plant-model"),
    ),
  },
  Effect.fn(function* (flags) {
    const training_options = yield* trainingOf(flags)
    const lines = yield* runTraining(training_options)
    for (const line of lines) yield* Console.log(line)
    yield* Console.log(
      `written to ${training_options.out}: set plant.model to ${training_options.out}/model.json`,
    )
  }, withInterruptExitCode),
).pipe(
  Command.withDescription(
    "Train a small network: model.json, class_indices.json and metrics.json in a folder. " +
      "Exit code 0, 1 if nothing was trained, 130 if it was interrupted",
  ),
  Command.withExamples([
    { command: "almanac plant train --demo", description: "Train the demo model again" },
    {
      command: "almanac plant train ./PlantVillage --epochs 20 --out ./my-model",
      description: "Train on your own classes",
    },
  ]),
)
