import { type ErrorEntry, failPlatform } from '../errors.ts'
import type { Operation } from '../operation.ts'
import { errorsOf } from './refusals.ts'

/**
 * One meaning of an error code, with the operations that return it. A code may have several: `wallet-not-found` is 404 for a wallet in the path and
 * 422 for one in the body.
 */
export interface Meaning {
  readonly code: string
  readonly entry: ErrorEntry
  readonly operations: readonly Operation[]
}

/** Every error of the product, with all operations that may return it, derived from their tables. */
export function errorMeanings(operations: readonly Operation[]): readonly Meaning[] {
  const found = new Map<string, Meaning & { operations: Operation[] }>()
  const meaningOf = (code: string, entry: ErrorEntry) => {
    const key = JSON.stringify([code, entry])
    const meaning = found.get(key) ?? { code, entry, operations: [] }
    found.set(key, meaning)
    return meaning
  }
  for (const [code, entry] of Object.entries(failPlatform.table)) meaningOf(code, entry)
  for (const operation of operations)
    for (const [code, entry] of Object.entries(errorsOf(operation))) meaningOf(code, entry).operations.push(operation)
  return [...found.values()]
}
