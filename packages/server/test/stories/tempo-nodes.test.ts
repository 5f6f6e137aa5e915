import { type DevChain, fundToken, startChain, tokenBalance } from '@purser/devnet'
import { type MppChallenge, topics } from '@purser/protocol'
import { type Address, type Hex, keccak256, pad, toHex } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type Lie, type LyingNode, startLyingNode } from '../lying-node.ts'
import {
  aTempoPayer,
  aTempoWallet,
  memoFor,
  nodeCall,
  offerOf,
  pathUsd,
  push,
  type TempoPayer,
} from '../tempo-payer.ts'
import { type Answer, aWorld, type Org, request, type World } from '../world.ts'

// Three processes of one deployment: one has a lying and an honest node, one the liar alone, one the liar last of three.
let chain: DevChain
let liar: LyingNode
let second: LyingNode
let world: World
let lone: string
let trio: string
let org: Org
let payer: TempoPayer
let wallet: { id: string; address: Address }

const resource = 'https://api.example.com/weather'
const price = 10_000n
const alphaUsd = (): Address => chain.tokens.AlphaUSD ?? '0x'
const Hexadecimal = z.templateLiteral(['0x', z.string()])

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  liar = await startLyingNode(chain.rpcUrl)
  second = await startLyingNode(chain.rpcUrl)
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'tempo-moderato': [liar.url, second.url] },
    config: { settleWaitMs: 1_500 },
  })
  lone = (await world.another({ role: 'api', rpcUrls: { 'tempo-moderato': [liar.url] } })).base
  const three = [second.url, chain.rpcUrl, liar.url]
  trio = (await world.another({ role: 'api', rpcUrls: { 'tempo-moderato': three } })).base
  org = await world.organisation()
  wallet = await aTempoWallet(world, org)
  payer = await aTempoPayer(chain)
})
afterEach(() => liar.tellTheTruth())
afterAll(async () => {
  await world?.stop()
  await liar?.stop()
  await second?.stop()
  await chain?.stop()
})

async function challenge(): Promise<MppChallenge> {
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  return offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested))
}

function verify(credential: string, base = world.base): Promise<Answer> {
  const body = { protocol: 'mpp', credential, price: '0.01', walletId: wallet.id, resource }
  return request(base, { key: org.testKey, method: 'POST', path: '/payments/verify', body })
}

const received = () => tokenBalance(chain, 'pathUSD', wallet.address)

async function countPayments(): Promise<bigint> {
  const row = z.object({ count: z.bigint() })
  return (await world.database.db.one(row, sql`select count(*) as count from payments`)).count
}

async function newestBlock(): Promise<Record<string, unknown>> {
  return Object(await nodeCall(chain, 'eth_getBlockByNumber', ['latest', false]))
}

/** A receipt of the challenge's transfer, in an existing block. */
function receiptFor(offer: MppChallenge, hash: Hex, block: Record<string, unknown>) {
  const log = {
    address: pathUsd,
    topics: [topics.transferWithMemo, pad(payer.account.address), pad(wallet.address), memoFor(offer)],
    data: pad(toHex(price)),
  }
  return {
    transactionHash: hash,
    blockNumber: block.number,
    blockHash: block.hash,
    status: '0x1',
    gasUsed: '0x5208',
    effectiveGasPrice: '0x1',
    logs: [log],
  }
}

/** The node invents a receipt and, with `inBlock`, its transaction in the block. */
async function invent(offer: MppChallenge, hash: Hex, { inBlock }: { readonly inBlock: boolean }): Promise<void> {
  const block = await newestBlock()
  const receipt = receiptFor(offer, hash, block)
  liar.lie('eth_getTransactionReceipt', ({ params, truth }) => (params[0] === hash ? { result: receipt } : truth()))
  if (inBlock)
    liar.lie('eth_getBlockByNumber', async ({ truth }) => {
      const reply = await truth()
      const shown = 'result' in reply ? Object(reply.result) : {}
      return shown.number === block.number ? { result: { ...shown, transactions: [hash] } } : reply
    })
}

test('a pushed hash that only one of two nodes has is not valid: the answer is 503 and nothing is recorded', async () => {
  const offer = await challenge()
  const hash: Hex = `0x${'ab'.repeat(32)}`
  const before = await countPayments()
  for (const inBlock of [false, true]) {
    await invent(offer, hash, { inBlock })
    const answer = await verify(push(offer, hash, payer))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await countPayments()).toBe(before)
  }
  liar.tellTheTruth()
  expect((await verify(push(offer, hash, payer))).status).toBe(402)
  expect((await verify(push(offer, await payer.broadcast(offer), payer))).status).toBe(200)
})

test('a pushed hash about which two nodes disagree is retried with the same credential, and pays once', async () => {
  const offer = await challenge()
  const credential = push(offer, await payer.broadcast(offer), payer)
  const before = await countPayments()
  for (const changes of [{ status: '0x0', logs: [] }, { logs: [] }, { blockHash: `0x${'6'.repeat(64)}` }]) {
    liar.lie('eth_getTransactionReceipt', async ({ truth }) => {
      const reply = await truth()
      return 'result' in reply && reply.result !== null ? { result: { ...Object(reply.result), ...changes } } : reply
    })
    expect((await verify(credential)).status).toBe(503)
  }
  expect(await countPayments()).toBe(before)
  liar.tellTheTruth()
  expect((await verify(credential)).status).toBe(200)
  expect((await verify(credential)).status).toBe(409)
})

test('a receipt without a transaction in its block is rejected where one node is configured', async () => {
  const offer = await challenge()
  const hash: Hex = `0x${'cd'.repeat(32)}`
  const before = await countPayments()
  await invent(offer, hash, { inBlock: false })
  expect((await verify(push(offer, hash, payer), lone)).status).toBe(503)
  expect(await countPayments()).toBe(before)
})

test('a signed transaction whose receipt one of two nodes invents stays pending until its money has moved', async () => {
  const offer = await challenge()
  const before = await received()
  const kept: Hex[] = []
  liar.lie('eth_sendRawTransactionSync', () => ({ error: { code: -32_601, message: 'method not found' } }))
  second.lie('eth_sendRawTransaction', ({ params }) => ({ result: keccak256(Hexadecimal.parse(params[0])) }))
  liar.lie('eth_sendRawTransaction', async ({ params }) => {
    const hash = keccak256(Hexadecimal.parse(params[0]))
    if (kept.length === 0) await invent(offer, hash, { inBlock: true })
    kept.push(hash)
    return { result: hash }
  })
  const answer = await verify(await payer.pull(offer))
  expect([answer.status, answer.body.settlementPending]).toEqual([200, true])
  expect([await received(), kept.length > 0]).toEqual([before, true])
  liar.tellTheTruth()
  second.tellTheTruth()
  const status = async () =>
    (await world.call(org.testKey, 'GET', `/payments/${String(answer.body.paymentId)}`)).body.status
  await expect.poll(status, { timeout: 75_000, interval: 100 }).toBe('settled')
  expect((await received()) - before).toBe(price)
})

test('a transaction that only one of two or three nodes would run is refused, and not recorded', async () => {
  const isTrial = ([call]: readonly unknown[]) => Object(call).nonceKey !== undefined
  second.lie('eth_call', ({ params, truth }) => (isTrial(params) ? { result: pad('0x1') } : truth()))
  const before = await countPayments()
  for (const base of [world.base, trio]) {
    const answer = await verify(await payer.pull(await challenge(), { gas: 20_000n }), base)
    expect([answer.status, answer.body.message]).toEqual([402, expect.stringContaining('the gas limit is too low')])
  }
  second.tellTheTruth()
  expect(await countPayments()).toBe(before)
})

type Shown = Record<string, unknown>

/** Changes of a receipt: another block, the other status, and changed fields of its logs. */
const otherBlock = (receipt: Shown): Shown => ({ ...receipt, blockHash: `0x${'6'.repeat(64)}` })
const otherStatus = (receipt: Shown): Shown => ({ ...receipt, status: receipt.status === '0x1' ? '0x0' : '0x1' })
const logsWith =
  (change: Shown) =>
  (receipt: Shown): Shown => ({
    ...receipt,
    logs: z
      .array(z.looseObject({}))
      .parse(receipt.logs)
      .map((log) => ({ ...log, ...change })),
  })

function lieAbout(change: (receipt: Shown) => Shown): void {
  liar.lie('eth_getTransactionReceipt', async ({ truth }) => {
    const reply = await truth()
    return 'result' in reply && reply.result !== null ? { result: change(Object(reply.result)) } : reply
  })
}

const unpaid = [
  ['another token', () => ({ token: alphaUsd() }), logsWith({ address: pathUsd })],
  ['a lower amount', () => ({ amount: 1n }), logsWith({ data: pad(toHex(price)) })],
  ['a reverted transfer', () => ({ amount: 10n ** 15n }), otherStatus],
] as const

test.each(unpaid)(
  'a push of %s is never valid, although one of two or three nodes shows the money',
  async (_name, changes, lie) => {
    const offer = await challenge()
    const credential = push(offer, await payer.broadcast(offer, changes()), payer)
    const before = await countPayments()
    lieAbout(lie)
    for (const at of [world.base, trio]) expect([402, 503]).toContain((await verify(credential, at)).status)
    liar.tellTheTruth()
    expect((await verify(credential, trio)).status).toBe(402)
    expect(await countPayments()).toBe(before)
  },
)

test('the memo of another challenge that one of two or three nodes shows credits no second challenge', async () => {
  const [paid, unpaidOffer] = [await challenge(), await challenge()]
  const hash = await payer.broadcast(paid)
  const before = await countPayments()
  const memo = [topics.transferWithMemo, pad(payer.account.address), pad(wallet.address), memoFor(unpaidOffer)]
  lieAbout(logsWith({ topics: memo }))
  for (const at of [world.base, trio])
    expect([402, 503]).toContain((await verify(push(unpaidOffer, hash, payer), at)).status)
  expect(await countPayments()).toBe(before)
  liar.tellTheTruth()
  expect((await verify(push(unpaidOffer, hash, payer), trio)).status).toBe(402)
  expect((await verify(push(paid, hash, payer), trio)).status).toBe(200)
  expect((await verify(push(unpaidOffer, hash, payer))).status).toBe(409)
  expect(await countPayments()).toBe(before + 1n)
})

test('a push is credited once with what it moved, although one of three nodes lies about its block, status, token or amount', async () => {
  const lies = [otherBlock, otherStatus, logsWith({ address: alphaUsd() }), logsWith({ data: pad(toHex(price * 9n)) })]
  for (const lie of lies) {
    const offer = await challenge()
    const credential = push(offer, await payer.broadcast(offer), payer)
    lieAbout(lie)
    const first = await verify(credential, trio)
    expect([first.status, first.body.amount]).toEqual([200, '0.01'])
    expect((await verify(credential, trio)).status).toBe(409)
    liar.tellTheTruth()
  }
})

test('an invented hash costs few requests to two nodes, and fewer for a challenge that is used', async () => {
  const hash: Hex = `0x${'ef'.repeat(32)}`
  let requested = 0
  // The service reads receipts of other payments meanwhile, which do not count.
  const count: Lie = ({ params, truth }) => {
    if (params[0] === hash) requested += 1
    return truth()
  }
  for (const node of [liar, second]) node.lie('eth_getTransactionReceipt', count)
  // It waits as long as a service does that waits for settlements. A node that a busy machine delays is not slow for it: a request to the next one would count.
  const { base: patient } = await world.another({ role: 'api', settleWaitMs: 6_000, rpcTimeoutMs: 60_000 })
  const costOf = async (offer: MppChallenge): Promise<number> => {
    requested = 0
    const answer = await verify(push(offer, hash, payer), patient)
    expect([answer.status, answer.body.message]).toEqual([402, expect.stringContaining('on chain yet')])
    return requested
  }
  try {
    const used = await challenge()
    // One read each 200 ms would be 29.
    expect(await costOf(used)).toBeLessThanOrEqual(10)
    expect((await verify(push(used, await payer.broadcast(used), payer))).status).toBe(200)
    expect(await costOf(used), 'of one node, and then of both').toBeLessThanOrEqual(3)
  } finally {
    for (const node of [liar, second]) node.tellTheTruth()
  }
})

/** Lengthens a receipt as if the transaction had written thousands of logs besides. */
function lengthening(hash: Hex, onRequest: () => void): Lie {
  return async ({ params, truth }) => {
    const answer = await truth()
    if (params[0] !== hash || !('result' in answer) || typeof answer.result !== 'object') return answer
    onRequest()
    return { result: { ...answer.result, junk: 'x'.repeat(600_000) } }
  }
}

test('a long receipt that pays is read from one of three nodes, and confirmed by all', async () => {
  const three = await Promise.all([1, 2, 3].map(() => startLyingNode(chain.rpcUrl)))
  try {
    const rpcUrls = { 'tempo-moderato': three.map(({ url }) => url) }
    const { base } = await world.another({ role: 'api', rpcUrls, rpcTimeoutMs: 60_000 })
    const offer = await challenge()
    const hash = await payer.broadcast(offer)
    let requested = 0
    const lie = lengthening(hash, () => {
      requested += 1
    })
    for (const node of three) node.lie('eth_getTransactionReceipt', lie)
    expect((await verify(push(offer, hash, payer), base)).status).toBe(200)
    expect(requested, 'half a MiB of one, the whole from that one, and one from each').toBeLessThanOrEqual(5)
  } finally {
    await Promise.all(three.map((node) => node.stop()))
  }
})

test('the hash of a long transaction that pays nothing costs no long receipt, and one that pays is accepted', async () => {
  // A node of this process alone: others read receipts of deposits meanwhile.
  const node = await startLyingNode(chain.rpcUrl)
  try {
    const { base } = await world.another({ role: 'api', rpcUrls: { 'tempo-moderato': [node.url] } })
    const [offer, other] = [await challenge(), await challenge()]
    const hash = await payer.broadcast(offer)
    let requested = 0
    node.lie(
      'eth_getTransactionReceipt',
      lengthening(hash, () => {
        requested += 1
      }),
    )
    for (let shown = 0; shown < 3; shown += 1) {
      const refused = await verify(push(other, hash, payer), base)
      expect([refused.status, refused.body.message]).toEqual([402, 'the memo is not bound to this challenge'])
    }
    expect(requested, 'the first half MiB of one').toBe(1)
    expect((await verify(push(offer, hash, payer), base)).status).toBe(200)
  } finally {
    await node.stop()
  }
})

test('a receipt that one of two nodes invents for an open payment does not let its payer sign more than they have', async () => {
  const poor = await aTempoPayer(chain, { funded: false })
  await fundToken(chain, 'pathUSD', poor.account.address, 1_500_000n)
  const requested = { walletId: wallet.id, resource, price: '1' }
  const signed = async () => {
    const offer = offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested))
    return { offer, credential: await poor.pull(offer) }
  }
  const [first, next] = [await signed(), await signed()]
  const sent: Hex[] = []
  for (const node of [liar, second]) {
    node.lie('eth_sendRawTransactionSync', () => ({ error: { code: -32_601, message: 'method not found' } }))
    node.lie('eth_sendRawTransaction', ({ params }) => {
      const hash = keccak256(Hexadecimal.parse(params[0]))
      sent.push(hash)
      return { result: hash }
    })
  }
  try {
    const pay = (credential: string) =>
      world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'mpp', credential, ...requested })
    expect((await pay(first.credential)).body.settlementPending).toBe(true)
    await invent(first.offer, sent[0] ?? '0x', { inBlock: true })
    const before = await countPayments()
    expect((await pay(next.credential)).status).toBe(402)
    expect(await countPayments()).toBe(before)
  } finally {
    second.tellTheTruth()
  }
}, 60_000)
