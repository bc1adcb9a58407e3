/** `almanac plant doctor`: describes a model, checks its classes and makes a dry run. */
import { resolve } from "node:path"
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { modelArgument, NotUsable, preparedModel } from "#cli/plant/model.ts"

/** The model cannot be served; the printed lines say why. */
class Unhealthy extends Schema.TaggedError<Unhealthy>()("Unhealthy", { message: Schema.String }) {}

const runs = 5
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
const grouped = (count: number | null) =>
  count === null ? "not counted (.onnx)" : count.toLocaleString("en")

const outputs = {
  softmax: "probabilities that sum to one",
  sigmoid: "independent probabilities, which need not sum to one",
  none: "logits: a softmax is applied",
}

type Prepared = Effect.Success<ReturnType<typeof preparedModel>>

const description = ({ file, prepared }: Prepared) => {
  const { input, output, parameters, layers } = prepared
  const image_shape = input.layout === "NHWC" ? "224, 224, 3" : "3, 224, 224"
  const batch = input.batch === 1 ? "1" : "N"
  return [
    `model    ${file.name} (${file.format}), ${megabytes(file.bytes)}, sha256 ${file.sha256}`,
    `layers   ${layers ?? "not read"}; weights ${grouped(parameters)}`,
    `input    float32[${batch}, ${image_shape}]`,
    `output   ${output.classes} classes, ${outputs[output.activation]}`,
    input.has_rescaling
      ? "scale    the network divides by 255 itself: plant.scale = auto passes 0..255"
      : "scale    not declared by the network: plant.scale = auto passes 0..1",
  ]
}

/** The result of checking the class file; begins with `bad` if it does not fit. */
const classesLine = Effect.fnUntraced(function* (path: string, model: string, outputs: number) {
  const { readClasses, checkClasses } = yield* Effect.promise(() => import("#models"))
  const check = async () => {
    const names = await readClasses(path, model)
    checkClasses(names, outputs)
    return `classes  ${names.length}: ${names[0]} ... ${names.at(-1)}`
  }
  const failed = (error: unknown) =>
    Schema.is(Schema.Struct({ detail: Schema.String }))(error) ? error.detail : String(error)
  return yield* Effect.tryPromise({ try: check, catch: failed }).pipe(
    Effect.catch((detail) => Effect.succeed(`bad      ${detail}`)),
  )
})

const dryRunLine = Effect.fnUntraced(function* ({ onnx_path, prepared }: Prepared) {
  const { dryRun } = yield* Effect.promise(() => import("#models"))
  const { first_ms, median_ms, is_finite } = yield* Effect.tryPromise({
    try: () => dryRun(onnx_path, prepared, runs),
    catch: (error) => new NotUsable({ message: `ONNX Runtime cannot run it: ${String(error)}` }),
  })
  const line = `dry run  ${median_ms.toFixed(1)} ms per image, the first ${first_ms.toFixed(1)} ms`
  return is_finite ? line : "bad      the network returns a value that is not a number"
})

export const doctor = Command.make(
  "doctor",
  {
    model: modelArgument,
    classes: Argument.String("classes").pipe(
      Argument.withDescription(
        "Class file (default: class_indices.json in the folder of the model)",
      ),
      Argument.optional,
    ),
  },
  Effect.fn(function* ({ model, classes }) {
    const prepared_model = yield* preparedModel(model)
    const path = Option.match(classes, { onNone: () => "", onSome: (given) => resolve(given) })
    const lines = [
      ...description(prepared_model),
      yield* classesLine(path, resolve(model), prepared_model.prepared.output.classes),
      yield* dryRunLine(prepared_model),
    ]
    for (const line of lines) yield* Console.log(line)
    if (lines.some((line) => line.startsWith("bad"))) {
      return yield* new Unhealthy({ message: "the model cannot be served" })
    }
  }, Effect.scoped),
).pipe(
  Command.withDescription(
    "Inspect a model and its classes, and run it once; exit code 1 if it cannot be served",
  ),
  Command.withExamples([
    {
      command: "almanac plant doctor plant_disease_model.h5 class_indices.json",
      description: "Layers, weights, classes compared with outputs, and the time per image",
    },
  ]),
)
