/** How well a network tells pictures apart that it was not trained on. Pure. */

export interface Score {
  readonly pictures: number
  /** Share of the pictures whose likeliest class is theirs. */
  readonly accuracy: number
  /** Per class, of its own pictures the share that it is told of; null of a class without any. */
  readonly recall: Readonly<Record<string, number | null>>
  /** A row for each class, and in it how often each class was told, in the order of the classes. */
  readonly confusion: ReadonlyArray<ReadonlyArray<number>>
}

/** Digits after the point: more than so few pictures can tell. */
const rounded = (share: number) => Math.round(share * 1e4) / 1e4

/** The likeliest class of each row of `classes` probabilities. */
export const likeliest = (probabilities: Float32Array, classes: number) =>
  Uint16Array.from({ length: probabilities.length / classes }, (_, i) => {
    const row = probabilities.subarray(i * classes, (i + 1) * classes)
    return row.indexOf(row.reduce((most, one) => Math.max(most, one), 0))
  })

export const scoreOf = (
  classes: ReadonlyArray<string>,
  labels: Uint16Array,
  probabilities: Float32Array,
): Score => {
  const told = likeliest(probabilities, classes.length)
  const confusion = classes.map(() => classes.map(() => 0))
  let right = 0
  for (const [i, label] of labels.entries()) {
    const answer = told[i] ?? 0
    const row = confusion[label]
    if (row !== undefined) row[answer] = (row[answer] ?? 0) + 1
    if (answer === label) right++
  }
  const recall = classes.map((name, index): [string, number | null] => {
    const row = confusion[index] ?? []
    const all = row.reduce((sum, count) => sum + count, 0)
    return [name, all === 0 ? null : rounded((row[index] ?? 0) / all)]
  })
  return {
    pictures: labels.length,
    accuracy: labels.length === 0 ? 0 : rounded(right / labels.length),
    recall: Object.fromEntries(recall),
    confusion,
  }
}

/**
 * How often a random one of the first is above a random one of the second; equal ones count half
 * (the area under the ROC curve): 0.5 is chance, 1 is never wrong. 0.5 where either is empty.
 */
export const areaUnderCurve = (above: ArrayLike<number>, below: ArrayLike<number>) => {
  const ordered = Float64Array.from(below).sort()
  if (above.length === 0 || ordered.length === 0) return 0.5
  let wins = 0
  for (let i = 0; i < above.length; i++) {
    const value = above[i] ?? 0
    wins += (firstFrom(ordered, value, false) + firstFrom(ordered, value, true)) / 2
  }
  return wins / above.length / ordered.length
}

/** How many come before the first that is not less; with `equal`, that is more. */
const firstFrom = (ordered: Float64Array, value: number, equal: boolean) => {
  let low = 0
  let high = ordered.length
  while (low < high) {
    const middle = (low + high) >> 1
    const one = ordered[middle] ?? 0
    if (one < value || (equal && one === value)) low = middle + 1
    else high = middle
  }
  return low
}
