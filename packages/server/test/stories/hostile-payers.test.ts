import { type DevChain, fundToken, startChain, tokenBalance } from '@purser/devnet'
import { type Address, createTestClient, type Hex, http } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aPaymentBody, facilitatorOf } from '../facilitated.ts'
import { offerOf, payByEvmCharge } from '../mpp-agent.ts'
import { queuedOf } from '../relay-queue.ts'
import { type Answer, aPayer, aWorld, type CredentialChanges, type Org, type Payer, type World } from '../world.ts'

let chain: DevChain
let world: World

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { settleWaitMs: 60_000 } })
})
afterEach(async () => {
  await anvil().setIntervalMining({ interval: 0 })
  await anvil().setAutomine(true)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const anvil = () => createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
const requested = { resource: 'https://api.example.com/weather', price: '0.01' }
const price = 10_000n
const soon = { prefer: 'respond-async' }

interface Shop {
  readonly org: Org
  readonly wallet: { readonly id: string; readonly address: Address }
}

async function aShop(): Promise<Shop> {
  const org = await world.organisation()
  return { org, wallet: await world.wallet(org) }
}

function challenge({ org, wallet }: Shop, terms = {}): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/challenge', { ...requested, walletId: wallet.id, ...terms })
}

function verify({ org, wallet }: Shop, protocol: 'x402' | 'mpp', credential: string): Promise<Answer> {
  const body = { protocol, credential, ...requested, walletId: wallet.id }
  return world.call(org.testKey, 'POST', '/payments/verify', body)
}

async function pay(shop: Shop, payer: Payer, changes: CredentialChanges = {}): Promise<Answer> {
  return verify(shop, 'x402', await payer.credential(await challenge(shop), changes))
}

function settle({ org }: Shop, { body }: Answer, headers: Record<string, string> = {}): Promise<Answer> {
  const { paymentId, settlementToken } = body
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken }, headers)
}

const OutcomeRow = z.object({ status: z.string(), count: z.bigint(), reserved: z.string() })

/** The payments of a payer by status, and what is reserved for their gas. */
async function outcomesOf(payer: Address): Promise<Record<string, { count: bigint; reserved: string }>> {
  const rows = await world.database.db.many(
    OutcomeRow,
    sql`select status, count(*) as count, sum(gas_reserved_nano_usd)::text as reserved from payments where payer = ${payer} group by status`,
  )
  return Object.fromEntries(rows.map(({ status, ...outcome }) => [status, outcome]))
}

test('signatures of one payer at six organisations that expire in the queue delay no honest payment, and all end with nothing reserved', async () => {
  const payer = await aPayer(chain)
  const shops = await Promise.all(Array.from({ length: 6 }, aShop))
  const honest = await aShop()
  const endsAt = Math.floor(Date.now() / 1_000) + 20
  const planted = await Promise.all(
    shops.flatMap((shop) =>
      [0, 1, 2].map(async () => ({
        shop,
        response: await pay(shop, payer, { sign: { validBefore: String(endsAt) } }),
      })),
    ),
  )
  expect(planted.map(({ response: { status } }) => status)).toEqual(planted.map(() => 200))
  const [control, paying] = [await pay(honest, await aPayer(chain)), await pay(honest, await aPayer(chain))]
  await anvil().setIntervalMining({ interval: 2 })
  const alone = await settle(honest, control)
  // Too late to be sent, and not expired yet.
  await expect.poll(() => Date.now(), { timeout: 30_000, interval: 50 }).toBeGreaterThan((endsAt - 2) * 1_000)
  await Promise.all(planted.map(({ shop, response }) => settle(shop, response, soon)))
  const beside = await settle(honest, paying)
  expect([alone.status, beside.status]).toEqual([200, 200])
  expect(await msInQueue(paying)).toBeLessThan((await msInQueue(control)) + 6_000)
  await expect
    .poll(async () => Object.keys(await outcomesOf(payer.account.address)), { timeout: 120_000 })
    .toEqual(['voided'])
  expect(await outcomesOf(payer.account.address)).toEqual({ voided: { count: 18n, reserved: '0' } })
  expect(await tokenBalance(chain, 'USDC', payer.account.address)).toBe(1_000_000_000n)
}, 240_000)

/** From the request of the settlement to its transaction: without the time of requests and of blocks, which a loaded machine lengthens. */
async function msInQueue({ body }: Answer): Promise<number> {
  const { requestedAt, plannedAt } = await queuedOf(world.database.db, String(body.paymentId))
  return plannedAt.getTime() - requestedAt.getTime()
}

test('a payer’s balance limits what it has open through all entry points together', async () => {
  const [one, two, three] = [await aShop(), await aShop(), await aShop()]
  const payer = await aPayer(chain, 2n * price)
  const facilitator = facilitatorOf(world.base, one.org.testKey)
  const bodies = await Promise.all([one, one].map(({ org, wallet }) => aPaymentBody(world, org, { payer, wallet })))
  const charge = async (shop: Shop) =>
    payByEvmCharge(payer.account, offerOf(await challenge(shop, { acceptMPP: true })))
  expect((await facilitator.verify(bodies[0])).body.isValid).toBe(true)
  expect((await verify(two, 'mpp', await charge(two))).status).toBe(200)
  const refusals = [
    (await facilitator.verify(bodies[1])).body.invalidReason,
    (await facilitator.settle(bodies[1])).body.errorReason,
    (await verify(three, 'mpp', await charge(three))).body.message,
    (await pay(three, payer)).body.reason,
  ]
  expect(refusals).toEqual([
    'insufficient_funds',
    'insufficient_funds',
    'The authorization was refused: insufficient_funds.',
    'insufficient_funds',
  ])
  expect((await facilitator.settle(bodies[0])).body.success).toBe(true)
  expect((await pay(three, payer)).status, 'the rest belongs to the open charge').toBe(402)
})

/** Accepts every signature while its first word of storage is zero, and burns all of its gas afterwards. */
const burnsLater = `0x5f5460155763${'1626ba7e'}60e01b60005260206000f35b601556`

test('a contract that turns hostile after its trial burns once, at its organisation’s expense, and is not sent again', async () => {
  const [hostile, honest] = [await aShop(), await aShop()]
  const address: Address = '0x00000000000000000000000000000000b0bb1e56'
  await anvil().setCode({ address, bytecode: burnsLater as Hex })
  await fundToken(chain, 'USDC', address, 1_000_000n)
  const owner = await aPayer()
  const verified = await pay(hostile, owner, {
    sign: { from: address },
    after: ({ payload }) => {
      payload.signature = `0x${'ab'.repeat(80)}`
    },
  })
  expect(verified.status).toBe(200)
  await anvil().setAutomine(false)
  const settling = settle(hostile, verified)
  await expect.poll(async () => (await anvil().getTxpoolStatus()).pending, { timeout: 30_000 }).toBe(1)
  await anvil().setStorageAt({ address, index: 0, value: `0x${'0'.repeat(63)}1` })
  await anvil().setAutomine(true)
  await anvil().mine({ blocks: 1 })
  const response = await settling
  expect([response.status, response.body.reason]).toEqual([409, 'invalid_exact_evm_transaction_failed'])
  const Row = z.object({ sent: z.bigint(), charged: z.string(), reserved: z.string() })
  const { sent, charged, reserved } = await world.database.db.one(
    Row,
    sql`select (select attempts from relays where subject_id = p.id)::bigint as sent, gas_reserved_nano_usd::text as reserved,
      (select nano_usd::text from gas_budgets where organisation_id = p.organisation_id) as charged
      from payments p where id = ${String(verified.body.paymentId)}`,
  )
  expect([sent, reserved]).toEqual([1_000n, '0'])
  // A billionth of a dollar for each gwei: one transaction with the burnt grant, not two.
  expect(BigInt(charged)).toBeGreaterThan(350_000n)
  expect(BigInt(charged)).toBeLessThan(900_000n)
  expect((await settle(honest, await pay(honest, await aPayer(chain)))).status).toBe(200)
})
