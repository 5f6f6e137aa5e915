import {
  PaymentRequiredV1Schema,
  PaymentRequiredV2Schema,
  PaymentRequirementsV1Schema,
  PaymentRequirementsV2Schema,
} from '@x402/core/schemas'
import { expect, test } from 'vitest'
import { PaymentRequirementsSchema, SupportedPaymentKindsResponseSchema } from 'x402/types'
import { must } from '../../test/signed-payment.ts'
import { networkByName, tokenBySymbol } from '../chains.ts'
import { networks } from '../networks.ts'
import {
  expectedOf,
  type Offer,
  paymentRequiredV1,
  paymentRequiredV2,
  requirementsV1,
  requirementsV2,
  supportedResponse,
} from './exact-evm.ts'
import { parseSupportedResponse } from './parse.ts'

function offerOn(name: string, symbol = 'USDC'): Offer {
  const network = must(networkByName(name))
  return {
    network,
    token: must(tokenBySymbol(network, symbol)),
    rawAmount: 10_000n,
    payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
    resource: 'https://api.example.com/premium-data',
    description: 'Premium data',
    mimeType: 'application/json',
    maxTimeoutSeconds: 60,
  }
}

const paying = networks.filter((network) => network.settlesEip3009)

test('every offer is one that the official schemas take, in both versions', () => {
  expect(paying).toHaveLength(10)
  for (const { name, x402V1Name } of paying) {
    const v2 = requirementsV2(offerOn(name))
    expect(PaymentRequirementsV2Schema.parse(v2)).toEqual(v2)
    const v1 = requirementsV1(offerOn(name))
    if (x402V1Name === null) expect(v1).toBeUndefined()
    else expect(PaymentRequirementsV1Schema.parse(v1)).toEqual(v1)
  }
})

test('an offer says exactly what the specification’s example says', () => {
  expect(requirementsV2(offerOn('base-sepolia'))).toEqual({
    scheme: 'exact',
    network: 'eip155:84532',
    amount: '10000',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
    maxTimeoutSeconds: 60,
    extra: { name: 'USDC', version: '2' },
  })
})

test('a parsed offer equals the terms that it was made from, for every sender', () => {
  for (const { name } of paying) {
    const { network, token, rawAmount, payTo } = offerOn(name)
    const requirements = [requirementsV2(offerOn(name)), requirementsV1(offerOn(name))]
    for (const each of requirements)
      if (each !== undefined) expect(expectedOf(each)).toEqual({ network, token, rawAmount, payTo })
  }
})

test('requirements that cannot be served are refused with a reason', () => {
  const v2 = requirementsV2(offerOn('base'))
  expect(expectedOf({ ...v2, scheme: 'upto' })).toBe('invalid_exact_evm_scheme')
  expect(expectedOf({ ...v2, extra: undefined })).toBe('invalid_exact_evm_missing_eip712_domain')
  expect(expectedOf({ ...v2, extra: { name: 'USD Coin' } })).toBe('invalid_exact_evm_missing_eip712_domain')
  expect(expectedOf({ ...v2, extra: { name: 'USDC', version: '2' } })).toBe('invalid_exact_evm_token_name_mismatch')
  expect(expectedOf({ ...v2, extra: { name: 'USD Coin', version: '1' } })).toBe(
    'invalid_exact_evm_token_version_mismatch',
  )
  expect(expectedOf({ ...v2, network: 'eip155:999' })).toBe('invalid_network')
  expect(expectedOf({ ...v2, asset: v2.payTo })).toBe('invalid_payment_requirements')
  expect(expectedOf({ ...v2, payTo: 'merchant' })).toBe('invalid_payment_requirements')
  for (const amount of ['-1', '1.5', '', '0x1', (2n ** 256n).toString()])
    expect(expectedOf({ ...v2, amount })).toBe('invalid_payment_requirements')
  const usdt = must(tokenBySymbol(must(networkByName('ethereum')), 'USDT'))
  expect(expectedOf({ ...requirementsV2(offerOn('ethereum')), asset: usdt.address })).toBe(
    'invalid_exact_evm_eip3009_not_supported',
  )
})

test('a token that cannot be paid by a signature is never offered', () => {
  expect(() => requirementsV2(offerOn('ethereum', 'USDT'))).toThrow(RangeError)
  expect(() => requirementsV2(offerOn('tempo', 'pathUSD'))).toThrow(RangeError)
})

test('challenges are those of the official schemas', () => {
  const offers = [offerOn('base'), offerOn('ethereum'), offerOn('optimism')]
  const v2 = paymentRequiredV2({ offers, resource: { url: 'https://api.example.com' }, error: 'Payment required' })
  expect(PaymentRequiredV2Schema.parse(v2)).toEqual(v2)
  const v1 = paymentRequiredV1({ offers, error: 'X-PAYMENT header is required' })
  expect(PaymentRequiredV1Schema.parse(v1)).toEqual(v1)
})

test('an old client is not shown a network that makes it give up on the whole list', () => {
  const mixed = must(paymentRequiredV1({ offers: [offerOn('ethereum'), offerOn('base'), offerOn('optimism')] }))
  for (const requirements of mixed.accepts) expect(PaymentRequirementsSchema.parse(requirements)).toEqual(requirements)
  expect(mixed.accepts.map(({ network }) => network)).toEqual(['base'])
  expect(paymentRequiredV1({ offers: [offerOn('ethereum')] })?.accepts.map(({ network }) => network)).toEqual([
    'ethereum',
  ])
  expect(paymentRequiredV1({ offers: [offerOn('optimism')] })).toBeUndefined()
})

test('what a facilitator supports is read by the official version 1 client, and by us', () => {
  const supported = supportedResponse(networks, ['0x209693Bc6afc0C5328bA36FaF03C514EF312287C'])
  const v1 = supported.kinds.filter((kind) => kind.x402Version === 1 && !['ethereum', 'sepolia'].includes(kind.network))
  expect(SupportedPaymentKindsResponseSchema.safeParse({ kinds: v1 }).success).toBe(true)
  expect(supported.kinds.filter((kind) => kind.x402Version === 2)).toHaveLength(10)
  const parsed = parseSupportedResponse(supported)
  expect(parsed.ok && JSON.parse(JSON.stringify(parsed.value))).toEqual(supported)
  expect(parseSupportedResponse({ kinds: supported.kinds })).toMatchObject({
    ok: true,
    value: { extensions: [], signers: {} },
  })
})
