/**
 * `almanac plant train`: the demo model on leaves that are drawn for it, or a small network of
 * one's own on a folder of images. Source: issue 7, demo model; decision 0103.
 */
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { stoppedEarly } from "#cli/dashboard/ingest-outcome.ts"
import { progressTo } from "#cli/progress.ts"
import type { Heard, Training } from "#trainer"

/** The command line asks for what there is not: exit code 1. */
class FlagUnusable extends Schema.TaggedError<FlagUnusable>()("FlagUnusable", {
  message: Schema.String,
}) {}

/** What the demo model of the repository was trained with. */
const demo_defaults = { epochs: 12, leaves: 2550 }
/** More are no better on PlantVillage's size of set. */
const folder_epochs = 12
/** Of each class: a fifth, as Keras' own examples have it. */
const held_out_share = 0.2
/** Measured at the end: 60 of each class, and 120 that show no leaf. */
const demo_held_out = 1020
const demo_negatives = 100

/** An epoch's leaves are in memory, 37 kB each, and the next epoch's beside them. */
const leaves_max = 20_000
const epochs_max = 1000
const seed_max = 2 ** 32 - 1

const whole = (name: string, low: number, high: number, what: string) =>
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

const unusable = (message: string) => Effect.fail(new FlagUnusable({ message }))

const wantedOf = Effect.fnUntraced(function* (flags: Flags) {
  const { seed, out, demo } = flags
  const folder = Option.getOrUndefined(flags.folder)
  if (demo === (folder !== undefined)) {
    return yield* unusable("give either --demo or a folder that has a folder for each class")
  }
  if (folder === undefined) {
    const epochs = Option.getOrElse(flags.epochs, () => demo_defaults.epochs)
    const leaves = Option.getOrElse(flags.leaves, () => demo_defaults.leaves)
    const measured = { held_out: demo_held_out, negatives: demo_negatives }
    const wanted: Training = { kind: "demo", seed, epochs, leaves, out, ...measured }
    return wanted
  }
  if (Option.isSome(flags.leaves)) return yield* unusable("--leaves are drawn: only with --demo")
  const epochs = Option.getOrElse(flags.epochs, () => folder_epochs)
  const wanted: Training = { kind: "folder", folder, share: held_out_share, seed, epochs, out }
  return wanted
})

/** Its threads and its decoder are loaded only where somebody trains. */
const trained = Effect.fnUntraced(function* (wanted: Training) {
  const { training } = yield* Effect.promise(() => import("#trainer"))
  const progress = progressTo(wanted.epochs)
  const context = yield* Effect.context()
  const hear = (heard: Heard) => {
    if (heard.kind === "at") progress.at(heard.label, heard.done, heard.total)
    else Effect.runSyncWith(context)(progress.done(heard.text))
  }
  return yield* Effect.ensuring(training(wanted, hear), progress.end)
})

export const train = Command.make(
  "train",
  {
    folder: Argument.String("folder").pipe(
      Argument.withDescription("A folder for each class, as PlantVillage has it"),
      Argument.optional,
    ),
    demo: Flag.Boolean("demo").pipe(
      Flag.withDescription("On leaves that are drawn: what the demo model is"),
      Flag.withDefault(false),
    ),
    seed: whole("seed", 0, seed_max, "What is random begins with it").pipe(Flag.withDefault(7)),
    epochs: whole("epochs", 1, epochs_max, "How often it goes over the images").pipe(Flag.optional),
    leaves: whole("leaves", 1, leaves_max, "With --demo: fresh leaves of each epoch").pipe(
      Flag.optional,
    ),
    out: Flag.String("out").pipe(
      Flag.withDescription("The folder that is written; it must not be there, or be empty"),
      Flag.withDefault("plant-model"),
    ),
  },
  Effect.fn(function* (flags) {
    const wanted = yield* wantedOf(flags)
    const lines = yield* trained(wanted)
    for (const line of lines) yield* Console.log(line)
    yield* Console.log(`written to ${wanted.out}: set plant.model to ${wanted.out}/model.json`)
  }, stoppedEarly),
).pipe(
  Command.withDescription(
    "Train a small network: model.json, class_indices.json and metrics.json in a folder. " +
      "Exit code 0, 1 when nothing was trained, 130 when it was stopped",
  ),
  Command.withExamples([
    { command: "almanac plant train --demo", description: "The demo model, anew" },
    {
      command: "almanac plant train ./PlantVillage --epochs 20 --out ./my-model",
      description: "Your own classes",
    },
  ]),
)
