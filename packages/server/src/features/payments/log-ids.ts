import { newTypeId } from '@purser/protocol'

/** Returns the least id of a payment log made at that Unix time in milliseconds; times before 1970 count as 1970. */
export function firstLogIdAt(unixMs: number): string {
  return newTypeId('plog', Math.min(Math.max(unixMs, 0), 2 ** 48 - 1), new Uint8Array(10))
}
