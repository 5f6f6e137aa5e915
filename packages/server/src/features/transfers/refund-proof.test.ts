import { type Address, bytesToHex, type Hex, keccak256, networkByName, utf8 } from '@purser/protocol'
import { expect, test } from 'vitest'
import { deliveredTo, isRefundOf } from './refund-proof.ts'

test.each<[string, bigint, { own: bigint; taken?: bigint[]; failing?: bigint[] }, boolean]>([
  ['the whole amount', 50n, { own: 50n }, true],
  ['the amount less two percent', 49n, { own: 50n }, true],
  ['less than that', 48n, { own: 50n }, false],
  ['the larger refund of another transfer', 50n, { own: 5n, failing: [50n] }, false],
  ['the refund of several transfers in one payment', 155n, { own: 5n, failing: [50n, 100n] }, true],
  ['the rest of a refund that another transfer has taken in part', 55n, { own: 5n, taken: [50n] }, true],
  ['a refund that another transfer has taken whole', 50n, { own: 50n, taken: [50n] }, false],
  ['more than all of them sent', 200n, { own: 5n, failing: [50n, 100n] }, false],
])('a payment of %s is a refund of a transfer or not', (_, rawBack, { own, taken = [], failing = [] }, expected) => {
  expect(isRefundOf(rawBack, { own, taken, failing })).toBe(expected)
})

const token: Address = '0x20C0000000000000000000000000000000000000'
const virtual: Address = `0x11223344${'fd'.repeat(10)}000000000001`
const master: Address = `0x${'a1'.repeat(20)}`
const pool: Address = `0x${'b2'.repeat(20)}`

function moved(from: Address, to: Address, value: bigint, of: Address = token) {
  const account = (address: Address): Hex => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
  const topics = [bytesToHex(keccak256(utf8('Transfer(address,address,uint256)'))), account(from), account(to)]
  return { address: of, topics, data: `0x${value.toString(16).padStart(64, '0')}` as const }
}

function on(name: string, account: Address) {
  const network = networkByName(name)
  if (network === undefined) throw new Error('no such network')
  return { network, token, account }
}

test('incoming amounts count, less outgoing ones and without other tokens', () => {
  const logs = [moved(pool, master, 10n), moved(master, pool, 3n), moved(pool, master, 99n, pool)]
  expect(deliveredTo(on('tempo', master), logs)).toBe(7n)
})

test('a swap to a virtual address of Tempo counts as received, though its token is forwarded to the account behind it', () => {
  const logs = [moved(pool, virtual, 10n), moved(virtual, master, 10n)]
  expect(deliveredTo(on('tempo', virtual), logs)).toBe(10n)
  expect(deliveredTo(on('base', virtual), logs), 'on other chains such an address is an ordinary address').toBe(0n)
})
