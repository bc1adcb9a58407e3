/** `almanac plant`: commands for plant disease models. */
import { Command } from "effect/cli"
import { summaries } from "#cli/client/summaries.ts"
import { convert } from "#cli/plant/convert.ts"
import { doctor } from "#cli/plant/doctor.ts"
import { leaf } from "#cli/plant/leaf.ts"
import { train } from "#cli/plant/train.ts"

export const plant = Command.make("plant").pipe(
  Command.withDescription(summaries.plant),
  Command.withExamples(doctor.examples),
  Command.withSubcommands([doctor, convert, train, leaf]),
)
