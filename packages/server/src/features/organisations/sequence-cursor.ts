import { failPlatform } from '../../platform/errors.ts'
import { openCursor } from '../../platform/wire.ts'

const bigintMax = 2n ** 63n - 1n

/** Returns the number in a cursor of a list that is ordered by a sequence; a cursor of another list is a fault of the request. */
export function openSequenceCursor(cursor: string | undefined): string | undefined {
  const key = openCursor(cursor)
  if (key === undefined) return undefined
  if (/^\d{1,19}$/.test(key) && BigInt(key) <= bigintMax) return key
  throw failPlatform('validation-error', { errors: [{ path: '/cursor', message: 'is not a cursor of this list' }] })
}
