/** `almanac plant doctor`: what a model is, whether its classes fit, and a dry run. */
import { resolve } from "node:path"
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { modelArgument, NotUsable, preparedModel } from "#cli/plant/model.ts"

/** Something is wrong with it that a served model must not have; the lines above say what. */
class Unhealthy extends Schema.TaggedError<Unhealthy>()("Unhealthy", { message: Schema.String }) {}

const runs = 5
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
const grouped = (count: number | null) =>
  count === null ? "not counted (an .onnx is not read)" : count.toLocaleString("en")

const outputs = {
  softmax: "probabilities that sum to one",
  sigmoid: "a probability each, which need not sum to one",
  none: "no probabilities: a softmax is put after them",
}

type Prepared = Effect.Success<ReturnType<typeof preparedModel>>

const described = ({ file, prepared }: Prepared) => {
  const { input, output, parameters, layers } = prepared
  const sides = input.layout === "NHWC" ? "224, 224, 3" : "3, 224, 224"
  const batch = input.batch === 1 ? "1" : "N"
  return [
    `model    ${file.name} (${file.format}), ${megabytes(file.bytes)}, sha256 ${file.sha256}`,
    `layers   ${layers ?? "not read"}; weights ${grouped(parameters)}`,
    `input    float32[${batch}, ${sides}]`,
    `output   ${output.classes} classes, ${outputs[output.activation]}`,
    input.has_rescaling
      ? "scale    it divides by 255 itself: plant.scale = auto serves it 0..255"
      : "scale    not told by the network: plant.scale = auto serves it 0..1",
  ]
}

/** How the class file fits; the line begins with `bad` where it does not. */
const classesLine = Effect.fnUntraced(function* (path: string, model: string, outputs: number) {
  const { readClasses, checkClasses } = yield* Effect.promise(() => import("#models"))
  const reading = async () => {
    const names = await readClasses(path, model)
    checkClasses(names, outputs)
    return `classes  ${names.length}: ${names[0]} ... ${names.at(-1)}`
  }
  const failed = (error: unknown) =>
    Schema.is(Schema.Struct({ detail: Schema.String }))(error) ? error.detail : String(error)
  return yield* Effect.tryPromise({ try: reading, catch: failed }).pipe(
    Effect.catch((detail) => Effect.succeed(`bad      ${detail}`)),
  )
})

const ran = Effect.fnUntraced(function* ({ onnx_path, prepared }: Prepared) {
  const { dryRun } = yield* Effect.promise(() => import("#models"))
  const { first_ms, median_ms, is_finite } = yield* Effect.tryPromise({
    try: () => dryRun(onnx_path, prepared, runs),
    catch: (error) => new NotUsable({ message: `ONNX Runtime does not run it: ${String(error)}` }),
  })
  const line = `dry run  ${median_ms.toFixed(1)} ms an image, the first ${first_ms.toFixed(1)} ms`
  return is_finite ? line : "bad      the network answers what is no number"
})

export const doctor = Command.make(
  "doctor",
  {
    model: modelArgument,
    classes: Argument.String("classes").pipe(
      Argument.withDescription("Its class_indices.json; the one beside the model if absent"),
      Argument.optional,
    ),
  },
  Effect.fn(function* ({ model, classes }) {
    const opened = yield* preparedModel(model)
    const path = Option.match(classes, { onNone: () => "", onSome: (given) => resolve(given) })
    const lines = [
      ...described(opened),
      yield* classesLine(path, resolve(model), opened.prepared.output.classes),
      yield* ran(opened),
    ]
    for (const line of lines) yield* Console.log(line)
    if (lines.some((line) => line.startsWith("bad"))) {
      return yield* new Unhealthy({ message: "the model is not fit to be served" })
    }
  }, Effect.scoped),
).pipe(
  Command.withDescription("Look at a model and its classes, and run it. Exit code 0, 1 if unfit"),
  Command.withExamples([
    {
      command: "almanac plant doctor plant_disease_model.h5 class_indices.json",
      description: "Layers, weights, classes against outputs, and what an image takes",
    },
  ]),
)
