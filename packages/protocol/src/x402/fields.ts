import type { Address } from '../address.ts'
import { isAddress } from '../address.ts'
import { type Hex, isHex } from '../bytes.ts'
import { parseRaw } from '../money.ts'
import type { JsonObject } from './messages.ts'

/** The position of a parser, and the first fault it found. All cursors of a message share one `trouble`. */
export type Cursor = { readonly object: JsonObject; readonly path: string; readonly trouble: Trouble }
export type Trouble = { first: { readonly path: string; readonly message: string } | undefined }

const nothing: JsonObject = {}
const nestingMax = 16
const noAddress: Address = '0x0000000000000000000000000000000000000000'
const noBytes: Hex = '0x'

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Notes a fault, if it is the first one. The message must not contain text of the sender. */
export function note(trouble: Trouble, path: string, message: string): void {
  trouble.first ??= { path, message }
}

export function enter(value: unknown, path: string, trouble: Trouble): Cursor {
  if (isObject(value)) return { object: value, path, trouble }
  note(trouble, path, 'must be an object')
  return { object: nothing, path, trouble }
}

export function member(cursor: Cursor, name: string): Cursor {
  return enter(cursor.object[name], `${cursor.path}/${name}`, cursor.trouble)
}

export function text(cursor: Cursor, name: string, lengthMax: number, lengthMin = 1): string {
  const value = cursor.object[name]
  if (typeof value === 'string' && value.length >= lengthMin && value.length <= lengthMax) return value
  note(cursor.trouble, `${cursor.path}/${name}`, `must be a string of ${lengthMin} to ${lengthMax} characters`)
  return ''
}

/** An optional text. JSON null counts as absent, because other implementations send it. */
export function optionalText(cursor: Cursor, name: string, lengthMax: number, lengthMin = 0): string | undefined {
  return isAbsent(cursor.object[name]) ? undefined : text(cursor, name, lengthMax, lengthMin)
}

export function rawAmount(cursor: Cursor, name: string): string {
  const value = cursor.object[name]
  if (typeof value === 'string' && typeof parseRaw(value) === 'bigint') return value
  note(cursor.trouble, `${cursor.path}/${name}`, 'must be the decimal digits of an integer below 2^256')
  return '0'
}

export function address(cursor: Cursor, name: string): Address {
  const value = cursor.object[name]
  if (typeof value === 'string' && isAddress(value)) return value
  note(cursor.trouble, `${cursor.path}/${name}`, 'must be 0x and 40 hex digits')
  return noAddress
}

export function bytes32(cursor: Cursor, name: string): Hex {
  const value = cursor.object[name]
  if (typeof value === 'string' && value.length === 66 && isHex(value)) return value
  note(cursor.trouble, `${cursor.path}/${name}`, 'must be 0x and 64 hex digits')
  return noBytes
}

export function positiveNumber(cursor: Cursor, name: string): number {
  const value = cursor.object[name]
  if (typeof value === 'number' && Number.isFinite(value) && value > 0) return value
  note(cursor.trouble, `${cursor.path}/${name}`, 'must be a number above zero')
  return 1
}

export function boolean(cursor: Cursor, name: string): boolean {
  const value = cursor.object[name]
  if (typeof value === 'boolean') return value
  note(cursor.trouble, `${cursor.path}/${name}`, 'must be true or false')
  return false
}

export function list<T>(cursor: Cursor, name: string, itemsMax: number, read: (item: unknown, path: string) => T): T[] {
  const value = cursor.object[name]
  const path = `${cursor.path}/${name}`
  if (Array.isArray(value) && value.length <= itemsMax) return value.map((item, i) => read(item, `${path}/${i}`))
  note(cursor.trouble, path, `must be a list of at most ${itemsMax}`)
  return []
}

/**
 * An optional object with unchecked members. It may be nested at most 16 deep, so that later readers do not run out of
 * stack.
 */
export function optionalObject(cursor: Cursor, name: string): JsonObject | undefined {
  const value = cursor.object[name]
  if (isAbsent(value)) return undefined
  const path = `${cursor.path}/${name}`
  if (!isTame(value, 0)) note(cursor.trouble, path, `must be nested at most ${nestingMax} deep, without __proto__`)
  return enter(value, path, cursor.trouble).object
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

function isTame(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (depth >= nestingMax || Object.hasOwn(value, '__proto__')) return false
  return Object.values(value).every((inner) => isTame(inner, depth + 1))
}
