import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { arrayText } from './array-text.ts'

/** The driver's own conversion, which its types leave out. */
const driver: { prepareValue(value: unknown): unknown } = createRequire(import.meta.url)('pg/lib/utils.js')

test.each([
  [[]],
  [['evt_01h455vb4pex5vsknk084sn02q', 'a b', '', 'NULL', '{}', ',']],
  [['"', '\\', 'a\\"b\\\\"c', '\\"\n\t', "it's", 'ä😀', '\u0001']],
  [[0, -0, 1.5, -7, 1e21, Number.NaN, Number.POSITIVE_INFINITY, true, false]],
  [[null, undefined, 'null', null]],
])('an array literal is the driver’s own: %j', (values) => {
  expect(arrayText(values)).toBe(driver.prepareValue(values))
})

test.each([[[['a']]], [[new Date(0)]], [[Buffer.from('a')]], [['a', { b: 1 }]], [[1n]]])(
  'an array with anything else is left to the driver: %#',
  (values) => {
    expect(arrayText(values)).toBeUndefined()
  },
)
