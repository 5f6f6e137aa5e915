/** The value below which this share of the values lies (nearest rank); 0 when there are none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? 0
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/** The bound that a measured figure must keep. */
export type Target = { readonly min: number } | { readonly max: number }

/** Prints whether the figure keeps its target. Returns the number of missed targets: 0 or 1. A figure that is not a number misses. */
export function checkTarget(name: string, value: number, target: Target): number {
  const isMet = 'min' in target ? value >= target.min : value <= target.max
  const bound = 'min' in target ? `at least ${target.min}` : `at most ${target.max}`
  console.log(`  target: ${name} ${bound}: ${isMet ? 'met' : `MISSED, ${figure(value)}`}`)
  return isMet ? 0 : 1
}

/** Formats a number with about three significant digits. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
}

/** Formats rows as a table: text left-aligned, numbers right-aligned. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    widths
      .map((width, column) =>
        column === 0 ? (cells[column] ?? '').padEnd(width) : (cells[column] ?? '').padStart(width),
      )
      .join('  ')
  return [line(head), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)]
    .map((text) => `  ${text.trimEnd()}`)
    .join('\n')
}
