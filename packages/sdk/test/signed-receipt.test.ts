import { decodePaymentResponseHeader } from '@x402/fetch'
import { expect, test } from 'vitest'
import { receiptOf } from '../src/middleware/receipts.ts'
import { txHash } from './fake-purser.ts'

const payment = {
  paymentId: 'pay_01',
  protocol: 'x402',
  scheme: 'exact',
  method: null,
  challengeId: null,
  redeemable: false,
  network: 'eip155:84532',
  amount: '0.01',
  coin: 'USDC',
  payer: '0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  txHash: null,
  settledAt: null,
  settlementPending: true,
} as const
const moved = { txHash, settledAt: '2026-11-21T00:00:02.000Z', pending: false, signed: 'head.body.signature' }
const sent = { protocol: 'x402', value: '', network: 'eip155:84532', paymentId: undefined, payer: undefined } as const

test("Purser's signed receipt travels where the official client looks for it", () => {
  const [name, value] = receiptOf({ ...sent, responseHeader: 'PAYMENT-RESPONSE' }, payment, moved)
  expect(name).toBe('PAYMENT-RESPONSE')
  expect(decodePaymentResponseHeader(value)).toMatchObject({
    success: true,
    transaction: txHash,
    extensions: { 'offer-receipt': { info: { receipt: { format: 'jws', signature: moved.signed } } } },
  })
})

test('version 1, which has no extensions, gets none', () => {
  const [, value] = receiptOf({ ...sent, responseHeader: 'X-PAYMENT-RESPONSE' }, payment, moved)
  expect(Buffer.from(value, 'base64').toString()).not.toContain('extensions')
})
