import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { isProblem } from '../../../platform/errors.ts'
import { checkOf, readContentDigest, sha256Field } from './digest.ts'

/** RFC 9530, appendix D: the digests of `{"hello": "world"}` and a line feed. */
const content = Buffer.from('{"hello": "world"}\n')
const sha256 = 'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:'
const sha512 = 'sha-512=:YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:'

function holds(field: string, ...chunks: readonly Uint8Array[]): boolean {
  const check = checkOf(readContentDigest(field))
  for (const chunk of chunks) check.update(chunk)
  return check.matches()
}

test('the digests of RFC 9530’s example match its content, in one piece or in several', () => {
  for (const field of [sha256, sha512, `${sha256}, ${sha512}`, `${sha512},${sha256}`]) {
    expect(holds(field, content)).toBe(true)
    expect(holds(field, content.subarray(0, 7), content.subarray(7))).toBe(true)
    expect(holds(field, content.subarray(1))).toBe(false)
  }
  expect(sha256Field(createHash('sha256').update(content).digest('hex'))).toBe(sha256)
})

test('all digests that can be checked must match, and those of other algorithms are ignored', () => {
  expect(holds(`${sha256}, sha-512=:AAAA:`, content)).toBe(false)
  expect(holds(`unixsum=:AAAA:, ${sha256}`, content)).toBe(true)
  expect(holds('md5=:AAAA:', content)).toBe(true)
})

test('of several digests with one algorithm the last one counts, so that content is hashed twice at most', () => {
  expect(holds(`sha-256=:AAAA:, ${sha256}`, content)).toBe(true)
  expect(holds(`${sha256}, sha-256=:AAAA:`, content)).toBe(false)
  const field = [...Array(2_000).fill('sha-256=::, sha-512=::'), sha256, sha512].join(',')
  expect(readContentDigest(field)).toHaveLength(2)
  expect(holds(field, content)).toBe(true)
})

test('a malformed Content-Digest is a fault, since its sender expects a check', () => {
  for (const field of ['', 'sha-256', 'sha-256=abc', 'sha-256=:***:', `${sha256},`, 'sha-256=:AAAA', '=:AAAA:']) {
    expect(() => readContentDigest(field), field).toThrow(
      expect.toSatisfy((error) => isProblem(error, 'validation-error')),
    )
  }
  expect(readContentDigest(undefined)).toEqual([])
})
