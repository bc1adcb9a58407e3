/** The Adam optimizer. Source: Kingma and Ba, 2014, algorithm 1. */

const decay_first = 0.9
const decay_second = 0.999
const epsilon = 1e-7

export interface Adam {
  /** Updates the weights in place. `rate` is the learning rate. */
  readonly step: (
    weights: ReadonlyArray<Float32Array>,
    gradients: ReadonlyArray<Float32Array>,
    rate: number,
  ) => void
}

export const adamOf = (lengths: ReadonlyArray<number>): Adam => {
  const first_moments = lengths.map((length) => new Float32Array(length))
  const second_moments = lengths.map((length) => new Float32Array(length))
  let steps = 0
  const update = (
    weight: Float32Array,
    gradient: Float32Array,
    [first, second]: readonly [Float32Array, Float32Array],
    rate: number,
  ) => {
    const first_correction = 1 / (1 - decay_first ** steps)
    const second_correction = 1 / (1 - decay_second ** steps)
    for (let i = 0; i < weight.length; i++) {
      const g = gradient[i] ?? 0
      const mean = decay_first * (first[i] ?? 0) + (1 - decay_first) * g
      const square = decay_second * (second[i] ?? 0) + (1 - decay_second) * g * g
      first[i] = mean
      second[i] = square
      weight[i] =
        (weight[i] ?? 0) -
        (rate * mean * first_correction) / (Math.sqrt(square * second_correction) + epsilon)
    }
  }
  return {
    step: (weights, gradients, rate) => {
      steps++
      for (const [i, weight] of weights.entries()) {
        const [gradient, first, second] = [gradients[i], first_moments[i], second_moments[i]]
        if (gradient === undefined || first === undefined || second === undefined) continue
        update(weight, gradient, [first, second], rate)
      }
    },
  }
}

/** The learning rate's schedule: linear warm-up, then cosine decay. */
export const rateAt = (step: number, steps: number) => {
  const warm_up_steps = Math.max(1, Math.min(100, steps * 0.05))
  if (step < warm_up_steps) return (step + 1) / warm_up_steps
  return (
    0.5 * (1 + Math.cos((Math.PI * (step - warm_up_steps)) / Math.max(1, steps - warm_up_steps)))
  )
}
