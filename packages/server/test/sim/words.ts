import { createHash } from 'node:crypto'
import type { Address, Hex } from '@purser/protocol'

/** Call data as words of 32 bytes after the selector of four bytes. */
export const selectorOf = (data: string): string => data.slice(0, 10)
export const wordOf = (data: string, index: number): string => data.slice(10 + index * 64, 74 + index * 64)
export const accountIn = (data: string, index: number): Address => `0x${wordOf(data, index).slice(24)}`
export const numberIn = (data: string, index: number): bigint => BigInt(`0x${wordOf(data, index)}`)

/** Replaces a signature of this text where there is no key. */
export function signatureOf(text: string): Hex {
  return `0x${createHash('sha256').update(text).digest('hex')}`
}
