import { parseReceipt } from '@purser/protocol'
import { expect, test } from 'vitest'
import { receiptOf } from '../src/middleware/receipts.ts'
import { txHash } from './fake-purser.ts'
import { mpp } from './stage.ts'

const payment = {
  paymentId: 'pay_01',
  protocol: 'mpp',
  amount: '0.01',
  coin: 'USDC',
  payer: null,
  txHash: null,
  settledAt: null,
  settlementPending: true,
  scheme: 'charge',
  method: null,
  challengeId: null,
  redeemable: false,
  network: '',
} as const
const moved = { txHash, settledAt: '2026-11-21T00:00:02.000Z', pending: false }
const sent = { protocol: 'mpp', value: mpp('evm') } as const

function receipt(reported: Record<string, unknown>) {
  const [name, value] = receiptOf(sent, Object.assign({}, payment, reported), moved)
  return { name, ...parseReceipt(value) }
}

test('the receipt prefers what Purser says about the payment to what the credential says', () => {
  const reported = { challengeId: 'of-purser', method: 'tempo', network: 'eip155:42431' }
  const facts = { challengeId: 'of-purser', method: 'tempo', chainId: 42431, reference: txHash }
  expect(receipt(reported)).toMatchObject({ name: 'Payment-Receipt', status: 'success', ...facts })
})

test('where Purser names no challenge the receipt names what was signed', () => {
  expect(receipt({})).toMatchObject({ method: 'evm', chainId: 84532 })
  expect(receipt({}).challengeId).toMatch(/^challenge-\d+$/)
})
