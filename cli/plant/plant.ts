/** `almanac plant`: models that know leaves. */
import { Command } from "effect/cli"
import { convert } from "#cli/plant/convert.ts"
import { doctor } from "#cli/plant/doctor.ts"
import { leaf } from "#cli/plant/leaf.ts"
import { train } from "#cli/plant/train.ts"

export const plant = Command.make("plant").pipe(
  Command.withDescription(
    "Models that know leaves: look at one, convert one, train one, draw a leaf",
  ),
  Command.withExamples(doctor.examples),
  Command.withSubcommands([doctor, convert, train, leaf]),
)
