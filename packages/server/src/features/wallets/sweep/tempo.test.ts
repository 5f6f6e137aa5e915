import { type Address, bytesToHex, type Hex, keccak256, utf8 } from '@purser/protocol'
import { expect, test } from 'vitest'
import type { Log, Receipt } from '../../../chain/port.ts'
import { faultOf, fittingOf } from './tempo.ts'

const token: Address = '0x20C0000000000000000000000000000000000001'
const child: Address = `0x${'c1'.repeat(20)}`
const master: Address = `0x${'a1'.repeat(20)}`
/** Tempo's guard of receive policies, which keeps what a recipient refuses. */
const guard: Address = '0xB10C000000000000000000000000000000000000'
const transfer = { asset: token, fromAddress: child, toAddress: master, rawAmount: 7n }

function moved(to: Address, value: bigint, of: Address = token): Log {
  const account = (address: Address): Hex => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
  const topics = [bytesToHex(keccak256(utf8('Transfer(address,address,uint256)'))), account(child), account(to)]
  return { address: of, topics, data: `0x${value.toString(16).padStart(64, '0')}` }
}

function receiptOf(status: Receipt['status'], ...logs: readonly Log[]): Pick<Receipt, 'status' | 'logs'> {
  return { status, logs }
}

test('a child is swept if its token logs that exactly this amount went to its master', () => {
  expect(faultOf(transfer, receiptOf('success', moved(guard, 1n), moved(master, 7n)))).toBeUndefined()
})

test.each([
  ['a call that reverted', receiptOf('reverted', moved(master, 7n)), 'transfer-failed'],
  ['a missing token log', receiptOf('success'), 'not-received'],
  ['another amount', receiptOf('success', moved(master, 6n)), 'not-received'],
  ['money that a policy kept', receiptOf('success', moved(guard, 7n)), 'not-received'],
  ['another token', receiptOf('success', moved(master, 7n, guard)), 'not-received'],
])('a child is not swept by %s', (_, receipt, reason) => {
  expect(faultOf(transfer, receipt)).toBe(reason)
})

test('an owner with many sweeps leaves half of the places, of which another takes some at once', () => {
  const of = (shareOwner: string, count: number) => Array.from({ length: count }, () => ({ shareOwner }))
  const ownersOf = (sent: Record<string, number>) =>
    fittingOf([...of('many', 200), ...of('few', 2)], new Map(Object.entries(sent))).map(({ shareOwner }) => shareOwner)
  expect(ownersOf({}).slice(0, 4)).toEqual(['many', 'few', 'many', 'few'])
  expect(ownersOf({}).filter((owner) => owner === 'many')).toHaveLength(99)
  expect(ownersOf({ many: 100 })).toEqual(['few', 'few'])
})
