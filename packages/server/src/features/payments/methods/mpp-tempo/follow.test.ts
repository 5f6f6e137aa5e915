import type { Hex } from '@purser/protocol'
import { expect, test } from 'vitest'
import type { Log, Receipt } from '../../../../chain/port.ts'
import { outcomeOf, sentenceOf } from './follow.ts'

const promised = {
  token: '0x20c0000000000000000000000000000000000000',
  from: `0x${'aa'.repeat(20)}`,
  to: `0x${'bb'.repeat(20)}`,
  amount: 10_000n,
  memo: `0x${'cc'.repeat(32)}`,
} as const
const sent = { promised, depth: 2 }
const head = { number: 10n }

const word = (value: string): Hex => `0x${value.padStart(64, '0')}`
const topic: Hex = '0x57bc7354aa85aed339e000bccffabbc529466af35f0772c8f8ee1145927de7f0'

function transfer(changes: Partial<Record<'address' | 'from' | 'to' | 'memo', Hex>> = {}, amount = 10_000n): Log {
  const { address = promised.token, from = promised.from, to = promised.to, memo = promised.memo } = changes
  const data = word(amount.toString(16))
  return { address, topics: [topic, word(from.slice(2)), word(to.slice(2)), memo], data }
}

function receipt(status: Receipt['status'], logs: readonly Log[] = [transfer()], blockNumber = 9n): Receipt {
  const hash = word('1')
  return {
    transactionHash: hash,
    blockHash: hash,
    status,
    blockNumber,
    gasUsed: 1n,
    effectiveGasPrice: 1n,
    l1Fee: 0n,
    logs,
  }
}

test('only the exact expected transfer at the confirmation depth settles a payment', () => {
  expect(outcomeOf(sent, receipt('success'), head)).toEqual({ kind: 'settled' })
  const others = [
    transfer({ address: `0x${'20'.repeat(20)}` }),
    transfer({ from: promised.to }),
    transfer({ to: promised.from }),
    transfer({ memo: word('1') }),
    transfer({}, 9_999n),
    transfer({}, 10_001n),
  ]
  expect(outcomeOf(sent, receipt('success', others), head)).toEqual({
    kind: 'failed',
    reason: 'transaction_without_transfer',
  })
})

test('a block that is not deep enough decides nothing, not even that a transaction reverted', () => {
  expect(outcomeOf(sent, receipt('success', [transfer()], 10n), head)).toEqual({ kind: 'unripe' })
  expect(outcomeOf(sent, receipt('reverted', [], 10n), head)).toEqual({ kind: 'unripe' })
  expect(outcomeOf(sent, receipt('reverted', []), head)).toEqual({ kind: 'failed', reason: 'transaction_reverted' })
})

test('every reason has a sentence, and an unknown reason is not disclosed', () => {
  expect(sentenceOf('transaction_reverted')).toBe('the transaction reverted')
  for (const reason of ['constructor', 'rpc says secret', null])
    expect(sentenceOf(reason)).toBe('the transaction failed')
})
