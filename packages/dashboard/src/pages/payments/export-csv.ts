import type { Purser } from '@purser/sdk'
import type { filtersOf } from './queries.ts'

const pageRows = 500
export const exportRowsMax = 10_000

/** Saves the payments that the filters leave, newest first, at most `exportRowsMax`. Returns whether these are all. */
export async function downloadCsv(
  purser: Purser,
  filters: ReturnType<typeof filtersOf>,
  signal: AbortSignal,
): Promise<boolean> {
  const parts: string[] = []
  let isWhole = true
  for await (const part of purser.csv('/payments/logs', { query: { ...filters, limit: pageRows }, signal })) {
    isWhole = parts.length < exportRowsMax / pageRows
    if (!isWhole) break
    parts.push(part)
  }
  save(new Blob(parts, { type: 'text/csv;charset=utf-8' }))
  return isWhole
}

function save(blob: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = `payments-${new Date().toISOString().slice(0, 10)}.csv`
  link.click()
  URL.revokeObjectURL(link.href)
}
