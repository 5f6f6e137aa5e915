import {
  decodePaymentRequiredHeader,
  decodePaymentResponseHeader,
  decodePaymentSignatureHeader,
  encodePaymentRequiredHeader,
  encodePaymentResponseHeader,
  encodePaymentSignatureHeader,
} from '@x402/core/http'
import { PaymentPayloadSchema, PaymentPayloadV2Schema } from '@x402/core/schemas'
import { expect, test } from 'vitest'
import { exact } from 'x402/schemes'
import { decodeXPaymentResponse } from 'x402/shared'
import { expected, judge, must, paymentV1, paymentV2, recover, separatorOf } from '../../test/signed-payment.ts'
import { encodeBase64, encodeJsonBase64 } from '../base64.ts'
import { networkByCaip2, tokenBySymbol } from '../chains.ts'
import { keccak256 } from '../hash.ts'
import { utf8 } from '../utf8.ts'
import spec from '../vectors/x402-v2-payment.json' with { type: 'json' }
import { checkAuthorization } from './check-authorization.ts'
import { paymentRequiredV2 } from './exact-evm.ts'
import {
  decodePayment,
  decodePaymentRequired,
  decodePaymentResponse,
  encodePayment,
  encodePaymentRequired,
  encodePaymentResponse,
  headerLengthMax,
} from './headers.ts'

const settled = {
  success: true,
  transaction: `0x${'12'.repeat(32)}`,
  network: 'eip155:84532',
  payer: '0x857b06519E91e3A54538791bDbb0E22373e36b66',
} as const
const required = paymentRequiredV2({
  offers: [
    {
      ...expected,
      resource: 'https://api.example.com/x',
      description: 'Wetter für Zürich ₿',
      mimeType: 'application/json',
      maxTimeoutSeconds: 60,
    },
  ],
  resource: { url: 'https://api.example.com/x', description: 'Wetter für Zürich ₿', mimeType: 'application/json' },
  error: 'Payment required',
})

test('the payment of the x402 specification is read, and its signature recovers to its payer', () => {
  const decoded = decodePayment(encodeJsonBase64(spec.payment))
  expect(decoded.ok && decoded.value).toEqual(spec.payment)
  const network = must(networkByCaip2('eip155:84532'))
  const token = must(tokenBySymbol(network, 'USDC'))
  if (!decoded.ok) throw new Error(decoded.fault.message)
  const verdict = checkAuthorization({
    payload: decoded.value,
    expected: { network, token, rawAmount: 10_000n, payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C' },
    nowSeconds: 1_740_672_100,
    recover,
    keccak: keccak256,
    domainSeparator: separatorOf(network, token),
  })
  expect(verdict).toMatchObject({ ok: true, payer: spec.payer, signatureKind: 'eoa' })
})

test('payments pass both ways between us and the official SDK', async () => {
  const payment = await paymentV2()
  const official = decodePaymentSignatureHeader(encodePayment(payment))
  expect(official).toEqual(JSON.parse(JSON.stringify(payment)))
  expect(PaymentPayloadV2Schema.parse(official)).toMatchObject({ x402Version: 2 })
  const back = decodePayment(encodePaymentSignatureHeader(official))
  expect(back.ok && judge(back.value)).toMatchObject({ ok: true, signatureKind: 'eoa' })
})

test('payments of version 1 pass both ways between us and the last official version 1 SDK', async () => {
  const payment = await paymentV1()
  const official = exact.evm.decodePayment(encodePayment(payment))
  expect(official).toEqual(payment)
  expect(PaymentPayloadSchema.parse(official)).toEqual(payment)
  const back = decodePayment(exact.evm.encodePayment(official))
  expect(back.ok && judge(back.value)).toMatchObject({ ok: true, signatureKind: 'eoa' })
})

test('challenges pass both ways between us and the official SDK, with texts of any alphabet', () => {
  const wire = JSON.parse(JSON.stringify(required))
  expect(decodePaymentRequiredHeader(encodePaymentRequired(required))).toEqual(wire)
  const back = decodePaymentRequired(encodePaymentRequiredHeader(wire))
  expect(back.ok && JSON.parse(JSON.stringify(back.value))).toEqual(wire)
})

test('results pass both ways between us and the official SDKs, and carry nothing that is not the protocol’s', () => {
  const sloppy = { ...settled, extensionResponses: { secret: 1 }, cause: 'https://node.example/key' }
  expect(decodePaymentResponseHeader(encodePaymentResponse(sloppy))).toEqual(settled)
  expect(decodeXPaymentResponse(encodePaymentResponse(sloppy))).toEqual(settled)
  const back = decodePaymentResponse(encodePaymentResponseHeader(settled))
  expect(back.ok && JSON.parse(JSON.stringify(back.value))).toEqual(settled)
})

test('a header that is not base64 of JSON is a fault and never an exception', () => {
  const deep = `${'['.repeat(6_000)}${']'.repeat(6_000)}`
  const broken = [
    '',
    ' ',
    'null',
    '{}',
    '!!!!',
    'eyJ4',
    btoa('null'),
    btoa('[]'),
    btoa('1'),
    btoa('"x"'),
    btoa(deep),
    btoa('{"x402Version":2}x'),
    encodeBase64(Uint8Array.of(0xc3, 0x28)),
    'A'.repeat(headerLengthMax + 4),
    'stub_payment_accepted',
  ]
  for (const header of broken) {
    expect(decodePayment(header), header.slice(0, 20)).toMatchObject({
      ok: false,
      fault: { reason: 'invalid_payload' },
    })
    expect(decodePaymentRequired(header).ok).toBe(false)
    expect(decodePaymentResponse(header).ok).toBe(false)
  }
})

test('a header above 16 KB is not even decoded', async () => {
  const payment = { ...(await paymentV2()), extensions: { padding: 'x'.repeat(headerLengthMax) } }
  expect(decodePayment(encodeJsonBase64(payment))).toMatchObject({ ok: false })
  expect(decodePayment(encodeBase64(utf8(JSON.stringify(await paymentV2())))).ok).toBe(true)
})
