import { parse as parseSafely } from 'secure-json-parse'
import { failPlatform } from '../errors.ts'

/** Most levels of arrays and objects in a request body. */
const jsonDepthMax = 32

const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b
const CLOSE_BRACE = 0x7d
const CLOSE_BRACKET = 0x5d
const QUOTE = 0x22
const BACKSLASH = 0x5c
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Parses a JSON body. Depth is counted on the bytes before parsing, so a deeply nested body costs nothing; `__proto__` and
 * `constructor.prototype` keys and bytes that are not UTF-8 are refused.
 */
export function readJson(body: Uint8Array): unknown {
  if (depthOf(body) > jsonDepthMax) {
    throw failPlatform('malformed-json', { detail: `The request body nests deeper than ${jsonDepthMax} levels.` })
  }
  try {
    return parseSafely(decoder.decode(body), undefined, {
      protoAction: 'error',
      constructorAction: 'error',
    })
  } catch (error) {
    throw failPlatform('malformed-json', {}, error)
  }
}

function depthOf(body: Uint8Array): number {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let index = 0; index < body.length; index += 1) {
    const byte = body[index]
    if (inString) {
      if (byte === BACKSLASH) index += 1
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) deepest = Math.max(deepest, ++depth)
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1
  }
  return deepest
}
