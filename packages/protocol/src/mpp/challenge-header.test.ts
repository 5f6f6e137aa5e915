import fc from 'fast-check'
import { Challenge } from 'mppx'
import { expect, test } from 'vitest'
import { challenge } from '../../test/mpp-challenges.ts'
import { orderOffers } from './accept-payment.ts'
import { formatChallenge, formatChallenges, type MppChallenge } from './challenge.ts'
import { parseChallenges } from './challenge-header.ts'
import { mppCredentialsIn, parseMppCredential } from './credential.ts'
import { sameDigest } from './digest.ts'
import { parseReceipt } from './receipt.ts'

const one: MppChallenge = { id: 'i', realm: 'r', method: 'tempo', intent: 'charge', request: 'e30' }
const two: MppChallenge = { ...one, id: 'j', method: 'evm' }

test('what was written as challenges is read as the same challenges, joined or one value each', () => {
  fc.assert(
    fc.property(fc.array(challenge, { maxLength: 8 }), (list) => {
      expect(parseChallenges(formatChallenges(list))).toEqual(list)
      expect(parseChallenges(list.map(formatChallenge))).toEqual(list)
    }),
  )
})

test('what mppx writes is read as the same challenge', () => {
  fc.assert(
    fc.property(challenge, (given) => {
      const { request, ...rest } = Challenge.deserialize(formatChallenge(given))
      expect(parseChallenges(Challenge.serialize({ ...rest, request }))).toEqual([given])
    }),
  )
})

test('other schemes beside the challenges, before, between and after them, change nothing', () => {
  const others = [
    'Basic realm="x, Payment id=\\"no\\""',
    'Bearer',
    'Bearer realm="api", error="invalid_token", error_description="wrote \\"no\\", sorry"',
    'Negotiate a87421000492aa874209af8bc028==',
    'Digest qop="auth, auth-int", nonce="x", opaque=y',
    'X-Pay.ment id="a", realm="b"',
    'Bearer Payment id="no", realm="r", method="tempo", intent="charge", request="e30"',
  ]
  for (const other of others) {
    const value = [other, formatChallenge(one), other, formatChallenge(two), other].join(', ')
    expect(parseChallenges(value), other).toEqual([one, two])
  }
})

test('letter case, white space, unquoted values, unknown parameters and empty elements do not matter', () => {
  for (const value of [
    'payment id="i", realm="r", method="tempo", intent="charge", request="e30"',
    'PAYMENT ID=i,REALM=r,Method=tempo,intent=charge,request=e30',
    'Payment   id = "i" ,\t realm="r",method="tempo" , intent=charge , request="e30"',
    ', ,Payment id="i",, realm="r", method="tempo", intent="charge", request="e30",,',
    'Payment future="a, b", id="i", realm="r", method="tempo", x_1-y=z, intent="charge", request="e30"',
    'Payment id="\\i", realm="\\u0072", method="tempo", intent="charge", request="e30", description=""',
  ])
    expect(parseChallenges(value), value).toEqual([one])
})

test('a broken challenge is left out and those beside it stay', () => {
  const parameters = 'id="i", realm="r", method="tempo", intent="charge", request="e30"'
  for (const broken of [
    'Payment',
    'Payment e30',
    'Payment realm="r", method="tempo", intent="charge", request="e30"',
    'Payment id="", realm="r", method="tempo", intent="charge", request="e30"',
    'Payment id="i", realm="r", method="Tempo", intent="charge", request="e30"',
    'Payment id="i", realm="r", method="tempo", intent="charge", request="W10"',
    'Payment id="i", realm="r", method="tempo", intent="charge", request="%%%"',
    'Payment id="i", realm="r", method="tempo", intent="charge"',
    `Payment ${parameters}, id="k"`,
    `Payment ${parameters}, ID="k"`,
    `Payment ${parameters}, expires="tomorrow"`,
    `Payment ${parameters}, digest="md5=x"`,
    `Payment ${parameters}, header="a b"`,
    `Payment ${parameters}, @@@`,
    `Payment ${parameters}, ="x"`,
    `Payment id="i"garbage, realm="r", method="tempo", intent="charge", request="e30"`,
    `Payment id="i", realm="r", method="tempo", intent="charge", request="${'A'.repeat(16_385)}"`,
    `Payment/2 ${parameters}`,
  ])
    expect(parseChallenges(`${formatChallenge(one)}, ${broken}, ${formatChallenge(two)}`), broken).toEqual([one, two])
})

test('an unclosed string hides what follows it, not what precedes it', () => {
  expect(parseChallenges(`${formatChallenge(one)}, Payment id="x, ${formatChallenge(two)}`)).toEqual([one])
  expect(parseChallenges([`Payment id="x`, formatChallenge(two)])).toEqual([two])
})

test('at most 64 challenges and at most 64 KB of one value are read', () => {
  const many = formatChallenges(Array.from({ length: 100 }, () => one))
  expect(parseChallenges(many)).toHaveLength(64)
  expect(parseChallenges([many, many])).toHaveLength(64)
  expect(parseChallenges(`${formatChallenge(one)}, X y="${'z'.repeat(65_536)}"`)).toEqual([])
})

test('no text makes a parser throw', () => {
  const grammar = fc.constantFrom('Payment ', 'id', '=', '"', '\\', ',', ' ', 'realm="r"', 'e30', ';q=', '/', '*', ':')
  const hostile = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.array(grammar, { maxLength: 60 }).map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(hostile, (text) => {
      readByAll(text)
      readByAll(`Payment ${Buffer.from(text).toString('base64url')}`)
    }),
    { numRuns: 1_000 },
  )
})

test('64 KB of hostile text are read in time that grows with their length alone', () => {
  const units = [
    ' ',
    ',',
    ', ',
    '"',
    '\\',
    '"\\',
    '",',
    'a',
    'a ',
    'a=',
    '=',
    'a="b" ',
    'Payment',
    'Payment ',
    'Payment,',
    'Payment a, ',
    'Payment a="',
    'Payment a=" ,',
    '\\u00',
    '"\\u0041"',
    'a/b;',
    'a / b ; q = 0 ,',
    'sha-256=:',
    '=:',
    '\u00a0\u2028',
    '{"a":',
    '[',
  ]
  for (const unit of units) {
    const text = unit.repeat(65_536 / unit.length)
    const before = process.threadCpuUsage()
    readByAll(text)
    readByAll(`Payment ${text}`)
    readByAll(`Payment a="${text}`)
    readByAll(`Payment a${text.slice(0, 65_000)}"`)
    readByAll(Buffer.from(text.slice(0, 24_000)).toString('base64url'))
    expect(process.threadCpuUsage(before).user / 1_000, JSON.stringify(unit)).toBeLessThan(500)
  }
})

/** Nothing here may throw, whatever it is given. */
function readByAll(text: string): void {
  parseChallenges(text)
  parseMppCredential(text)
  mppCredentialsIn(text)
  parseReceipt(text)
  sameDigest(text, text)
  orderOffers([one, two], text)
}
