/** Metrics of a network on held-out pictures. Pure. */

export interface Score {
  readonly pictures: number
  /** The share of pictures that are classified correctly. */
  readonly accuracy: number
  /** Recall per class; null for a class without pictures. */
  readonly recall: Readonly<Record<string, number | null>>
  /** The confusion matrix: a row for each true class, a column for each predicted class. */
  readonly confusion: ReadonlyArray<ReadonlyArray<number>>
}

/** Four digits, more than the number of pictures justifies. */
const rounded = (share: number) => Math.round(share * 1e4) / 1e4

/** The most likely class of each row of `classes` probabilities. */
export const predictedClasses = (probabilities: Float32Array, classes: number) =>
  Uint16Array.from({ length: probabilities.length / classes }, (_, i) => {
    const row = probabilities.subarray(i * classes, (i + 1) * classes)
    return row.indexOf(row.reduce((largest, one) => Math.max(largest, one), 0))
  })

export const scoreOf = (
  classes: ReadonlyArray<string>,
  labels: Uint16Array,
  probabilities: Float32Array,
): Score => {
  const predicted = predictedClasses(probabilities, classes.length)
  const confusion = classes.map(() => classes.map(() => 0))
  let correct = 0
  for (const [i, label] of labels.entries()) {
    const predicted_class = predicted[i] ?? 0
    const row = confusion[label]
    if (row !== undefined) row[predicted_class] = (row[predicted_class] ?? 0) + 1
    if (predicted_class === label) correct++
  }
  const recall = classes.map((name, index): [string, number | null] => {
    const row = confusion[index] ?? []
    const all = row.reduce((sum, count) => sum + count, 0)
    return [name, all === 0 ? null : rounded((row[index] ?? 0) / all)]
  })
  return {
    pictures: labels.length,
    accuracy: labels.length === 0 ? 0 : rounded(correct / labels.length),
    recall: Object.fromEntries(recall),
    confusion,
  }
}

/**
 * The area under the ROC curve: how often a random positive score is above a random negative one,
 * with ties counting half. 0.5 is chance; also 0.5 if either list is empty.
 */
export const areaUnderCurve = (positives: ArrayLike<number>, negatives: ArrayLike<number>) => {
  const ordered = Float64Array.from(negatives).sort()
  if (positives.length === 0 || ordered.length === 0) return 0.5
  let wins = 0
  for (let i = 0; i < positives.length; i++) {
    const value = positives[i] ?? 0
    wins += (rankOf(ordered, value, false) + rankOf(ordered, value, true)) / 2
  }
  return wins / positives.length / ordered.length
}

/** The number of values below `value`; with `equal`, the number of values not above it. */
const rankOf = (ordered: Float64Array, value: number, equal: boolean) => {
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
