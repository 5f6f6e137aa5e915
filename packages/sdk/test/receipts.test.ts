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

function receipt(told: Record<string, unknown>) {
  const [name, value] = receiptOf(sent, Object.assign({}, payment, told), moved)
  return { name, ...parseReceipt(value) }
}

test('what Purser says of the payment stands in the receipt before what the credential says', () => {
  const told = { challengeId: 'of-purser', method: 'tempo', network: 'eip155:42431' }
  const facts = { challengeId: 'of-purser', method: 'tempo', chainId: 42431, reference: txHash }
  expect(receipt(told)).toMatchObject({ name: 'Payment-Receipt', status: 'success', ...facts })
})

test.each([{}, { challengeId: '', method: 7, network: 'solana:mainnet' }])(
  'where Purser says nothing of use (%j) the receipt names what was signed',
  (told: Record<string, unknown>) => {
    expect(receipt(told)).toMatchObject({ method: 'evm', chainId: 84532 })
    expect(receipt(told).challengeId).toMatch(/^challenge-\d+$/)
  },
)
