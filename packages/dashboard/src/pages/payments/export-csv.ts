import type { PaymentLog, Purser } from '@purser/sdk'
import type { filtersOf } from './queries.ts'

export const exportRowsMax = 10_000

const columns = [
  'paymentId',
  'createdAt',
  'status',
  'amount',
  'token',
  'chain',
  'protocol',
  'method',
  'route',
  'payer',
  'walletId',
  'apiKeyId',
  'txHash',
  'vaultId',
  'sessionId',
] as const satisfies readonly (keyof PaymentLog)[]

/** Saves the payments that the filters leave, newest first, at most `exportRowsMax`. Answers how many they are. */
export async function downloadCsv(
  purser: Purser,
  filters: ReturnType<typeof filtersOf>,
  signal: AbortSignal,
): Promise<number> {
  const rows = await purser.payments.logs.list({ ...filters, limit: 500 }, { signal }).toArray({ limit: exportRowsMax })
  const blob = new Blob([csvOf(rows)], { type: 'text/csv;charset=utf-8' })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = `payments-${new Date().toISOString().slice(0, 10)}.csv`
  link.click()
  URL.revokeObjectURL(link.href)
  return rows.length
}

/** RFC 4180, with a head. */
export function csvOf(rows: readonly PaymentLog[]): string {
  const lines = rows.map((row) => columns.map((column) => csvCell(row[column] ?? '')).join(','))
  return `${[columns.join(','), ...lines].join('\r\n')}\r\n`
}

/** A text that somebody else wrote and that begins like a formula is made a text for the spreadsheet that opens the file. */
function csvCell(value: string): string {
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
