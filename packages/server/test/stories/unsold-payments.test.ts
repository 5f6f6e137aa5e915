import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aPayer, aWorld, codeOf, countByStatus, type Org, type Payer, type World } from '../world.ts'

let chain: DevChain
let world: World

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], boot: { releasedPerDayMin: 1_000 } })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const purchase = { resource: 'https://api.example.com/weather', price: '0.01' }

interface Shop {
  readonly org: Org
  readonly walletId: string
}

async function aShop(plan: 'hobby'): Promise<Shop> {
  const org = await world.organisation(plan)
  return { org, walletId: (await world.wallet(org)).id }
}

function challenge({ org, walletId }: Shop): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/challenge', { walletId, ...purchase })
}

async function pay(shop: Shop, payer: Payer, offered?: Answer): Promise<Answer> {
  const { org, walletId } = shop
  const credential = await payer.credential(offered ?? (await challenge(shop)))
  return world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'x402', credential, walletId, ...purchase })
}

test('released payments have a limit: a payer whose payments were all released is refused, and another payer buys; each leaves no audit record', async () => {
  const [shop, payer] = [await aShop('hobby'), await aPayer(chain)]
  const [answers, offered] = [[] as Answer[], await challenge(shop)]
  for (let index = 0; index < 103; index += 1) {
    const verified = await pay(shop, payer, offered)
    answers.push(verified)
    if (verified.status !== 200) continue
    const { paymentId, settlementToken } = verified.body
    await world.call(shop.org.testKey, 'POST', `/payments/${String(paymentId)}/release`, { settlementToken })
  }
  expect(countByStatus(answers)).toEqual({ 200: 101, 429: 2 })
  const refused = answers.at(-1) as Answer
  expect(codeOf(refused)).toBe('too-many-open-payments')
  expect(refused.body.detail).toContain('released')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await pay(shop, await aPayer(chain))).status).toBe(200)
  const audit = await world.call(shop.org.testKey, 'GET', '/organisations/current/audit-log?action=payments.voided')
  expect(audit.list).toEqual([])
}, 60_000)

test('a claim of a voided payment stays until its signature can move no money', async () => {
  const [shop, payer] = [await aShop('hobby'), await aPayer(chain)]
  const verified = await pay(shop, payer)
  const { paymentId, settlementToken } = verified.body
  await world.call(shop.org.testKey, 'POST', `/payments/${String(paymentId)}/release`, { settlementToken })
  const claims = async () =>
    Number(
      (
        await world.database.db.one(
          z.object({ count: z.bigint() }),
          sql`select count(*) from payment_claims where payment_id = ${String(paymentId)}`,
        )
      ).count,
    )
  expect(await claims()).toBe(1)
  await world.database.db.run(sql`
    update payments set valid_before = clock_timestamp() - interval '2 days', settlement = jsonb_set(settlement, '{validBefore}', '"1700000000"'), check_at = clock_timestamp() where id = ${String(paymentId)}`)
  await expect.poll(claims, { timeout: 30_000 }).toBe(0)
})

test('the claim of a voided payment is deleted after the clock has passed the end of its signature, also if the chain’s time is ahead', async () => {
  const [shop, payer] = [await aShop('hobby'), await aPayer(chain)]
  const verified = await pay(shop, payer)
  const { paymentId, settlementToken } = verified.body
  await world.call(shop.org.testKey, 'POST', `/payments/${String(paymentId)}/release`, { settlementToken })
  const checkedAgain = async () => {
    const { isDue, isWatched } = await world.database.db.one(
      z.object({ isDue: z.boolean().nullable(), isWatched: z.boolean() }),
      sql`select check_at <= clock_timestamp() as is_due, check_at is not null as is_watched from payments where id = ${String(paymentId)}`,
    )
    return isDue === true ? 'waiting' : isWatched
  }
  await world.database.db.run(sql`
    update payments set settlement = jsonb_set(settlement, '{validBefore}', '"1700000000"'), check_at = '2020-01-01' where id = ${String(paymentId)}`)
  await expect.poll(checkedAgain, { timeout: 30_000 }).not.toBe('waiting')
  expect(await checkedAgain(), 'the clock is before the end').toBe(true)
  await world.database.db.run(sql`
    update payments set valid_before = clock_timestamp() - interval '2 days', check_at = clock_timestamp() where id = ${String(paymentId)}`)
  const claims = async () =>
    (
      await world.database.db.one(
        z.object({ count: z.bigint() }),
        sql`select count(*) from payment_claims where payment_id = ${String(paymentId)}`,
      )
    ).count
  await expect.poll(claims, { timeout: 30_000 }).toBe(0n)
})
