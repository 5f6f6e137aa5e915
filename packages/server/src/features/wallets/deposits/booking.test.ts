import { type Address, checksumAddress, type Network, requireNetwork, zeroAddress } from '@purser/protocol'
import { expect, test } from 'vitest'
import type { TokenTransfer } from '../../../chain/blocks/port.ts'
import { instantOf } from '../../../platform/clock.ts'
import { bookingsOf } from './booking.ts'
import type { WatchRow } from './watch-store.ts'

const base = requireNetwork('base-sepolia')
const tempo = requireNetwork('tempo-moderato')
const tokenOf = (network: Network): Address => `0x${network.tokens[0]?.address.slice(2).toLowerCase()}`

const blockSeconds = 1_800_000_000
const account = (digit: string): Address => `0x${digit.repeat(40)}`
const [alice, bob, carol] = [account('a'), account('b'), account('c')]
const feeManager: Address = '0xfeec000000000000000000000000000000000000'
const guard: Address = '0xb10c000000000000000000000000000000000000'
const virtual: Address = `0x11223344${'fd'.repeat(10)}000000000001`

function transfer(changes: Partial<TokenTransfer>): TokenTransfer {
  return {
    token: tokenOf(base),
    from: alice,
    to: bob,
    rawAmount: 5n,
    txHash: '0x01',
    logIndex: 0,
    blockNumber: 7n,
    blockHash: '0x07',
    ...changes,
  }
}

function watch(walletId: string, address: Address, changes: Partial<WatchRow> = {}): WatchRow {
  return {
    walletId,
    network: 'base-sepolia',
    chain: 'base',
    organisationId: 'org_1',
    environment: 'test',
    address,
    tokens: ['USDC'],
    since: instantOf(blockSeconds * 1_000 - 3_600_000),
    until: null,
    untilBlock: null,
    isUntilNewest: false,
    ...changes,
  }
}

function onTempo(walletId: string, address: Address, changes: Partial<WatchRow> = {}): WatchRow {
  return watch(walletId, address, { network: 'tempo-moderato', chain: 'tempo', tokens: ['pathUSD'], ...changes })
}

function booked(
  network: Network,
  transfers: readonly TokenTransfer[],
  watches: readonly WatchRow[],
  countsEarlier = false,
) {
  const timeOf = (): bigint => BigInt(blockSeconds)
  const bookings = bookingsOf({ network, transfers, watches, timeOf, countsEarlier })
  return bookings.map(({ walletId, direction, kind }) => [walletId, direction, kind])
}

test('a transfer is booked for every wallet at both of its accounts, of every organisation', () => {
  const watches = [watch('byw_1', bob), watch('byw_2', bob, { organisationId: 'org_2' }), watch('byw_3', alice)]
  expect(booked(base, [transfer({})], watches)).toEqual([
    ['byw_1', 'in', 'transfer'],
    ['byw_3', 'out', 'transfer'],
    ['byw_2', 'in', 'transfer'],
  ])
})

test('an amount of zero, an unknown token and an unwatched address are not booked', () => {
  expect(booked(base, [transfer({ rawAmount: 0n }), transfer({ token: carol })], [watch('byw_1', bob)])).toEqual([])
  expect(booked(base, [transfer({ to: carol })], [watch('byw_1', bob)])).toEqual([])
})

test('between an organisation’s own managed wallets both sides are internal; to its own BYO wallet it is a deposit', () => {
  const watches = [watch('mwt_1', bob), watch('cad_1', alice), watch('byw_1', carol)]
  expect(booked(base, [transfer({})], watches)).toEqual([
    ['mwt_1', 'in', 'internal'],
    ['cad_1', 'out', 'internal'],
  ])
  expect(booked(base, [transfer({ to: carol })], watches)).toEqual([
    ['byw_1', 'in', 'transfer'],
    ['cad_1', 'out', 'transfer'],
  ])
  const foreign = [watch('mwt_1', bob), watch('cad_1', alice, { organisationId: 'org_2' })]
  expect(booked(base, [transfer({})], foreign).map(([, , kind]) => kind)).toEqual(['transfer', 'transfer'])
  expect(booked(base, [transfer({ to: alice })], [watch('byw_1', alice)])).toEqual([
    ['byw_1', 'in', 'internal'],
    ['byw_1', 'out', 'internal'],
  ])
})

test('on another network or in another token it is a plain record, unless the tenant has a wallet for that network or token', () => {
  const elsewhere = watch('byw_1', bob, { network: 'eth-sepolia', chain: 'ethereum' })
  expect(booked(base, [transfer({})], [elsewhere])).toEqual([['byw_1', 'in', 'unsupported']])
  expect(booked(base, [transfer({})], [watch('byw_1', bob, { tokens: ['USDT'] })])).toEqual([
    ['byw_1', 'in', 'unsupported'],
  ])
  expect(booked(base, [transfer({})], [elsewhere, watch('byw_2', bob)])).toEqual([['byw_2', 'in', 'transfer']])
  expect(booked(base, [transfer({})], [elsewhere, watch('byw_2', bob, { organisationId: 'org_2' })])).toEqual([
    ['byw_1', 'in', 'unsupported'],
    ['byw_2', 'in', 'transfer'],
  ])
  expect(booked(base, [transfer({})], [elsewhere, { ...elsewhere, network: 'tempo-moderato' }])).toHaveLength(1)
})

test('a wallet of the customer at the address of a managed wallet takes no record from it: what the service can move it books, on every network', () => {
  const managed = watch('mwt_1', bob, { network: 'eth-sepolia', chain: 'ethereum' })
  const child = watch('cad_1', alice, { network: 'eth-sepolia', chain: 'ethereum' })
  const own = [watch('byw_1', bob), watch('byw_2', alice)]
  expect(booked(base, [transfer({})], [managed, ...own])).toEqual([
    ['mwt_1', 'in', 'unsupported'],
    ['byw_1', 'in', 'transfer'],
    ['byw_2', 'out', 'transfer'],
  ])
  expect(booked(base, [transfer({})], [managed, child, ...own])).toContainEqual(['mwt_1', 'in', 'internal'])
})

test('a managed wallet of several networks has its record under the chain of the network where the money moved', () => {
  const elsewhere = watch('mwt_1', bob, { network: 'eth-sepolia', chain: 'ethereum' })
  for (const watches of [
    [elsewhere, watch('mwt_1', bob)],
    [watch('mwt_1', bob), elsewhere],
  ])
    expect(booked(base, [transfer({})], watches)).toEqual([['mwt_1', 'in', 'transfer']])
})

test('a transfer counts from shortly before the wallet was watched until it no longer is; a manual rescan also finds earlier ones', () => {
  const at = (ms: number) => instantOf(blockSeconds * 1_000 + ms)
  const counted = (changes: Partial<WatchRow>, byHand = false) =>
    booked(base, [transfer({})], [watch('byw_1', bob, changes)], byHand).length
  expect(counted({ since: at(60_000) })).toBe(1)
  expect(counted({ since: at(901_000) })).toBe(0)
  expect(counted({ since: at(901_000) }, true)).toBe(1)
  expect(counted({ until: at(0) }), 'no node responded').toBe(1)
  expect(counted({ until: at(-1) })).toBe(0)
  expect(counted({ until: at(-1) }, true)).toBe(0)
  expect(counted({ until: at(-60_000), untilBlock: 7n }), 'clocks apart: the head at the end decides').toBe(1)
  expect(counted({ until: at(0), untilBlock: 6n }), 'the node of the deletion was behind').toBe(1)
  expect(counted({ until: at(-1), untilBlock: 6n })).toBe(0)
  const above = { untilBlock: 6n, isUntilNewest: true }
  expect(counted({ until: at(base.blockTimeMs - 1), ...above }), 'the block may be later than the end').toBe(0)
  expect(counted({ until: at(base.blockTimeMs), ...above }), 'our clock was ahead').toBe(1)
  expect(counted({ until: at(0), ...above, network: 'eth-sepolia' }), 'another network than the head').toBe(1)
  expect(counted({ until: at(60_000), untilBlock: 6n, network: 'eth-sepolia' }), 'another network').toBe(1)
})

test('of the wallets that an organisation registered at one address, one after the other, one has the movement: the newest that accepts the token', () => {
  const at = (ms: number) => instantOf(blockSeconds * 1_000 + ms)
  const first = watch('byw_1', bob, { since: at(-60_000), until: at(1_000) })
  const second = watch('byw_2', bob, { since: at(2_000), until: at(3_000) })
  const live = watch('byw_3', bob, { since: at(4_000) })
  for (const watches of [
    [first, second, live],
    [live, second, first],
  ])
    expect(booked(base, [transfer({})], watches)).toEqual([['byw_3', 'in', 'transfer']])
  expect(booked(base, [transfer({})], [first, second]), 'none is registered').toEqual([['byw_2', 'in', 'transfer']])
  const others = { ...live, tokens: ['USDT'] }
  expect(booked(base, [transfer({})], [first, others]), 'only the first one reports it').toEqual([
    ['byw_1', 'in', 'transfer'],
  ])
  const foreign: WatchRow = { ...first, organisationId: 'org_2' }
  expect(booked(base, [transfer({})], [foreign, live]).map(([id]) => id)).toEqual(['byw_1', 'byw_3'])
  const elsewhere = [first, live].map((one): WatchRow => ({ ...one, network: 'eth-sepolia' }))
  expect(booked(base, [transfer({})], elsewhere)).toEqual([['byw_3', 'in', 'unsupported']])
})

test('on Tempo a fee is booked as a fee, and money that the guard of receive policies keeps gets its own kind', () => {
  const pathUsd = tokenOf(tempo)
  const transfers = [
    transfer({ token: pathUsd, to: carol }),
    transfer({ token: pathUsd, to: feeManager, logIndex: 1, rawAmount: 1n }),
    transfer({ token: pathUsd, to: guard, logIndex: 2 }),
    transfer({ token: pathUsd, from: guard, to: bob, logIndex: 3 }),
  ]
  expect(booked(tempo, transfers, [onTempo('byw_1', alice), onTempo('byw_2', bob)])).toEqual([
    ['byw_1', 'out', 'transfer'],
    ['byw_1', 'out', 'fee'],
    ['byw_1', 'out', 'held'],
    ['byw_2', 'in', 'transfer'],
  ])
})

test('money through a virtual address of Tempo is one deposit: at the virtual address if that is watched, or else at its master, from its sender', () => {
  const token = tokenOf(tempo)
  const transfers = [transfer({ token, to: virtual }), transfer({ token, from: virtual, to: bob, logIndex: 1 })]
  expect(booked(tempo, transfers, [onTempo('mwt_1', bob)])).toEqual([['mwt_1', 'in', 'transfer']])
  const [atMaster] = bookingsOf({
    network: tempo,
    transfers,
    watches: [onTempo('mwt_1', bob)],
    timeOf: () => BigInt(blockSeconds),
    countsEarlier: false,
  })
  expect(atMaster?.from).toBe(checksumAddress(alice))
  expect(booked(tempo, transfers, [onTempo('mwt_1', bob), onTempo('cad_1', virtual)])).toEqual([
    ['cad_1', 'in', 'transfer'],
    ['mwt_1', 'in', 'forward'],
    ['cad_1', 'out', 'forward'],
  ])
  const foreign = [onTempo('mwt_1', bob, { organisationId: 'org_2' }), onTempo('byw_1', virtual)]
  expect(booked(tempo, transfers, foreign)).toEqual([
    ['byw_1', 'in', 'transfer'],
    ['byw_1', 'out', 'forward'],
    ['mwt_1', 'in', 'transfer'],
  ])
})

test('on other chains the same addresses are ordinary, and a mint is a deposit', () => {
  expect(booked(base, [transfer({ to: feeManager })], [watch('byw_1', alice)])).toEqual([['byw_1', 'out', 'transfer']])
  expect(booked(base, [transfer({ from: virtual })], [watch('byw_1', bob)])).toEqual([['byw_1', 'in', 'transfer']])
  expect(booked(base, [transfer({ from: zeroAddress })], [watch('byw_1', bob)])).toEqual([['byw_1', 'in', 'transfer']])
})
