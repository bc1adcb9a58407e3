/** Answers the charts, which never change while the program runs. */
import { Context, Effect } from "effect"
import type { Chart } from "#schemas/system/chart.ts"

/** The charts of this program, by their ids' order. Made when they are first asked for. */
export class Charts extends Context.Service<Charts, () => ReadonlyArray<Chart>>()(
  "gateway/Charts",
) {}

export const listCharts = Effect.map(Charts, (all) => ({ charts: all() }))
