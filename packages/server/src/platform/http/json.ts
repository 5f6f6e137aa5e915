import { parse as parseSafely } from 'secure-json-parse'
import { failPlatform } from '../errors.ts'

/** Most levels of arrays and objects in a request body. */
const jsonDepthMax = 32

/** The size of a JSON text, counted on its bytes: before it is parsed, and without memory. */
export interface JsonShape {
  /** Levels of arrays and objects. */
  readonly depth: number
  /** Values in arrays and objects, and about as many names as there are members. */
  readonly nodes: number
}

const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b
const CLOSE_BRACE = 0x7d
const CLOSE_BRACKET = 0x5d
const COMMA = 0x2c
const COLON = 0x3a
const QUOTE = 0x22
const BACKSLASH = 0x5c
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Parses a JSON body. Depth is counted on the bytes before parsing, so a deeply nested body costs nothing; `__proto__` and
 * `constructor.prototype` keys and bytes that are not UTF-8 are refused.
 */
export function readJson(body: Uint8Array, shape?: JsonShape): unknown {
  if (shape === undefined ? isTooDeep(body) : shape.depth > jsonDepthMax) {
    throw failPlatform('malformed-json', { detail: `The request body nests deeper than ${jsonDepthMax} levels.` })
  }
  try {
    const text = decoder.decode(body)
    if (!mayNamePrototype(text)) return JSON.parse(text)
    return parseSafely(text, undefined, { protoAction: 'error', constructorAction: 'error' })
  } catch (error) {
    throw failPlatform('malformed-json', {}, error)
  }
}

/** A text nests no deeper than it has opening brackets, which the engine finds faster than the depth is counted. */
function isTooDeep(body: Uint8Array): boolean {
  let left = jsonDepthMax
  for (const bracket of [OPEN_BRACE, OPEN_BRACKET])
    for (let at = body.indexOf(bracket); at >= 0; at = body.indexOf(bracket, at + 1))
      if (--left < 0) return shapeOf(body).depth > jsonDepthMax
  return false
}

/** Whether a text may have what `secure-json-parse` handles: a key that it refuses, with or without escapes, or a second byte order mark. */
function mayNamePrototype(text: string): boolean {
  return text.includes('__proto__') || text.includes('constructor') || text.includes('\\u') || text.startsWith('\ufeff')
}

/** Escapes of a NUL and of half a surrogate pair. */
const unusualEscape = /\\u(?:0000|d[89a-f])/i

/**
 * Whether a body that `readJson` accepts may contain text that PostgreSQL cannot store. Its bytes are UTF-8 and JSON has no control characters in
 * text, so only an escape can stand for a NUL or a lone surrogate. Otherwise nothing in it has to be looked at.
 */
export function hasUnusualEscape(body: Uint8Array): boolean {
  if (!body.includes(BACKSLASH)) return false
  return unusualEscape.test(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1'))
}

/** Returns the shape of a JSON text in one pass. */
export function shapeOf(body: Uint8Array): JsonShape {
  let depth = 0
  let deepest = 0
  let nodes = 0
  let inString = false
  for (let index = 0; index < body.length; index += 1) {
    const byte = body[index]
    if (inString) {
      if (byte === BACKSLASH) index += 1
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === COMMA || byte === COLON) nodes += 1
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      nodes += 1
      deepest = Math.max(deepest, ++depth)
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1
  }
  return { depth: deepest, nodes }
}
