import { setTimeout as delay } from 'node:timers/promises'
import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { formatMppCredential, type MppChallenge, requireNetwork } from '@purser/protocol'
import { type Address, keccak256 } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import { aTempoPayer, aTempoWallet, offerOf, push, type TempoPayer } from '../tempo-payer.ts'
import { type Answer, aWorld, type Org, type World } from '../world.ts'

// Three nodes of one chain. The first one lies or is in a hurry, as a test says.
let chain: DevChain
let nodes: readonly [LyingNode, LyingNode, LyingNode]
let world: World
let org: Org
let payer: TempoPayer
let wallet: { id: string; address: Address }

const resource = 'https://api.example.com/weather'
const price = 10_000n
/** Longer than the service waits for other nodes after the answers that decide. */
const slowMs = 900

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  const start = () => startLyingNode(chain.rpcUrl)
  nodes = await Promise.all([start(), start(), start()])
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'tempo-moderato': nodes.map(({ url }) => url) },
    config: { settleWaitMs: 6_000 },
  })
  org = await world.organisation()
  wallet = await aTempoWallet(world, org)
  payer = await aTempoPayer(chain)
})
afterEach(async () => {
  for (const node of nodes) node.tellTheTruth()
  await expect.poll(upCount, { timeout: 60_000, interval: 100 }).toBe(3)
})
afterAll(async () => {
  await world?.stop()
  for (const node of nodes ?? []) await node.stop()
  await chain?.stop()
})

/** How many nodes are neither suspended nor behind. Readiness repeats an earlier result for half a second. */
const upCount = () => world.server.deps.chains.health(requireNetwork('tempo-moderato'))?.up

async function challenge(): Promise<MppChallenge> {
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  return offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested))
}

function verify(credential: string): Promise<Answer> {
  const body = { protocol: 'mpp', credential, price: '0.01', walletId: wallet.id, resource }
  return world.call(org.testKey, 'POST', '/payments/verify', body)
}

const received = () => tokenBalance(chain, 'pathUSD', wallet.address)
const reverted = { error: { code: 3, message: 'execution reverted' } }
const busy = { error: { code: 429, message: 'too many requests' } }

/** Pays by a signed transaction; returns the answer and what the wallet got until its payment is over. */
async function pull() {
  const before = await received()
  const response = await verify(await payer.pull(await challenge()))
  if (response.status !== 200) return { response, paid: (await received()) - before }
  const read = () => world.call(org.testKey, 'GET', `/payments/${String(response.body.paymentId)}`)
  await expect.poll(async () => (await read()).body.status, { timeout: 60_000, interval: 100 }).toBe('settled')
  return { response, paid: (await received()) - before }
}

test('a signed transaction that only the fastest of three nodes refuses is not refused, and pays', async () => {
  const [liar, ...honest] = nodes
  liar.lie('eth_sendRawTransaction', () => reverted)
  for (const node of honest)
    node.lie('eth_sendRawTransaction', async ({ truth }) => {
      await delay(slowMs)
      return truth()
    })
  const { response, paid } = await pull()
  expect([response.status, response.body.message, paid]).toEqual([200, undefined, price])
})

test('a signed transaction that one node refuses and two took, but could not say so, is not refused', async () => {
  const [liar, ...honest] = nodes
  liar.lie('eth_sendRawTransaction', () => reverted)
  for (const node of honest)
    node.lie('eth_sendRawTransaction', async ({ truth }) => {
      await truth()
      return busy
    })
  const { response, paid } = await pull()
  expect([response.status, response.body.message, paid]).toEqual([200, undefined, price])
})

test('a signed transaction that two of three nodes refuse is refused, although the third does not answer', async () => {
  const [first, second, third] = nodes
  for (const node of [first, second]) node.lie('eth_sendRawTransaction', () => reverted)
  third.lie('eth_sendRawTransaction', () => busy)
  const { response, paid } = await pull()
  expect([response.status, response.body.message, paid]).toEqual([402, 'the token would not make the transfer', 0n])
})

const pushed = async () => {
  const offer = await challenge()
  return push(offer, await payer.broadcast(offer), payer)
}

test('a pushed hash whose receipt the first of three nodes hides pays once', async () => {
  nodes[0].lie('eth_getTransactionReceipt', () => ({ result: null }))
  const credential = await pushed()
  const [response, again] = [await verify(credential), await verify(credential)]
  expect([response.status, response.body.amount, again.status]).toEqual([200, '0.01', 409])
})

test('a pushed hash that one of three nodes denies while the others do not answer is 503, and pays when they do', async () => {
  const credential = await pushed()
  const [first, ...others] = nodes
  first.lie('eth_getTransactionReceipt', () => ({ result: null }))
  for (const node of others) node.lie('eth_getTransactionReceipt', () => busy)
  expect((await verify(credential)).status).toBe(503)
  for (const node of nodes) node.tellTheTruth()
  expect((await verify(credential)).status).toBe(200)
})

test('a pushed hash that a majority denies is 402', async () => {
  const offer = await challenge()
  expect((await verify(push(offer, `0x${'ab'.repeat(32)}`, payer))).status).toBe(402)
})

test('a transaction that is shown by its hash before it is pulled is credited once', async () => {
  const reads = () => nodes.reduce((sum, node) => sum + node.requested('eth_getTransactionReceipt'), 0)
  const [before, readBefore] = [await received(), reads()]
  const offer = await challenge()
  const signed = await payer.sign(offer)
  const shown = verify(push(offer, keccak256(signed), payer))
  // The hash is looked for, and nobody has sent the transaction.
  await expect.poll(reads).toBeGreaterThan(readBefore)
  const credential = formatMppCredential({ challenge: offer, payload: { type: 'transaction', signature: signed } })
  expect((await verify(credential)).status).toBe(200)
  expect((await shown).status).toBe(409)
  const logs = (await world.call(org.testKey, 'GET', '/payments/logs')).list
  expect(logs.filter(({ txHash }) => txHash === keccak256(signed))).toHaveLength(1)
  expect((await received()) - before).toBe(price)
})
