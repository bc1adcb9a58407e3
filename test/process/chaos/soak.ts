/** Chaos in large numbers: every fault, in seeded order, repeatedly. */
import { chaos, everyFault } from "./chaos.ts"

const processes = 2

/** Fails on the first violation; a seed repeats the victims and their order. */
export const chaosRounds = async (seed: number, rounds: number) => {
  for (let n = 0; n < rounds; n++) {
    console.log(`soak: chaos, seed ${seed + n}`)
    const { elections, ...checked } = await chaos({
      seed: seed + n,
      processes,
      faults: everyFault,
      onRound: ({ what, gap_ms, acknowledged, unanswered }) =>
        console.log(
          `soak: ${what}: a gap of ${Math.round(gap_ms)} ms, ${acknowledged} acknowledged, ` +
            `${unanswered} without an answer`,
        ),
    })
    const terms = [...elections].map(([lease, count]) => `${lease} ${count}`)
    console.log(`soak: chaos: ${JSON.stringify(checked)}; elections: ${terms.join(", ")}`)
  }
}
