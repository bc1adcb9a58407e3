/** `almanac plant`: models that know leaves. */
import { Command } from "effect/cli"
import { convert } from "#verbs/plant-convert.ts"
import { doctor } from "#verbs/plant-doctor.ts"
import { leaf } from "#verbs/plant-leaf.ts"
import { train } from "#verbs/plant-train.ts"

export const plant = Command.make("plant").pipe(
  Command.withDescription(
    "Models that know leaves: look at one, convert one, train one, draw a leaf",
  ),
  Command.withExamples(doctor.examples),
  Command.withSubcommands([doctor, convert, train, leaf]),
)
