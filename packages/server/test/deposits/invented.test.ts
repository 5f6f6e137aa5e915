import { type Address, bytesToHex, hexToBytes, type Network, networkByName, topics } from '@purser/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fail } from '../../src/chain/errors.ts'
import { amountsOnHold } from '../../src/features/wallets/screening/deposit-store.ts'
import { listed } from '../hold-stage.ts'
import { aFakeChain, aTx, type FakeChain, type Lies } from './fake-chain.ts'
import { aFollowStage, anAddress, begin, type FollowReads, type FollowStage, transfer } from './follow-stage.ts'

/** Deposits are final long after the second reading, as on main networks. */
const finalAfter = 60

let stage: FollowStage
let chain: FakeChain

beforeEach(async () => {
  const network: Network | undefined = networkByName('base-sepolia')
  if (network === undefined) throw new Error('no network')
  stage = await aFollowStage({ ...network, depositFinality: { depth: finalAfter } })
  chain = aFakeChain(stage.network, Math.floor(Date.now() / 1_000) - 600)
  chain.mineMany(40)
})
afterEach(() => stage.stop())

const huge = 10n ** 30n
const topicOf = (address: Address) => `0x${'0'.repeat(24)}${address.slice(2).toLowerCase()}`
const quantity = (value: number) => `0x${value.toString(16)}`

/** A node that adds a large transfer to each block: in a transaction that was never sent, or in the one that `hashIn` returns. */
function inventor(
  from: Address,
  to: Address,
  hashIn = (number: number): string | undefined => `0x${'5'.repeat(60)}${number.toString(16).padStart(4, '0')}`,
): Lies {
  const blocksOf = ({ blockHash, fromBlock, toBlock }: Record<string, unknown>) =>
    chain.blocks.filter(({ number, hash }) =>
      blockHash === undefined ? number >= Number(fromBlock) && number <= Number(toBlock) : hash === blockHash,
    )
  return {
    logs: (real, filter) => [
      ...real,
      ...blocksOf(filter).flatMap(({ number, hash: blockHash }) => {
        const transactionHash = hashIn(number)
        if (transactionHash === undefined) return []
        return {
          address: stage.usdc.toLowerCase(),
          topics: [topics.transfer, topicOf(from), topicOf(to)],
          data: bytesToHex(hexToBytes(`0x${huge.toString(16).padStart(64, '0')}`)),
          blockNumber: quantity(number),
          blockHash,
          transactionHash,
          logIndex: '0x63',
          removed: false,
        }
      }),
    ],
  }
}

/** Three nodes, of which the one at this place lies. */
const threeWith = (place: number, lies: Lies) => [0, 1, 2].map((one) => chain.node(one === place ? lies : {}))

async function onHoldAt(walletId: string) {
  const place = { tenant: stage.tenant, walletId, network: stage.network.name, token: stage.usdc }
  const [amount] = await amountsOnHold(stage.database.db, [{ ...place, upTo: BigInt(chain.height) }])
  return { frozen: amount?.frozen, unscreened: amount?.unscreened, notFinal: amount?.notFinal }
}

const nothing = { frozen: 0n, unscreened: 0n, notFinal: 0n }
const statuses = async () => (await stage.rows()).map(({ status, rawAmount }) => `${status} ${rawAmount}`)

test.each([
  ...[0, 1, 2].map((place) => [place, 'listed'] as const),
  ...[0, 1, 2].map((place) => [place, 'honest'] as const),
])(
  'node %i of three that invents a transfer from a %s sender in each block holds no money, and a true deposit is booked at once',
  async (place, kind) => {
    const [wallet, from, bad] = [await stage.wallet({ prefix: 'mwt' }), anAddress(), anAddress()]
    stage.deps.screening.setResult(bad, listed)
    if (kind === 'listed') stage.deps.screening.setResult(from, listed)
    await begin(stage, chain.node())
    const follow = await stage.follower(threeWith(place, inventor(from, wallet.address)))
    for (let block = 0; block < 25; block++) {
      chain.mine()
      await follow()
      expect(await onHoldAt(wallet.id)).toEqual(nothing)
    }
    expect(await stage.rows()).toEqual([])
    chain.mine([aTx(transfer(stage.usdc, wallet.address, 7n, bad))])
    for (let block = 0; block < 25; block++) {
      await follow()
      expect(await onHoldAt(wallet.id)).toEqual({ ...nothing, frozen: 7n })
      chain.mine()
    }
    chain.mineMany(finalAfter)
    await follow()
    expect(await statuses()).toEqual(['confirmed 7'])
    expect(await onHoldAt(wallet.id)).toEqual({ ...nothing, frozen: 7n })
  },
)

test.each([0, 1, 2])(
  'node %i of three that invents the block before the head, with a transfer, holds no money and delays no deposit',
  async (place) => {
    const wallet = await stage.wallet({ prefix: 'mwt' })
    await begin(stage, chain.node())
    const falseHash = (number: number): string => `0x${'7'.repeat(60)}${number.toString(16).padStart(4, '0')}`
    const isBefore = (block: object, distance: number) =>
      'number' in block && Number(block.number) === chain.height - distance
    const inventing = inventor(anAddress(), wallet.address, (number) =>
      number === chain.height - 1 ? `0x${'5'.repeat(64)}` : undefined,
    )
    const lies: Lies = {
      block(block) {
        if (block !== null && isBefore(block, 0)) return { ...block, parentHash: falseHash(chain.height - 1) }
        if (block !== null && isBefore(block, 1))
          return { ...block, hash: falseHash(chain.height - 1), logsBloom: undefined }
        return block
      },
      logs(real, filter) {
        const shown = inventing.logs?.(real, filter)
        if (!Array.isArray(shown)) return shown
        const withFalseHash = (log: Record<string, unknown>) =>
          Number(log.blockNumber) === chain.height - 1 ? { ...log, blockHash: falseHash(chain.height - 1) } : log
        return shown.map(withFalseHash)
      },
    }
    const follow = await stage.follower(threeWith(place, lies))
    for (let pair = 0; pair < 15; pair++) {
      chain.mineMany(2)
      await follow()
      expect(await onHoldAt(wallet.id)).toEqual(nothing)
    }
    expect(await stage.rows()).toEqual([])
    chain.mine([aTx(transfer(stage.usdc, wallet.address, 7n))])
    chain.mine()
    await follow()
    expect(await statuses()).toEqual(['pending 7'])
  },
)

test('an invented block of one node is not booked while only one other node can be read', async () => {
  const wallet = await stage.wallet({ prefix: 'mwt' })
  await begin(stage, chain.node())
  const paidIn = chain.height + 1
  const falseHash = `0x${'7'.repeat(64)}`
  const inventing = inventor(anAddress(), wallet.address, (number) =>
    number === paidIn ? `0x${'5'.repeat(64)}` : undefined,
  )
  const lies: Lies = {
    block(block) {
      if (Number(block?.number) === paidIn + 1) return { ...block, parentHash: falseHash }
      return Number(block?.number) === paidIn ? { ...block, hash: falseHash, logsBloom: undefined } : block
    },
    logs(real, filter) {
      const shown = inventing.logs?.(real, filter)
      return Array.isArray(shown) ? shown.map((log) => ({ ...log, blockHash: falseHash })) : shown
    },
  }
  const busy: Lies = { refusal: () => 'too busy' }
  const follow = await stage.follower([chain.node(lies), chain.node(), chain.node(busy)])
  chain.mineMany(2)
  await expect(follow()).rejects.toMatchObject({ code: 'chain-unavailable' })
  expect(await stage.rows()).toEqual([])
  delete busy.refusal
  await follow()
  expect(await stage.rows()).toEqual([])
})

/** Votes of which each takes six seconds, counted, and whether other nodes can be read. */
function slowVotes() {
  const state = { nowMs: 0, votes: 0, verdict: 'no' as 'no' | 'undecided', isReadable: true }
  const unreadable = { transfers: async () => Promise.reject(fail('chain-unavailable')) }
  const wrap = (reads: FollowReads): FollowReads => ({
    ...reads,
    eachNode: () => (state.isReadable ? reads.eachNode() : [unreadable, unreadable, unreadable]),
    async areInvented(claims) {
      if (claims.length === 0) return []
      state.votes += 1
      state.nowMs += 6_000
      return claims.map(() => state.verdict)
    },
  })
  return { state, own: { wrap, nowMs: () => state.nowMs } }
}

test('votes on the transfers of a range end after ten seconds, and several nodes are read', async () => {
  const wallet = await stage.wallet({ prefix: 'mwt' })
  const { state, own } = slowVotes()
  await begin(stage, chain.node())
  const follow = await stage.follower([chain.node(), chain.node(), chain.node()], own)
  chain.mine(Array.from({ length: 350 }, () => aTx(transfer(stage.usdc, wallet.address, 7n))))
  await follow()
  expect(state.votes).toBe(2)
  expect(await stage.rows()).toHaveLength(350)
})

test('while the nodes are undecided, a range costs one vote when it is first read, and votes of the second reading end after ten seconds', async () => {
  const wallet = await stage.wallet({ prefix: 'mwt' })
  const { state, own } = slowVotes()
  Object.assign(state, { verdict: 'undecided', isReadable: false })
  await begin(stage, chain.node())
  const follow = await stage.follower([chain.node(), chain.node(), chain.node()], own)
  chain.mine(Array.from({ length: 350 }, () => aTx(transfer(stage.usdc, wallet.address, 7n))))
  await follow()
  expect(state.votes).toBe(1)
  expect(await stage.rows()).toHaveLength(350)
  state.isReadable = true
  chain.mineMany(30)
  await follow()
  expect(state.votes).toBe(3)
})

test('the transfers of one transaction cost one vote', async () => {
  const wallet = await stage.wallet({ prefix: 'mwt' })
  const { state, own } = slowVotes()
  await begin(stage, chain.node())
  const follow = await stage.follower([chain.node(), chain.node(), chain.node()], own)
  chain.mine([aTx(...Array.from({ length: 150 }, () => transfer(stage.usdc, wallet.address, 7n)))])
  await follow()
  expect(state.votes).toBe(1)
})

test('a deposit of which the first node reports another amount is booked at once as the others have it', async () => {
  const wallet = await stage.wallet({ prefix: 'mwt' })
  await begin(stage, chain.node())
  const data = `0x${'f'.repeat(64)}`
  const follow = await stage.follower(threeWith(0, { logs: (logs) => logs.map((log) => ({ ...log, data })) }))
  chain.mine([aTx(transfer(stage.usdc, wallet.address, 7n))])
  await follow()
  expect(await statuses()).toEqual(['pending 7'])
})

test('a transfer that was booked while the nodes were undecided is withdrawn with the second reading, and the true one stays', async () => {
  const wallet = await stage.wallet({ prefix: 'mwt' })
  await begin(stage, chain.node())
  const real = aTx(transfer(stage.usdc, wallet.address, 7n))
  const paidIn = chain.height + 1
  // The other nodes have the block before its receipts and logs.
  const others: Lies = { receipt: () => null, refusal: () => 'too busy' }
  const lies = inventor(anAddress(), wallet.address, (number) => (number === paidIn ? real.hash : undefined))
  const follow = await stage.follower([chain.node(lies), chain.node(others), chain.node(others)])
  chain.mine([real])
  await follow()
  expect((await statuses()).sort()).toEqual([`pending ${huge}`, 'pending 7'])
  delete others.receipt
  delete others.refusal
  for (let block = 0; block < 25; block++) {
    chain.mine()
    await follow()
  }
  expect((await statuses()).sort()).toEqual(['pending 7', `withdrawn ${huge}`])
  expect(await onHoldAt(wallet.id)).toEqual({ ...nothing, notFinal: 7n })
})

test.each([0, 1, 2])(
  'while node %i of three hides and denies a deposit of a listed sender, the money is frozen from its booking on',
  async (place) => {
    const [wallet, bad] = [await stage.wallet({ prefix: 'mwt' }), anAddress()]
    stage.deps.screening.setResult(bad, listed)
    await begin(stage, chain.node())
    const hides: Lies = { logs: () => [], receipt: (receipt) => receipt && { ...receipt, logs: [] } }
    const follow = await stage.follower(threeWith(place, hides))
    const withoutBloom: Lies['block'] = (block) => block && { ...block, logsBloom: undefined }
    hides.block = withoutBloom
    chain.mine([aTx(transfer(stage.usdc, wallet.address, 7n, bad))])
    await follow()
    // What the first node hides is found by the second reading.
    if (place === 0) {
      chain.mineMany(25)
      await follow()
    }
    for (let block = 0; block < finalAfter + 5; block++) {
      expect(await onHoldAt(wallet.id)).toEqual({ ...nothing, frozen: 7n })
      chain.mine()
      await follow()
    }
    expect(await statuses()).toEqual(['confirmed 7'])
  },
)

test('only the first reading of a wanted transfer costs a vote', async () => {
  const wallet = await stage.wallet({ prefix: 'mwt' })
  const voted: number[] = []
  const follow = await stage.follower([chain.node(), chain.node(), chain.node()], {
    wrap: (reads) => ({
      ...reads,
      areInvented(claims) {
        voted.push(claims.length)
        return reads.areInvented(claims)
      },
    }),
  })
  await follow()
  chain.mine([aTx(transfer(stage.usdc, anAddress()))])
  chain.mineMany(30)
  await follow()
  expect(voted).toEqual([])
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  await follow()
  chain.mineMany(30)
  await follow()
  expect(voted, 'the second reading shows it at two nodes').toEqual([1])
})
