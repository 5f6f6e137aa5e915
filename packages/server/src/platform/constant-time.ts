import { timingSafeEqual } from 'node:crypto'

/** Whether two secrets are equal. The time depends on their lengths only. Texts are compared as UTF-8. */
export function equalInConstantTime(expected: string | Uint8Array, given: string | Uint8Array): boolean {
  const [left, right] = [Buffer.from(expected), Buffer.from(given)]
  return left.length === right.length && timingSafeEqual(left, right)
}
