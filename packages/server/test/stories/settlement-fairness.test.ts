import { type DevChain, deploySmartWallet, fundToken, sendFromDevAccount, startChain } from '@purser/devnet'
import { createTestClient, encodeFunctionData, type Hex, http, parseAbi } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import { handledDuring } from '../relay-queue.ts'
import { spend } from '../spend.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  type CredentialChanges,
  type Org,
  type Payer,
  type V2Payload,
  type World,
} from '../world.ts'

let chain: DevChain
let node: LyingNode
let world: World
let usdc: `0x${string}`
let hostile: Seller
let honest: Seller

interface Seller {
  readonly org: Org
  readonly wallet: { readonly id: string; readonly address: `0x${string}` }
}

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  node = await startLyingNode(chain.rpcUrl)
  usdc = chain.tokens.USDC ?? '0x'
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'base-sepolia': [node.url] },
    config: { settleWaitMs: 60_000 },
    boot: { probe: undefined },
  })
  const [first, second] = [await world.organisation(), await world.organisation()]
  hostile = { org: first, wallet: await world.wallet(first) }
  honest = { org: second, wallet: await world.wallet(second) }
})
afterEach(async () => {
  node.tellTheTruth()
  await anvil().setIntervalMining({ interval: 0 })
  await anvil().setAutomine(true)
})
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await chain?.stop()
})

const anvil = () => createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
const token = parseAbi(['function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)'])
const nonceUsed = 'invalid_exact_evm_nonce_already_used'

interface Signed {
  readonly response: Answer
  readonly payload: V2Payload
}

async function verified({ org, wallet }: Seller, payer: Payer, changes: CredentialChanges = {}): Promise<Signed> {
  const requested = { walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' }
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', requested)
  let payload: V2Payload | undefined
  const after = (made: V2Payload): void => {
    changes.after?.(made)
    payload = made
  }
  const credential = await payer.credential(challenge, { ...changes, after })
  const response = await world.call(org.testKey, 'POST', '/payments/verify', {
    protocol: 'x402',
    credential,
    ...requested,
  })
  if (response.status !== 200 || payload === undefined)
    throw new Error(`not verified: ${JSON.stringify(response.body)}`)
  return { response, payload }
}

function settle(
  { org }: Seller,
  { response: { body } }: Signed,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const { paymentId, settlementToken } = body
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken }, headers)
}

/** Requests settlement without waiting for it. */
const startSettling = (seller: Seller, signed: Signed) => settle(seller, signed, { prefer: 'respond-async' })

async function statusesOf(signed: readonly Signed[]): Promise<Record<string, number>> {
  const ids = signed.map(({ response }) => String(response.body.paymentId))
  const rows = await world.database.db.many(
    z.object({ outcome: z.string(), count: z.bigint() }),
    sql`select status || ' ' || coalesce(failure_reason, '') as outcome, count(*) as count from payments where id = any(${ids}::text[]) group by 1 order by 1`,
  )
  return Object.fromEntries(rows.map(({ outcome, count }) => [outcome.trim(), Number(count)]))
}

/** How many of the planted payments the service handled while this one waited: a count, which a loaded machine does not change. */
function handledFirst(paying: Signed, planted: readonly Signed[]): Promise<number> {
  const idOf = ({ response }: Signed): string => String(response.body.paymentId)
  return handledDuring(world.database.db, idOf(paying), planted.map(idOf))
}

async function timed<T>(work: Promise<T>): Promise<{ readonly ms: number; readonly result: T }> {
  const started = performance.now()
  const result = await work
  return { ms: performance.now() - started, result }
}

/** Blocks come every two seconds, as on Base. */
const slowBlocks = () => anvil().setIntervalMining({ interval: 2 })
/** Most relays of one signer, or of contract accounts, in a turn: the turn in progress when another payment comes, and the turn with it. */
const handledFirstMax = 2 * 8

test('ninety payments without money delay another organisation’s payment by one turn at most', async () => {
  const payer = await aPayer(chain)
  const planted = await Promise.all(Array.from({ length: 90 }, () => verified(hostile, payer)))
  const paying = await verified(honest, await aPayer(chain))
  await spend(chain, payer.account.address, 1_000_000_000n)
  await slowBlocks()
  for (const one of planted) await startSettling(hostile, one)
  expect((await settle(honest, paying)).status).toBe(200)
  expect(await handledFirst(paying, planted)).toBeLessThanOrEqual(handledFirstMax)
  await anvil().setIntervalMining({ interval: 0 })
  await anvil().setAutomine(true)
  const failed = 'settlement_failed invalid_exact_evm_insufficient_balance'
  await expect.poll(() => statusesOf(planted), { timeout: 180_000 }).toEqual({ [failed]: 90 })
}, 540_000)

test('payments whose nonces another authorization used fail with that reason, and delay no other outcome', async () => {
  const payer = await aPayer(chain)
  const planted = await Promise.all(Array.from({ length: 40 }, () => verified(hostile, payer)))
  for (const { payload } of planted) await spendNonce(payer, payload)
  const cheated = await aPayer(chain)
  const failing = await verified(honest, cheated)
  await spend(chain, cheated.account.address, 1_000_000_000n)
  for (const one of planted) await startSettling(hostile, one)
  const { ms, result } = await timed(settle(honest, failing))
  expect([result.status, result.body.reason]).toEqual([409, 'invalid_exact_evm_insufficient_balance'])
  expect(ms).toBeLessThan(20_000)
  await expect.poll(() => statusesOf(planted), { timeout: 180_000 }).toEqual({ [`settlement_failed ${nonceUsed}`]: 40 })
}, 540_000)

test('more canceled payments than fit into one transaction all end, and delay neither a payment nor another’s end', async () => {
  const payers = [await aPayer(chain), await aPayer(chain)]
  const planted: Signed[] = []
  for (const payer of payers) {
    const own = await Promise.all(Array.from({ length: 65 }, () => verified(hostile, payer)))
    for (const { payload } of own) await cancel(payer, payload)
    planted.push(...own)
  }
  const cheated = await aPayer(chain)
  const failing = await verified(honest, cheated)
  const paying = await verified(honest, await aPayer(chain))
  await spend(chain, cheated.account.address, 1_000_000_000n)
  await Promise.all(planted.map((one) => startSettling(hostile, one)))
  const [failed, paid] = await Promise.all([timed(settle(honest, failing)), timed(settle(honest, paying))])
  expect([failed.result.status, paid.result.status]).toEqual([409, 200])
  expect(Math.max(failed.ms, paid.ms)).toBeLessThan(20_000)
  await expect
    .poll(() => statusesOf(planted), { timeout: 180_000 })
    .toEqual({ [`settlement_failed ${nonceUsed}`]: 130 })
}, 540_000)

/** The payer cancels an authorization, which anybody may send. */
async function cancel({ account }: Payer, { payload }: V2Payload): Promise<void> {
  const { nonce } = z.object({ nonce: z.templateLiteral(['0x', z.string()]) }).parse(payload.authorization)
  const signature = await account.signTypedData({
    domain: { name: 'USDC', version: '2', chainId: chain.chainId, verifyingContract: usdc },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce },
  })
  const abi = parseAbi(['function cancelAuthorization(address,bytes32,bytes)'])
  const args = [account.address, nonce, signature] as const
  await sendFromDevAccount(chain, usdc, encodeFunctionData({ abi, functionName: 'cancelAuthorization', args }))
}

/** A transfer of zero to oneself under the same nonce: the sold authorization can never be used. */
async function spendNonce({ account }: Payer, { payload }: V2Payload): Promise<void> {
  const signed = { ...payload.authorization, to: account.address, value: '0' }
  const { from, to, validAfter, validBefore, nonce } = z
    .object({ from: z.string(), to: z.string(), validAfter: z.string(), validBefore: z.string(), nonce: z.string() })
    .parse(signed)
  const message = {
    from: from as Hex,
    to: to as Hex,
    value: 0n,
    validAfter: BigInt(validAfter),
    validBefore: BigInt(validBefore),
    nonce: nonce as Hex,
  }
  const signature = await account.signTypedData({
    domain: { name: 'USDC', version: '2', chainId: chain.chainId, verifyingContract: usdc },
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message,
  })
  const args = [
    message.from,
    message.to,
    0n,
    message.validAfter,
    message.validBefore,
    message.nonce,
    signature,
  ] as const
  await sendFromDevAccount(
    chain,
    usdc,
    encodeFunctionData({ abi: token, functionName: 'transferWithAuthorization', args }),
  )
}

test('a node that fails for one nonce delays that payment alone', async () => {
  const payers = [await aPayer(chain), await aPayer(chain)] as const
  const [stuck, fine] = [await verified(hostile, payers[0]), await verified(honest, payers[1])]
  for (const [payer, { payload }] of [
    [payers[0], stuck],
    [payers[1], fine],
  ] as const)
    await spendNonce(payer, payload)
  const nonce = String(stuck.payload.payload.authorization.nonce)
  node.lie('eth_getLogs', async ({ params, truth }) =>
    JSON.stringify(params).includes(nonce) ? { error: { code: -32_000, message: 'too busy' } } : truth(),
  )
  await startSettling(hostile, stuck)
  const response = await settle(honest, fine)
  expect([response.status, response.body.reason]).toEqual([409, nonceUsed])
  expect(await statusesOf([stuck])).toEqual({ settling: 1 })
  node.tellTheTruth()
  await expect.poll(() => statusesOf([stuck]), { timeout: 180_000 }).toEqual({ [`settlement_failed ${nonceUsed}`]: 1 })
}, 360_000)

/** Accepts every signature where gas is free, and burns all of its gas where it has a price. */
const burnsForReal = '0x3a60145763' + '1626ba7e' + '60e01b60005260206000f35b601456'

test('a contract that accepts a call and burns in a transaction is not sent: it burns nothing', async () => {
  const owner = await aPayer(chain)
  const address = '0x00000000000000000000000000000000b0bb1e55'
  await anvil().setCode({ address, bytecode: burnsForReal as Hex })
  await fundToken(chain, 'USDC', address, 1_000_000n)
  const after = ({ payload }: V2Payload): void => {
    payload.signature = `0x${'ab'.repeat(80)}`
  }
  const signed = await verified(hostile, owner, { sign: { from: address }, after })
  const before = await sentCount()
  const response = await settle(hostile, signed)
  expect([response.status, response.body.reason]).toEqual([409, 'invalid_exact_evm_transaction_failed'])
  expect(await sentCount()).toBe(before)
})

async function sentCount(): Promise<bigint> {
  return (
    await world.database.db.one(z.object({ count: z.bigint() }), sql`select count(*) as count from chain_transactions`)
  ).count
}

test('forty payments by contract accounts delay an ordinary one by one turn at most', async () => {
  const owner = await aPayer(chain)
  const account = await deploySmartWallet(chain, owner.account.address, 77n)
  await fundToken(chain, 'USDC', account, 1_000_000n)
  const changes = contractPayer(owner, account)
  const planted: Signed[] = []
  for (let made = 0; made < 40; made += 1)
    planted.push(await verified(hostile, changes.payer, { sign: { from: account } }))
  const paying = await verified(honest, await aPayer(chain))
  await slowBlocks()
  for (const one of planted) await startSettling(hostile, one)
  expect((await settle(honest, paying)).status).toBe(200)
  expect(await handledFirst(paying, planted)).toBeLessThanOrEqual(handledFirstMax)
  await anvil().setIntervalMining({ interval: 0 })
  await anvil().setAutomine(true)
  await expect.poll(() => statusesOf(planted), { timeout: 180_000 }).toEqual({ settled: 40 })
}, 720_000)

/** The owner's signature is the account's (EIP-1271): the test wallet accepts its owner's signature unchanged, as bytes. */
function contractPayer(owner: Payer, account: Hex): { readonly payer: Payer } {
  return { payer: { account: { ...owner.account, address: account }, credential: owner.credential } }
}
