import { type DevChain, fundFees, fundToken, sendFromDevAccount, startChain, tokenBalance } from '@purser/devnet'
import { encodeTransferWithMemo, formatMppCredential, type MppChallenge } from '@purser/protocol'
import { type Address, createPublicClient, encodeFunctionData, erc20Abi, type Hex, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { failPlatform } from '../../src/platform/errors.ts'
import { timesCovered } from '../steady-witness.ts'
import {
  aTempoPayer,
  aTempoWallet,
  type Changes,
  memoFor,
  nodeCall,
  offerOf,
  pathUsd,
  push,
  type TempoPayer,
} from '../tempo-payer.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: TempoPayer
let wallet: { id: string; address: Address }
let alphaUsd: Address

const resource = 'https://api.example.com/weather'
const price = 10_000n
const stranger = privateKeyToAccount(generatePrivateKey()).address

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  alphaUsd = chain.tokens.AlphaUSD ?? '0x'
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  wallet = await aTempoWallet(world, org)
  payer = await aTempoPayer(chain)
  await fundToken(chain, 'AlphaUSD', payer.account.address, 1_000_000n)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

async function challenge(more: object = {}): Promise<MppChallenge> {
  const requested = { walletId: wallet.id, resource, price: '0.01', ...more }
  return offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested))
}

function verify(credential: string, base = world.base, more: object = {}): Promise<Answer> {
  const body = { protocol: 'mpp', credential, price: '0.01', walletId: wallet.id, resource, ...more }
  return request(base, { key: org.testKey, method: 'POST', path: '/payments/verify', body })
}

async function refusal(response: Answer): Promise<string> {
  return `${response.status} ${codeOf(response)}: ${String(response.body.reason)}: ${String(response.body.message)}`
}

const received = () => tokenBalance(chain, 'pathUSD', wallet.address)

async function countPayments(): Promise<bigint> {
  const row = z.object({ count: z.bigint() })
  return (await world.database.db.one(row, sql`select count(*) as count from payments`)).count
}

async function eventsOf({ body }: Answer): Promise<string[]> {
  const rows = await world.database.db.many(
    z.object({ type: z.string() }),
    sql`select type from events where payload->>'paymentId' = ${String(body.paymentId)} order by id`,
  )
  return rows.map(({ type }) => type)
}

test('a signed transaction is broadcast, settled and answered with its hash in one call, and buys once', async () => {
  const before = await received()
  const credential = await payer.pull(await challenge())
  const response = await verify(credential)
  expect(response.status).toBe(200)
  expect(response.body).toMatchObject({
    valid: true,
    protocol: 'mpp',
    method: 'tempo',
    network: 'eip155:42431',
    amount: '0.01',
    coin: 'pathUSD',
    payer: payer.account.address,
    settlementPending: false,
  })
  expect(response.body.txHash).toMatch(/^0x[0-9a-f]{64}$/)
  expect((await received()) - before).toBe(price)
  expect(await eventsOf(response)).toEqual(['payment.received', 'payment.settled'])

  const { paymentId, settlementToken, txHash } = response.body
  const settled = await world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
  expect([settled.status, settled.body.txHash]).toEqual([200, txHash])
  expect(codeOf(await verify(credential))).toBe('duplicate-payment')
  expect((await received()) - before).toBe(price)
})

test('a repeat with the same Idempotency-Key gets the first answer', async () => {
  const body = { protocol: 'mpp', credential: await payer.pull(await challenge()), price: '0.01', walletId: wallet.id }
  const ask = () =>
    world.call(org.testKey, 'POST', '/payments/verify', { ...body, resource }, { 'idempotency-key': 'tempo-1' })
  const first = await ask()
  expect(first.status).toBe(200)
  expect((await ask()).body).toEqual(first.body)
})

test('a payment that the witness cannot cover is not confirmed to a repeat either, until the witness covers it', async () => {
  const offer = await challenge()
  const hash = await payer.broadcast(offer)
  const body = { protocol: 'mpp', credential: push(offer, hash, payer), price: '0.01', walletId: wallet.id, resource }
  const ask = () => world.call(org.testKey, 'POST', '/payments/verify', body, { 'idempotency-key': 'tempo-uncovered' })
  const { witness } = world.server.deps
  const { cover } = witness
  witness.cover = () => Promise.reject(failPlatform('service-unavailable'))
  try {
    expect((await ask()).status).toBe(503)
    expect((await ask()).status).toBe(503)
  } finally {
    witness.cover = cover
  }
  const confirmed = await ask()
  expect([confirmed.status, confirmed.body.txHash]).toEqual([200, hash])
})

test('a transaction that its payer broadcast is accepted by its hash, once, and the witness covers it', async () => {
  const offer = await challenge()
  const hash = await payer.broadcast(offer)
  const before = await timesCovered(world.database.db)
  const response = await verify(push(offer, hash, payer))
  expect(response.status).toBe(200)
  expect(await timesCovered(world.database.db)).toBeGreaterThan(before)
  expect(response.body).toMatchObject({ txHash: hash, settlementPending: false, payer: payer.account.address })
  expect(response.body.settledAt).not.toBeNull()
  expect(codeOf(await verify(push(offer, hash, payer)))).toBe('duplicate-payment')
})

test('a pushed transfer of more than the price is credited with the amount moved', async () => {
  const offer = await challenge()
  const response = await verify(push(offer, await payer.broadcast(offer, { amount: 10_001n }), payer))
  expect([response.status, response.body.amount]).toEqual([200, '0.010001'])
})

async function logOf(hash: string): Promise<Record<string, unknown> | undefined> {
  const { list } = await world.call(org.testKey, 'GET', '/payments/logs?limit=20')
  return list.find(({ txHash }) => txHash === hash)
}

/** A challenge for every resource of the host. */
const forHost = { resource: undefined, hostname: 'api.example.com', method: 'GET' }

test.each([
  ['0.007', {}, {}],
  ['0.007', forHost, { method: 'GET', resource: 'https://api.example.com/any' }],
  ['0.01', forHost, { method: 'GET' }],
  ['0.0101', { method: 'GET' }, { method: 'GET' }],
  ['3', { method: 'PUT' }, { method: 'PUT', reportsDelivery: true }],
  ['0', {}, { method: 'GET' }],
])('money sent for a challenge of 0.01 buys at that price when the price is now %s', async (now, named, more) => {
  const offer = await challenge(named)
  const hash = await payer.broadcast(offer)
  const response = await verify(push(offer, hash, payer), world.base, { ...more, price: now })
  expect([response.status, response.body.amount, response.body.txHash]).toEqual([200, '0.01', hash])
})

test.each([
  ['for another method of the same address', { method: 'GET' }, { method: 'POST' }],
  ['without a method', {}, { method: 'GET' }],
  ['for the host', forHost, { method: 'GET', resource: 'https://api.example.com/dear' }],
])('money sent for a cheaper challenge %s is credited, and buys nothing at a higher price', async (_, named, more) => {
  const offer = await challenge(named)
  const hash = await payer.broadcast(offer)
  const credential = push(offer, hash, payer)
  const headers = { 'idempotency-key': `underpriced-${hash}` }
  const body = {
    protocol: 'mpp',
    credential,
    price: '0.02',
    walletId: wallet.id,
    resource,
    reportsDelivery: true,
    ...more,
  }
  const ask = () => world.call(org.testKey, 'POST', '/payments/verify', body, headers)
  const [first, again] = [await ask(), await ask()]
  expect([first.status, first.body.reason, again.status]).toEqual([402, 'payment-insufficient', 402])
  expect(await logOf(hash)).toMatchObject({ status: 'settled', amount: '0.01' })
  const { price: _price, walletId: _wallet, reportsDelivery: _reports, ...again2 } = body
  expect((await world.call(org.testKey, 'POST', '/payments/redeem', again2)).status).toBe(409)
  expect((await verify(credential, world.base, { ...more, price: '0.01' })).status).toBe(409)
})

test('a transaction that is not sent yet pays the current price, whatever its challenge requested', async () => {
  const cheap = await payer.pull(await challenge({ method: 'GET' }))
  const before = await received()
  const response = await verify(cheap, world.base, { price: '0.02', method: 'GET' })
  expect([response.status, response.body.reason]).toEqual([402, 'payment-insufficient'])
  expect(await received()).toBe(before)
})

test('a plain EIP-1559 transaction with the memo is accepted too, and without a source the log names the payer', async () => {
  const offer = await challenge()
  const account = privateKeyToAccount(generatePrivateKey())
  await fundFees(chain, account.address)
  const client = createPublicClient({ transport: http(chain.rpcUrl) })
  const serializedTransaction = await account.signTransaction({
    type: 'eip1559',
    chainId: chain.chainId,
    nonce: 0,
    gas: 1_000_000n,
    maxFeePerGas: 20_000_000_000n,
    maxPriorityFeePerGas: 0n,
    to: pathUsd,
    data: encodeTransferWithMemo(wallet.address, price, memoFor(offer)),
  })
  const hash = await client.sendRawTransaction({ serializedTransaction })
  await client.waitForTransactionReceipt({ hash, pollingInterval: 100 })
  const response = await verify(push(offer, hash))
  expect([response.status, response.body.payer]).toEqual([200, account.address])
})

test('a hash that has paid once buys nothing with another challenge, in whichever form it came first', async () => {
  const first = await challenge()
  const hash = await payer.broadcast(first)
  expect((await verify(push(first, hash, payer))).status).toBe(200)
  expect(codeOf(await verify(push(await challenge(), hash, payer)))).toBe('duplicate-payment')

  const pulled = await verify(await payer.pull(await challenge()))
  const pulledHash = z.templateLiteral(['0x', z.string()]).parse(pulled.body.txHash)
  expect(codeOf(await verify(push(await challenge(), pulledHash, payer)))).toBe('duplicate-payment')
})

test("the hash of another payer's payment buys nothing, and they can still use it", async () => {
  const theirs = await challenge()
  const hash = await payer.broadcast(theirs)
  const thief = await aTempoPayer(chain, { funded: false })
  const mine = await challenge()
  for (const credential of [push(mine, hash), push(mine, hash, thief), push(mine, hash, payer)])
    expect((await verify(credential)).status).toBe(402)
  expect(await refusal(await verify(push(mine, hash)))).toBe(
    '402 payment-verification-failed: verification-failed: the memo is not bound to this challenge',
  )
  expect((await verify(push(theirs, hash, payer))).status).toBe(200)
})

const faults: readonly (readonly [string, Changes, string])[] = [
  ['on another chain', { chainId: 4217 }, 'the transaction is for another chain'],
  ['of another token', { token: '0x20C0000000000000000000000000000000000001' }, 'the call must go to'],
  ['of a lower amount', { amount: 9_999n }, 'the amount is too low'],
  ['of a higher amount', { amount: 10_001n }, 'the amount is not the requested one'],
  ['to another account', { to: stranger }, 'the money goes to another account'],
  ['without a memo', { data: plainTransfer(stranger, price) }, 'the memo is not bound'],
  ['with another memo', { memo: `0x${'11'.repeat(32)}` }, 'the memo is not bound'],
  ['that is no transfer', { data: '0x095ea7b3' }, 'the call must be a transferWithMemo'],
  ['that also moves value', { value: 1n }, 'the call must go to'],
  ['of two calls', { calls: 2 }, 'exactly one call'],
  ['that has expired', { validSeconds: -5 }, 'has expired'],
  ['that is about to expire', { validSeconds: 2 }, 'has expired'],
  ['that lasts too long', { validSeconds: 120 }, 'valid for too long'],
  ['of an ordinary nonce that lasts too long', { validSeconds: 3_600, nonceKey: 0n }, 'valid for too long'],
  ['that is not valid yet', { validAfterSeconds: 20 }, 'not valid yet'],
  ['that requests a sponsor where none is offered', { sponsored: true }, 'does not offer to pay the fee'],
  ['that leaves a gap in the nonces of its account', { nonceKey: 0n, nonce: 1_000 }, 'ahead of the account’s next one'],
  ['that leaves a gap in the nonces of a key', { nonceKey: 7n, nonce: 1 }, 'ahead of the account’s next one'],
  ['with an expiring nonce that is not zero', { nonce: 1 }, 'ahead of the account’s next one'],
  ['with too little gas', { gas: 20_000n }, 'the gas limit is too low'],
  ['that the payer cannot pay', { maxFeePerGas: 10n ** 16n }, 'the fee cannot be paid'],
]

test.each([0n, 7n])('a payer’s nonces under key %s pay one after another', async (nonceKey) => {
  const other = await aTempoPayer(chain)
  for (const nonce of [0, 1]) {
    const response = await verify(await other.pull(await challenge(), { nonceKey, nonce }))
    expect([response.status, response.body.settlementPending]).toEqual([200, false])
  }
})

test.each([0n, 8n])('a nonce under key %s that is used is refused, and nothing is recorded', async (nonceKey) => {
  const other = await aTempoPayer(chain)
  expect((await verify(await other.pull(await challenge(), { nonceKey }))).status).toBe(200)
  const before = await countPayments()
  const response = await verify(await other.pull(await challenge(), { nonceKey }))
  expect([response.status, response.body.message]).toEqual([
    402,
    'the nonce is used, so that no block can take the transaction',
  ])
  expect(await countPayments()).toBe(before)
})

test('a signed transaction of an ordinary nonce that its payer has broadcast already is credited', async () => {
  const [other, offer] = [await aTempoPayer(chain), await challenge()]
  const signature = await other.sign(offer, { nonceKey: 0n })
  const hash = z.templateLiteral(['0x', z.string()]).parse(await nodeCall(chain, 'eth_sendRawTransaction', [signature]))
  await createPublicClient({ transport: http(chain.rpcUrl) }).waitForTransactionReceipt({ hash, pollingInterval: 100 })
  const payload = { type: 'transaction', signature }
  const response = await verify(formatMppCredential({ challenge: offer, payload }))
  expect([response.status, response.body.txHash, response.body.settlementPending]).toEqual([200, hash, false])
})

function plainTransfer(to: Address, amount: bigint): Hex {
  return encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] })
}

test.each(faults)('a signed transaction %s is refused before it is recorded or sent', async (_name, changes, words) => {
  const before = [await countPayments(), await received()]
  const offer = await challenge()
  const response = await verify(await payer.pull(offer, changes))
  expect(await refusal(response)).toContain('402 payment-verification-failed')
  expect(response.body.message).toContain(words)
  expect([await countPayments(), await received()]).toEqual(before)
  expect((await verify(await payer.pull(offer))).status).toBe(200)
})

test('a transaction of another sender than the source, and a damaged one, are refused', async () => {
  const offer = await challenge()
  const signed = await payer.sign(offer)
  const shown = (signature: string, source?: string) =>
    formatMppCredential({ challenge: offer, payload: { type: 'transaction', signature }, ...(source && { source }) })
  expect((await verify(shown(signed, `did:pkh:eip155:42431:${stranger}`))).body.message).toContain('the source')
  expect((await verify(shown(signed, `did:pkh:eip155:4217:${payer.account.address}`))).status).toBe(402)
  const spoilt = signed.slice(-4, -2) === 'ff' ? '00' : 'ff'
  for (const damaged of [`${signed.slice(0, -4)}${spoilt}1b`, '0x76', '0x76c0', `0x02${signed.slice(4)}`])
    expect(`${damaged.slice(0, 6)} ${(await verify(shown(damaged))).status}`).toBe(`${damaged.slice(0, 6)} 402`)
  expect((await verify(shown(signed))).status).toBe(200)
})

const pushed: readonly (readonly [string, (offer: MppChallenge) => Promise<Hex>, string])[] = [
  ['of another token', (offer) => payer.broadcast(offer, { token: alphaUsd }), "no transfer of the challenge's token"],
  ['of a lower amount', (offer) => payer.broadcast(offer, { amount: 9_999n }), 'the amount is too low'],
  ['to another account', (offer) => payer.broadcast(offer, { to: stranger }), 'the money goes to another account'],
  [
    'that is a plain transfer',
    (offer) => payer.broadcast(offer, { data: plainTransfer(wallet.address, price) }),
    "no transfer of the challenge's token with a memo",
  ],
  ['that reverted', (offer) => payer.broadcast(offer, { amount: 10n ** 15n }), 'the transaction reverted'],
  ['that is not on chain', async () => `0x${'ab'.repeat(32)}`, 'no such transaction is on chain yet'],
]

test.each(pushed)(
  'the hash of a transaction %s is refused and nothing is recorded',
  async (_name, broadcast, words) => {
    const offer = await challenge()
    const hash = await broadcast(offer)
    const before = await countPayments()
    const response = await verify(push(offer, hash))
    expect(await refusal(response)).toContain('402 payment-verification-failed')
    expect(response.body.message).toContain(words)
    expect(await countPayments()).toBe(before)
  },
)

test('the source must be the payer: a dev account’s transfer with the right memo is not another’s payment', async () => {
  const offer = await challenge()
  const hash = await sendFromDevAccount(chain, pathUsd, encodeTransferWithMemo(wallet.address, price, memoFor(offer)))
  expect((await verify(push(offer, hash, payer))).status).toBe(402)
  expect((await verify(push(offer, hash))).status).toBe(200)
})

test('another encoding of the same transaction is the same payment', async () => {
  const offer = await challenge()
  const signed = await payer.sign(offer)
  const shown = (signature: string) =>
    verify(formatMppCredential({ challenge: offer, payload: { type: 'transaction', signature } }))
  const before = await received()
  expect((await shown(`${signed}00`)).status).toBe(200)
  expect(codeOf(await shown(signed))).toBe('duplicate-payment')
  expect((await received()) - before).toBe(price)
})

test('twenty copies of one credential at two processes at once are one payment', async () => {
  const other = await world.another()
  const before = [await countPayments(), await received()]
  const credential = await payer.pull(await challenge())
  const copies = Array.from({ length: 20 }, (_, index) => verify(credential, index % 2 === 0 ? world.base : other.base))
  expect(countByStatus(await Promise.all(copies))).toEqual({ 200: 1, 409: 19 })
  expect([await countPayments(), await received()]).toEqual([(before[0] ?? 0n) + 1n, (before[1] ?? 0n) + price])
})

test('one challenge buys once: of several transactions sent for it at once, one is accepted and broadcast', async () => {
  const before = [await countPayments(), await received()]
  const offer = await challenge()
  const credentials = await Promise.all([700_000n, 700_001n, 700_002n].map((gas) => payer.pull(offer, { gas })))
  expect(countByStatus(await Promise.all(credentials.map((one) => verify(one))))).toEqual({ 200: 1, 409: 2 })
  expect([await countPayments(), await received()]).toEqual([(before[0] ?? 0n) + 1n, (before[1] ?? 0n) + price])
})

test('a payer without money gets that reason, and their credential is valid once they have it', async () => {
  const poor = await aTempoPayer(chain, { funded: false })
  await fundToken(chain, 'AlphaUSD', poor.account.address, 1_000_000n)
  const offer = await challenge()
  const credential = await poor.pull(offer, { feeToken: alphaUsd })
  expect((await verify(credential)).body.message).toBe('the payer holds too little of the token')
  await fundToken(chain, 'pathUSD', poor.account.address, price)
  expect((await verify(credential)).status).toBe(200)
})
