import fc from 'fast-check'
import { encodeMppJson, type MppChallenge } from '../src/index.ts'

/** Any text that a header may hold: no control characters, unpaired surrogates included. */
const headerText = (lengthMax: number) =>
  fc
    .array(fc.integer({ min: 0x20, max: 0xffff }), { minLength: 1, maxLength: lengthMax })
    .map((units) => String.fromCharCode(...units.filter((unit) => unit !== 0x7f)))
    .filter((text) => text !== '')

/** A JSON object that canonical JSON can hold and the reader lets through, which `__proto__` is not at any depth. */
export const jsonObject = fc
  .dictionary(
    fc.string({ maxLength: 8, unit: 'grapheme' }),
    fc.jsonValue({ maxDepth: 3, stringUnit: 'grapheme', noUnicodeString: false }),
    { maxKeys: 6 },
  )
  .filter((object) => !JSON.stringify(object).includes('"__proto__":'))

/** A `meta` of mppx: texts under names, which travels as `opaque`. */
const meta = fc
  .dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.string({ maxLength: 20, unit: 'grapheme' }), { maxKeys: 4 })
  .filter((object) => Object.keys(object).length > 0)

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

/** Any challenge, with any of its optional members. */
export const challenge: fc.Arbitrary<MppChallenge> = fc.record({
  id: headerText(60),
  realm: headerText(60),
  method: fc.constantFrom('tempo', 'evm', 'x:y_z-1'),
  intent: fc.constantFrom('charge', 'session'),
  request: jsonObject.map(encodeMppJson),
  expires: optional(fc.constantFrom('2026-11-21T12:05:00Z', '2026-11-21T12:05:00.123+01:00')),
  digest: optional(fc.base64String({ minLength: 4, maxLength: 44 }).map((text) => `sha-256=:${text}:`)),
  description: optional(headerText(80)),
  opaque: optional(meta.map(encodeMppJson)),
  header: optional(fc.constantFrom('Payment-Authorization', 'X-Pay', 'authorizations')),
})
