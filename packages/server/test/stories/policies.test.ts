import {
  type DevChain,
  type FaultProxy,
  fundNative,
  fundToken,
  startChain,
  startFaultProxy,
  tokenBalance,
} from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
import { transferHandler } from '../../src/features/transfers/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { id } from '../../src/platform/ids.ts'
import { makeMovementsOlder } from '../older-movements.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

const hourMs = 3_600_000
const usdc = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const masters = '/wallet-infra/master-wallets'
const path = '/wallet-infra/transfer'

let chain: DevChain
let node: FaultProxy
let world: World
let second: { readonly base: string }
let org: Org
/** How far the servers' clock is ahead of the machine's. */
let aheadMs = 0

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  node = await startFaultProxy(chain.rpcUrl)
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'base-sepolia': [node.url] },
    config: { transferWaitMs: 30_000 },
    boot: { clock: { now: () => new Date(Date.now() + aheadMs) } },
  })
  second = await world.another()
  org = await world.organisation()
})
beforeEach(() => {
  aheadMs = 0
})
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await chain?.stop()
})

interface Managed {
  readonly id: string
  readonly address: Address
}

async function aRichMaster(rawUsdc = 100_000_000n): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const master = { id: String(body.id), address: body.address as Address }
  await fundNative(chain, master.address, 10n ** 18n)
  await fundToken(chain, 'USDC', master.address, rawUsdc)
  return master
}

async function aRichChild(master: Managed, rawUsdc: bigint): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', `${masters}/${master.id}/child-addresses`, {})
  const child = { id: String(body.id), address: body.address as Address }
  await fundToken(chain, 'USDC', child.address, rawUsdc)
  return child
}

function policyOf(USDC: Record<string, string>, recipients: 'any' | readonly string[] = 'any') {
  return { operations: { transfer: { recipients } }, tokens: { USDC } }
}

function setPolicy(master: Managed, policy: unknown, key = org.testKey): Promise<Answer> {
  return world.call(key, 'PUT', `${masters}/${master.id}/policy`, policy)
}

async function underPolicy(policy: unknown): Promise<Managed> {
  const master = await aRichMaster()
  expect((await setPolicy(master, policy)).status).toBe(200)
  return master
}

function stranger(): Address {
  return privateKeyToAddress(generatePrivateKey())
}

function bodyFrom(from: Managed, changes: Record<string, unknown> = {}) {
  const usual = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount: '1', toAddress: stranger() }
  return { fromWalletId: from.id, ...usual, ...changes }
}

function send(from: Managed, changes: Record<string, unknown> = {}, base = world.base): Promise<Answer> {
  return request(base, { key: org.testKey, method: 'POST', path, body: bodyFrom(from, changes) })
}

/** The rule that refused, or the status where none did. */
function ruleOf(response: Answer): unknown {
  return codeOf(response) === 'policy-denied' ? response.body.rule : response.status
}

async function auditOf(master: Managed) {
  const { list } = await world.call(org.testKey, 'GET', '/organisations/current/audit-log')
  return list.filter(({ target, action }) => target === master.id && String(action).startsWith('wallets.policy'))
}

async function reservationsOf(master: Managed) {
  const Row = z.object({ attoAmount: z.string(), isReleased: z.boolean() })
  return world.database.db.many(
    Row,
    sql`select atto_amount::text, released_at is not null as is_released from policy_reservations where master_wallet_id = ${master.id} and operation <> 'gas'`,
  )
}

test('without a policy there is none to read and nothing is limited; the first one is accepted', async () => {
  const master = await aRichMaster()
  const get = () => world.call(org.testKey, 'GET', `${masters}/${master.id}/policy`)
  expect((await get()).body).toEqual({ masterWalletId: master.id, policy: null, updatedAt: null })
  expect((await send(master, { amount: '50' })).status).toBe(201)
  const policy = policyOf({ perTransaction: '10' }, [usdc.toLowerCase()])
  const set = await setPolicy(master, policy)
  expect(set.status).toBe(200)
  expect(set.body).toEqual({
    masterWalletId: master.id,
    policy: policyOf({ perTransaction: '10' }, [usdc]),
    updatedAt: expect.any(String),
  })
  expect((await get()).body).toEqual(set.body)
})

test('a policy that would allow nothing by mistake is refused, and the message says what to write', async () => {
  const master = await aRichMaster()
  const cases = [
    [
      { operations: { pay: { recipients: ['any'] } }, tokens: {} },
      '/operations/pay/recipients',
      /must be "any", or a list/,
    ],
    [{ operations: {}, tokens: { usdc: { perDay: '1' } } }, '/tokens/usdc', /must be "USDC"/],
  ] as const
  for (const [policy, at, message] of cases) {
    const { status, body } = await setPolicy(master, policy)
    expect([status, body.errors]).toEqual([422, [{ path: at, message: expect.stringMatching(message) }]])
  }
  expect((await world.call(org.testKey, 'GET', `${masters}/${master.id}/policy`)).body.policy).toBeNull()
})

test('what a policy does not allow is refused with the rule, recorded in the audit log, and moves nothing', async () => {
  const friend = stranger()
  const master = await underPolicy(policyOf({ perTransaction: '2' }, [friend]))
  expect(ruleOf(await send(master, { toAddress: friend, amount: '2' }))).toBe(201)
  const over = await send(master, { toAddress: friend, amount: '2.000001' })
  expect([over.status, codeOf(over)]).toEqual([403, 'policy-denied'])
  expect(over.body).toMatchObject({ rule: 'perTransaction', cap: '2', amount: '2.000001', masterWalletId: master.id })
  expect(over.body.detail).toBe(
    "The wallet's spend policy allows at most 2 USDC in one movement, and this one is 2.000001 USDC. Nothing was moved.",
  )
  const toAddress = stranger()
  expect(ruleOf(await send(master, { toAddress }))).toBe('recipient')
  const coin = { toAddress: friend, fromToken: 'ETH', toToken: 'ETH', amount: '0.1' }
  expect(ruleOf(await send(master, coin))).toBe('token')
  expect(await tokenBalance(chain, 'USDC', toAddress)).toBe(0n)
  expect(await tokenBalance(chain, 'USDC', friend)).toBe(2_000_000n)
  const entries = await auditOf(master)
  expect(entries.map(({ action }) => action)).toEqual([
    'wallets.policy.deny',
    'wallets.policy.deny',
    'wallets.policy.deny',
    'wallets.policy.set',
  ])
  expect(entries[1]).toMatchObject({
    actor: { kind: 'api-key' },
    details: { rule: 'recipient', operation: 'transfer', token: 'USDC', amount: '1', recipient: toAddress },
  })
  const nothing = await underPolicy({ operations: {}, tokens: {} })
  expect(ruleOf(await send(nothing))).toBe('operation')
})

test('caps of the hour, the day and the month roll with the clock, over the master and its children together', async () => {
  const master = await underPolicy(policyOf({ perHour: '5', perDay: '8', perMonth: '10' }))
  const child = await aRichChild(master, 20_000_000n)
  const spend = async (from: Managed, amount: string) => ruleOf(await send(from, { amount }))
  expect([await spend(master, '3'), await spend(child, '2')]).toEqual([201, 201])
  const refused = await send(child, { amount: '0.000001' })
  expect(refused.body).toMatchObject({ rule: 'perHour', cap: '5', used: '5' })
  await makeMovementsOlder(world.database.db, master.id, hourMs + 60_000)
  expect([await spend(child, '3.000001'), await spend(child, '3')]).toEqual(['perDay', 201])
  await makeMovementsOlder(world.database.db, master.id, 24 * hourMs)
  expect([await spend(master, '2.000001'), await spend(master, '2')]).toEqual(['perMonth', 201])
  expect(await spend(master, '0.000001')).toBe('perMonth')
  await makeMovementsOlder(world.database.db, master.id, 30 * 24 * hourMs)
  expect(await spend(master, '5')).toBe(201)
})

test('a process whose clock is ahead begins no new hour for a cap, and blocks none for the others', async () => {
  const master = await underPolicy(policyOf({ perHour: '5' }))
  const spend = async (amount: string) => ruleOf(await send(master, { amount }))
  expect(await spend('3')).toBe(201)
  aheadMs = hourMs + 60_000
  expect([await spend('3'), await spend('2')]).toEqual(['perHour', 201])
  aheadMs = 0
  await makeMovementsOlder(world.database.db, master.id, hourMs + 1_000)
  expect(await spend('5')).toBe(201)
})

test('transfers from before a policy count under it', async () => {
  const master = await aRichMaster()
  expect((await send(master, { amount: '7' })).status).toBe(201)
  await setPolicy(master, policyOf({ perDay: '8' }))
  expect(ruleOf(await send(master, { amount: '1.5' }))).toBe('perDay')
  expect(ruleOf(await send(master, { amount: '1' }))).toBe(201)
})

test('thirty transfers at once at two processes, under a cap for ten, are exactly ten', async () => {
  const master = await underPolicy(policyOf({ perDay: '10' }))
  const child = await aRichChild(master, 30_000_000n)
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, n) =>
      send(n % 3 === 0 ? child : master, {}, n % 2 === 0 ? world.base : second.base),
    ),
  )
  expect(countByStatus(answers)).toEqual({ 201: 10, 403: 20 })
  const left = [master, child].map(({ address }) => tokenBalance(chain, 'USDC', address))
  expect((await Promise.all(left)).reduce((sum, raw) => sum + raw, 0n)).toBe(120_000_000n)
  expect(await reservationsOf(master)).toHaveLength(10)
  expect((await auditOf(master)).filter(({ action }) => action === 'wallets.policy.deny')).toHaveLength(20)
})

test('one hundred repeats of one Idempotency-Key reserve once', async () => {
  const master = await underPolicy(policyOf({ perDay: '10' }))
  const requested = {
    key: org.testKey,
    method: 'POST',
    path,
    body: bodyFrom(master),
    headers: { 'idempotency-key': 'rent' },
  }
  await Promise.all(Array.from({ length: 100 }, (_, n) => request(n % 2 === 0 ? world.base : second.base, requested)))
  expect(await reservationsOf(master)).toEqual([{ attoAmount: String(10n ** 18n), isReleased: false }])
})

async function transactionOf(transferId: string) {
  const { transactionId } = await world.database.db.one(
    z.object({ transactionId: id('ctx') }),
    sql`select transaction_id from transfer_steps where transfer_id = ${transferId}`,
  )
  const hash = `0x${'0'.repeat(64)}` as const
  return { id: transactionId, network: 'base-sepolia', purpose: 'transfers.step', nonce: 0n, hash }
}

/** Removes a wallet's tokens without a transaction of the wallet. */
async function empty({ address }: Managed): Promise<void> {
  const requested = { jsonrpc: '2.0', id: 1, method: 'anvil_dealERC20', params: [address, usdc, '0x0'] }
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(chain.rpcUrl, { method: 'POST', headers, body: JSON.stringify(requested) })
  expect(await response.json()).not.toHaveProperty('error')
  expect(await tokenBalance(chain, 'USDC', address)).toBe(0n)
}

test('a transfer that reverts releases its reservation, once', async () => {
  const master = await underPolicy(policyOf({ perDay: '9' }))
  const hasty = await world.another({ transferWaitMs: 0 })
  node.set('drop', ['eth_sendRawTransaction'])
  const sent = await send(master, { amount: '9' }, hasty.base)
  expect([sent.status, sent.body.status]).toEqual([201, 'pending'])
  await empty(master)
  node.set('pass')
  const get = () => world.call(org.testKey, 'GET', `/wallet-infra/transfers/${sent.body.id}`)
  await expect.poll(async () => (await get()).body.status, { timeout: 90_000 }).toBe('failed')
  expect((await get()).body.reason).toBe('reverted')
  expect(await reservationsOf(master)).toEqual([{ attoAmount: String(9n * 10n ** 18n), isReleased: true }])
  await fundToken(chain, 'USDC', master.address, 20_000_000n)
  expect(ruleOf(await send(master, { amount: '9' }))).toBe(201)
  expect(ruleOf(await send(master, { amount: '0.000001' }))).toBe('perDay')
})

test('money that left and did not arrive stays counted, whatever is reported afterwards', async () => {
  const master = await underPolicy(policyOf({ perDay: '9' }))
  const hasty = await world.another({ transferWaitMs: 0 })
  node.set('drop', ['eth_sendRawTransaction'])
  const sent = await send(master, { amount: '9' }, hasty.base)
  expect(sent.body.status).toBe('pending')
  const { db } = world.server.deps
  const { onFinal } = transferHandler(world.server.deps)
  const transaction = await transactionOf(String(sent.body.id))
  const inBlock = { transactionHash: transaction.hash, blockNumber: 1n, blockHash: transaction.hash, gasUsed: 1n }
  const receipt = { ...inBlock, effectiveGasPrice: 1n, l1Fee: 0n, logs: [] }
  // The token emitted no transfer event, as where Tempo's guard blocks it.
  await db.tx((tx) => onFinal(tx, [{ transaction, receipt: { ...receipt, status: 'success' } }]))
  await db.tx((tx) => onFinal(tx, [{ transaction, receipt: { ...receipt, status: 'reverted' } }]))
  node.set('pass')
  const { body } = await world.call(org.testKey, 'GET', `/wallet-infra/transfers/${sent.body.id}`)
  expect([body.status, body.reason]).toEqual(['failed', 'not-received'])
  expect(await reservationsOf(master)).toEqual([{ attoAmount: String(9n * 10n ** 18n), isReleased: false }])
})

test('a quote says which rule would refuse, and reserves nothing', async () => {
  const master = await underPolicy(policyOf({ perDay: '3' }))
  const quote = async (amount: string) =>
    (await world.call(org.testKey, 'POST', `${path}/quote`, bodyFrom(master, { amount }))).body.deniedBy
  expect([await quote('3'), await quote('3.000001'), await quote('3')]).toEqual([null, 'perDay', null])
  expect(await reservationsOf(master)).toEqual([])
})

const [friend, other] = [stranger(), stranger()]
const tight = {
  operations: { transfer: { recipients: [friend] } },
  tokens: { USDC: { perTransaction: '1', perHour: '2', perDay: '3', perMonth: '4' } },
}
const caps = tight.tokens.USDC
const withOperations = (operations: object) => ({ ...tight, operations: { ...tight.operations, ...operations } })
const withCaps = (changes: object) => ({ ...tight, tokens: { USDC: { ...caps, ...changes } } })
const loosenings: readonly (readonly [what: string, place: string, looser: object])[] = [
  ['withdraw named', '/operations/withdraw', withOperations({ withdraw: { recipients: [] } })],
  ['legacyWithdraw named', '/operations/legacyWithdraw', withOperations({ legacyWithdraw: { recipients: [] } })],
  ['sweep named', '/operations/sweep', withOperations({ sweep: { recipients: [] } })],
  ['one more recipient', '/operations/transfer', withOperations({ transfer: { recipients: [friend, other] } })],
  ['any recipient', '/operations/transfer', withOperations({ transfer: { recipients: 'any' } })],
  ['another token', '/tokens/USDT', { ...tight, tokens: { ...tight.tokens, USDT: {} } }],
  ...Object.keys(caps).flatMap((name) => [
    [`a higher ${name}`, `/tokens/USDC/${name}`, withCaps({ [name]: '9' })] as const,
    [`no ${name}`, `/tokens/USDC/${name}`, withCaps({ [name]: undefined })] as const,
  ]),
]

test.each(loosenings)(
  'an API key cannot loosen a policy: %s is refused at %s, and recorded in the audit log',
  async (_what, place, looser) => {
    const { body } = await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
    const master = { id: String(body.id), address: body.address as Address }
    const set = await setPolicy(master, tight)
    const refused = await setPolicy(master, looser)
    expect([refused.status, codeOf(refused)]).toEqual([403, 'policy-loosening-denied'])
    expect(refused.body.errors).toEqual([expect.objectContaining({ path: place })])
    expect((await world.call(org.testKey, 'GET', `${masters}/${master.id}/policy`)).body).toEqual(set.body)
    expect((await auditOf(master)).map(({ action }) => action)).toEqual(['wallets.policy.refuse', 'wallets.policy.set'])
  },
)

test('an API key can tighten a policy; concurrent changes never undo a tighter one', async () => {
  const master = await underPolicy(policyOf({ perDay: '100' }))
  const caps = Array.from({ length: 20 }, (_, n) => String(n + 1))
  const answers = await Promise.all(caps.map((perDay) => setPolicy(master, policyOf({ perDay }))))
  expect(answers[0]?.status, 'the tightest is never refused').toBe(200)
  expect(Object.keys(countByStatus(answers)).every((status) => ['200', '403'].includes(status))).toBe(true)
  const { body } = await world.call(org.testKey, 'GET', `${masters}/${master.id}/policy`)
  expect(body.policy).toEqual(policyOf({ perDay: '1' }))
})

test('the policy that is set already leaves no audit record and keeps its time', async () => {
  const { operations, tokens } = policyOf({ perDay: '1' }, [usdc.toLowerCase()])
  const master = await underPolicy({ operations, tokens })
  const before = await world.call(org.testKey, 'GET', `${masters}/${master.id}/policy`)
  const again = await setPolicy(master, { tokens, operations })
  expect([again.status, again.body]).toEqual([200, before.body])
  expect((await auditOf(master)).map(({ action }) => action)).toEqual(['wallets.policy.set'])
})

test('the operator loosens and removes a policy, and the audit log has the old and the new one', async () => {
  const master = await underPolicy(policyOf({ perDay: '1' }))
  expect(ruleOf(await send(master, { amount: '2' }))).toBe('perDay')
  const admin = (policy: string) =>
    runAdmin(['admin', 'set-policy', '--wallet', master.id, '--policy', policy], { DATABASE_URL: world.database.url })
  expect(await admin(JSON.stringify(policyOf({ perDay: '2' })))).toMatchObject({ exitCode: 0 })
  expect(ruleOf(await send(master, { amount: '2' }))).toBe(201)
  expect(ruleOf(await send(master))).toBe('perDay')
  expect(await admin('none')).toMatchObject({ exitCode: 0 })
  expect(ruleOf(await send(master))).toBe(201)
  const entries = (await auditOf(master)).filter(({ action }) => action === 'wallets.policy.set')
  expect(entries.map(({ actor, details }) => [Object(actor).kind, details])).toEqual([
    ['operator', { from: policyOf({ perDay: '2' }), to: null }],
    ['operator', { from: policyOf({ perDay: '1' }), to: policyOf({ perDay: '2' }) }],
    ['api-key', { from: null, to: policyOf({ perDay: '1' }) }],
  ])
  for (const nonsense of ['{', '{"operations":{}}', '7'])
    expect(await admin(nonsense)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--policy') })
  const nobodys = ['set-policy', '--wallet', 'mwt_01h455vb4pex5vsknk084sn02q', '--policy', 'none']
  expect(await runAdmin(nobodys, { DATABASE_URL: world.database.url })).toMatchObject({ exitCode: 1 })
})

test('the policy of another organisation’s or environment’s wallet can be neither read nor set', async () => {
  const master = await underPolicy(policyOf({ perDay: '1' }))
  const stranger = await world.organisation()
  for (const key of [stranger.testKey, org.liveKey]) {
    const read = await world.call(key, 'GET', `${masters}/${master.id}/policy`)
    const set = await setPolicy(master, { operations: {}, tokens: {} }, key)
    expect([read, set].map((response) => [response.status, codeOf(response)])).toEqual([
      [404, 'wallet-not-found'],
      [404, 'wallet-not-found'],
    ])
  }
  expect(ruleOf(await send(master))).toBe(201)
})
