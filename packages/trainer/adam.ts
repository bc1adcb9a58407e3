/** Adam: how far a weight moves by its gradients so far. Kingma and Ba, 2014, algorithm 1. */

const decay_first = 0.9
const decay_second = 0.999
const epsilon = 1e-7

export interface Adam {
  /** Moves the weights against their gradients, at most about `rate` each. */
  readonly step: (
    weights: ReadonlyArray<Float32Array>,
    gradients: ReadonlyArray<Float32Array>,
    rate: number,
  ) => void
}

export const adamOf = (lengths: ReadonlyArray<number>): Adam => {
  const firsts = lengths.map((length) => new Float32Array(length))
  const seconds = lengths.map((length) => new Float32Array(length))
  let steps = 0
  const move = (
    weight: Float32Array,
    gradient: Float32Array,
    [first, second]: readonly [Float32Array, Float32Array],
    rate: number,
  ) => {
    const of_first = 1 / (1 - decay_first ** steps)
    const of_second = 1 / (1 - decay_second ** steps)
    for (let i = 0; i < weight.length; i++) {
      const g = gradient[i] ?? 0
      const mean = decay_first * (first[i] ?? 0) + (1 - decay_first) * g
      const square = decay_second * (second[i] ?? 0) + (1 - decay_second) * g * g
      first[i] = mean
      second[i] = square
      weight[i] =
        (weight[i] ?? 0) - (rate * mean * of_first) / (Math.sqrt(square * of_second) + epsilon)
    }
  }
  return {
    step: (weights, gradients, rate) => {
      steps++
      for (const [i, weight] of weights.entries()) {
        const [gradient, first, second] = [gradients[i], firsts[i], seconds[i]]
        if (gradient === undefined || first === undefined || second === undefined) continue
        move(weight, gradient, [first, second], rate)
      }
    },
  }
}

/** The part of the rate that is left after a share of all steps: a cosine, warmed up. */
export const rateAt = (step: number, steps: number) => {
  const warm = Math.max(1, Math.min(100, steps * 0.05))
  if (step < warm) return (step + 1) / warm
  return 0.5 * (1 + Math.cos((Math.PI * (step - warm)) / Math.max(1, steps - warm)))
}
