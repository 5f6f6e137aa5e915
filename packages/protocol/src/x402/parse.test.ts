import { PaymentPayloadV1Schema, PaymentPayloadV2Schema, PaymentRequiredV2Schema } from '@x402/core/schemas'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { paymentV1, paymentV2 } from '../../test/signed-payment.ts'
import {
  parseFacilitatorRequest,
  parsePaymentPayload,
  parsePaymentRequiredV1,
  parsePaymentRequiredV2,
  parsePaymentRequirementsV1,
  parsePaymentRequirementsV2,
  parseSettleResponse,
  parseSupportedResponse,
  parseVerifyResponse,
} from './parse.ts'
import { reasons } from './reasons.ts'

const parsers = [
  parseFacilitatorRequest,
  parsePaymentPayload,
  parsePaymentRequiredV1,
  parsePaymentRequiredV2,
  parsePaymentRequirementsV1,
  parsePaymentRequirementsV2,
  parseSettleResponse,
  parseSupportedResponse,
  parseVerifyResponse,
]
const hostile: readonly unknown[] = [
  null,
  undefined,
  true,
  0,
  -1,
  1e308,
  'x',
  '',
  [],
  [[]],
  {},
  { length: 1 },
  { toString: 1 },
  10n,
  () => 1,
  Symbol('x'),
  Number.NaN,
]

test('a message in which any one value was replaced makes no parser throw', async () => {
  const messages = [
    { x402Version: 2, paymentPayload: await paymentV2(), paymentRequirements: (await paymentV2()).accepted },
    await paymentV1(),
    await paymentV2(),
    { x402Version: 2, error: 'e', resource: { url: 'https://a.example/' }, accepts: [(await paymentV2()).accepted] },
    { success: true, transaction: '0x', network: 'eip155:8453', payer: '0x', amount: '1' },
    { kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:8453' }], extensions: [], signers: {} },
    { isValid: false, invalidReason: 'r', payer: '0x' },
  ]
  const outcomes = parsers.flatMap((parse) =>
    messages.flatMap((message) =>
      pathsOf(message).flatMap((path) => hostile.map((value) => parse(replaced(message, path, value)).ok)),
    ),
  )
  expect(new Set(outcomes)).toEqual(new Set([true, false]))
})

test('no value makes a parser throw', () => {
  fc.assert(
    fc.property(
      fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, withObjectString: true }),
      (value) => {
        for (const parse of parsers) expect(() => parse(value)).not.toThrow()
      },
    ),
    { numRuns: 500 },
  )
})

test('a payment in which any one value was replaced is either refused or still a payment of the official schema', async () => {
  for (const [payment, schema] of [
    [await paymentV2(), PaymentPayloadV2Schema],
    [await paymentV1(), PaymentPayloadV1Schema],
  ] as const) {
    for (const path of pathsOf(payment)) {
      for (const value of hostile) {
        const parsed = parsePaymentPayload(replaced(payment, path, value))
        if (parsed.ok) expect(schema.safeParse(parsed.value).success, path.join('/')).toBe(true)
        else expect(reasons).toContain(parsed.fault.reason)
      }
    }
  }
})

test('every member of a payment that is needed is missed, by its path', async () => {
  const needed = [
    '/accepted',
    '/accepted/network',
    '/accepted/amount',
    '/accepted/asset',
    '/accepted/payTo',
    '/accepted/maxTimeoutSeconds',
    '/payload',
    '/payload/signature',
    '/payload/authorization',
    '/payload/authorization/from',
    '/payload/authorization/to',
    '/payload/authorization/value',
    '/payload/authorization/validAfter',
    '/payload/authorization/validBefore',
    '/payload/authorization/nonce',
  ]
  const payment = await paymentV2()
  for (const path of needed) {
    const parsed = parsePaymentPayload(replaced(payment, path.slice(1).split('/'), undefined))
    expect(parsed, path).toMatchObject({ ok: false, fault: { reason: 'invalid_payload' } })
    expect(!parsed.ok && parsed.fault.path.startsWith(path), path).toBe(true)
  }
})

test('numbers of an authorization are decimal digits below 2^256 and nothing else', async () => {
  const payment = await paymentV2()
  const wrong = [
    '',
    '-1',
    '+1',
    '1.0',
    '0x10',
    '1e3',
    ' 1',
    '1 ',
    '01',
    '1_0',
    (2n ** 256n).toString(),
    '9'.repeat(10_000),
    '１',
  ]
  for (const member of ['value', 'validAfter', 'validBefore']) {
    for (const value of wrong) {
      const parsed = parsePaymentPayload(replaced(payment, ['payload', 'authorization', member], value))
      expect(parsed, `${member} ${value.slice(0, 10)}`).toMatchObject({
        ok: false,
        fault: { reason: 'invalid_payload', path: `/payload/authorization/${member}` },
      })
    }
    expect(
      parsePaymentPayload(replaced(payment, ['payload', 'authorization', member], (2n ** 256n - 1n).toString())).ok,
    ).toBe(true)
  }
})

test('other versions, schemes and payloads are distinguished by their reason', async () => {
  const payment = await paymentV2()
  const reasonOf = (value: unknown) => {
    const parsed = parsePaymentPayload(value)
    return parsed.ok ? undefined : parsed.fault.reason
  }
  for (const version of [0, 3, '2', null, undefined, [2]])
    expect(reasonOf({ ...payment, x402Version: version })).toBe('invalid_x402_version')
  expect(reasonOf({ ...payment, accepted: { ...payment.accepted, scheme: 'upto' } })).toBe('invalid_exact_evm_scheme')
  expect(reasonOf({ ...(await paymentV1()), scheme: 'upto' })).toBe('invalid_exact_evm_scheme')
  expect(reasonOf({ ...payment, payload: { signature: '0x', permit2Authorization: {} } })).toBe(
    'unsupported_payload_type',
  )
  expect(reasonOf({ ...payment, payload: { transaction: 'AQAB' } })).toBe('unsupported_payload_type')
})

test('optional members may be null, as other implementations write them, and unknown ones are dropped', async () => {
  const payment = await paymentV2()
  const nulls = {
    ...payment,
    resource: null,
    extensions: null,
    accepted: { ...payment.accepted, extra: null },
    unknown: 1,
  }
  const parsed = parsePaymentPayload(nulls)
  expect(parsed.ok && JSON.parse(JSON.stringify(parsed.value))).toEqual({
    ...payment,
    accepted: { ...payment.accepted, extra: undefined },
  })
})

test('__proto__ and deep nesting do not get through in the parts that are passed on unread', async () => {
  const payment = await paymentV2()
  const withExtra = (extra: string) => JSON.parse(JSON.stringify(payment).replace('"extra":{', `"extra":{${extra},`))
  expect(parsePaymentPayload(withExtra('"a":{"__proto__":{"admin":true}}')).ok).toBe(false)
  expect(parsePaymentPayload(withExtra('"__proto__":{"name":"x"}')).ok).toBe(false)
  expect(parsePaymentPayload(withExtra(`"a":${'['.repeat(10_000)}${']'.repeat(10_000)}`)).ok).toBe(false)
  expect(parsePaymentPayload(withExtra(`"a":${'['.repeat(10)}${']'.repeat(10)}`)).ok).toBe(true)
  const polluted = parsePaymentPayload(
    JSON.parse(JSON.stringify(payment).replace('"x402Version"', '"__proto__":{"resource":{"url":"x"}},"x402Version"')),
  )
  expect(polluted.ok && polluted.value.x402Version === 2 && polluted.value.resource).toBeUndefined()
})

test('a challenge with offers of other chains and schemes is read as the official schema reads it', () => {
  const challenge = {
    x402Version: 2,
    resource: { url: 'https://example.com', serviceName: 'Weather', tags: ['a', 'b'] },
    accepts: [
      {
        scheme: 'upto',
        network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
        amount: '1',
        asset: 'EPjF',
        payTo: 'abc',
        maxTimeoutSeconds: 1.5,
      },
      {
        scheme: 'batch-settlement',
        network: 'cloudflare:402',
        amount: '1',
        asset: 'USD',
        payTo: 'merchant',
        maxTimeoutSeconds: 60,
        extra: {},
      },
    ],
    extensions: { bazaar: { info: {} } },
  }
  const parsed = parsePaymentRequiredV2(challenge)
  expect(parsed.ok && JSON.parse(JSON.stringify(parsed.value))).toEqual(PaymentRequiredV2Schema.parse(challenge))
  expect(parsePaymentRequiredV2({ ...challenge, accepts: [] }).ok).toBe(false)
  expect(parsePaymentRequiredV2({ ...challenge, resource: { url: 'x', tags: ['a'.repeat(33)] } }).ok).toBe(false)
  expect(parsePaymentRequiredV2({ ...challenge, accepts: [{ ...challenge.accepts[0], network: 'base' }] }).ok).toBe(
    false,
  )
})

test('a facilitator reads both halves of a request by the rules of one version', async () => {
  const v2 = await paymentV2()
  const v1 = await paymentV1()
  const { amount, ...rest } = v2.accepted
  const requirementsV1 = {
    ...rest,
    network: 'base-sepolia',
    maxAmountRequired: amount,
    resource: 'https://example.com',
    description: '',
  }
  expect(
    parseFacilitatorRequest({ x402Version: 2, paymentPayload: v2, paymentRequirements: v2.accepted }),
  ).toMatchObject({ ok: true })
  expect(
    parseFacilitatorRequest({ x402Version: 1, paymentPayload: v1, paymentRequirements: requirementsV1 }),
  ).toMatchObject({ ok: true })
  expect(
    parseFacilitatorRequest({ x402Version: 1, paymentPayload: v2, paymentRequirements: v2.accepted }),
  ).toMatchObject({ fault: { reason: 'invalid_x402_version' } })
  expect(
    parseFacilitatorRequest({ x402Version: 1, paymentPayload: v1, paymentRequirements: v2.accepted }),
  ).toMatchObject({ fault: { reason: 'invalid_payment_requirements' } })
  expect(parseFacilitatorRequest({ x402Version: 2, paymentRequirements: v2.accepted })).toMatchObject({
    fault: { reason: 'invalid_payload' },
  })
})

function pathsOf(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([name, member]) => pathsOf(member, [...path, name]))]
}

function replaced(value: unknown, [head, ...rest]: readonly string[], by: unknown): unknown {
  if (head === undefined) return by
  if (typeof value !== 'object' || value === null) return value
  const member: unknown = Object.entries(value).find(([name]) => name === head)?.[1]
  return { ...value, [head]: replaced(member, rest, by) }
}
