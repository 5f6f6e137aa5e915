import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { followWithdrawals } from '../../src/features/withdrawals/index.ts'
import type { Deps } from '../../src/modules.ts'
import type { OffRamp, Payout } from '../../src/partners/offramp/port.ts'
import { sql } from '../../src/platform/db/db.ts'
import { newId, type OrganisationId } from '../../src/platform/ids.ts'
import { bindTasks } from '../../src/platform/work/runner.ts'
import { fillTable } from '../fill-table.ts'
import { aPartner } from '../off-ramp-partner.ts'
import { aWorld, type Org, unreachableMain, type World } from '../world.ts'

let world: World
const hangs: PromiseWithResolvers<void>[] = []
const continuing: Promise<void>[] = []
let isHanging = true
/** Withdrawals made so far. */
let made = 0

beforeAll(async () => {
  world = await aWorld({ rpcUrls: unreachableMain, config: { role: 'api' } })
})
beforeEach(() => {
  isHanging = true
})
afterEach(async () => {
  isHanging = false
  for (const { resolve } of hangs.splice(0)) resolve()
  await Promise.all(continuing.splice(0))
  await world.database.db.run(sql`delete from withdrawals`)
})
afterAll(() => world?.stop())

/** Withdrawals whose payouts were agreed a day ago, and whose tokens were not sent; the first one is due first. */
async function agreed(owner: Org, count: number, { environment = 'test', age = '1 day' } = {}): Promise<void> {
  const last = made + count
  const walletId = newId('mwt', world.server.deps)
  const bankAccountId = newId('bac', world.server.deps)
  await world.database.db.run(sql`
    insert into bank_accounts (id, organisation_id, environment, account_name, currency, masked_account, is_active, details, created_at)
    values (${bankAccountId}, ${owner.id}, ${environment}, 'Jane Doe', 'GBP', '****5678', true, '\\x00', now())`)
  const own = {
    id: `'wdr_' || lpad(n::text, 26, '0')`,
    organisation_id: `'${owner.id}'`,
    environment: `'${environment}'`,
    wallet_id: `'${walletId}'`,
    bank_account_id: `'${bankAccountId}'`,
    from_address: `'0x${'1'.repeat(40)}'`,
    deposit_address: `'0x${'2'.repeat(40)}'`,
    chain: `'base'`,
    network: environment === 'live' ? `'base'` : `'base-sepolia'`,
    token: `'USDC'`,
    decimals: '6',
    raw_amount: '1000000',
    currency: `'GBP'`,
    status: `'pending_conversion'`,
    partner: `'sandbox'`,
    payout_id: `'p-' || n`,
    metadata: `'{}'`,
    created_at: `now() - interval '1 day'`,
    next_look_at: `now() - interval '${age}' + n * interval '1 millisecond'`,
  }
  await fillTable(world.database.db, 'withdrawals', own, { first: made + 1, last })
  made = last
}

/** A partner at which every payout has expired. Its responses wait for `delay`. */
function expiring(delay: (payoutId: string) => Promise<void>): OffRamp {
  const payout: Payout = { payoutId: '', state: 'pending_conversion', partnerState: 'expired', awaitsDeposit: false }
  return {
    ...aPartner().partner,
    async readPayout(payoutId) {
      await delay(payoutId)
      return { ...payout, payoutId }
    },
  }
}

const hang = (): Promise<void> => {
  if (!isHanging) return Promise.resolve()
  const hung = Promise.withResolvers<void>()
  hangs.push(hung)
  return hung.promise
}

/** Begins a run as the runner does. */
function run(offRamps: Deps['offRamps']): void {
  const [loop] = bindTasks({ ...world.server.deps, offRamps }, [followWithdrawals])
  continuing.push(loop?.run((work) => continuing.push(work)) ?? Promise.reject(new Error('no loop')))
}

async function failed(owner: OrganisationId, environment: 'test' | 'live'): Promise<number> {
  const statement = sql`select count(*)::int as count from withdrawals
    where organisation_id = ${owner} and environment = ${environment} and status = 'failed' and reason = 'payout-lapsed'`
  return (await world.database.db.one(z.object({ count: z.number() }), statement)).count
}

test('a sandbox that does not answer delays no live payout', async () => {
  const [tester, seller] = [await world.organisation(), await world.organisation()]
  await agreed(tester, 40)
  await agreed(seller, 1, { environment: 'live', age: '1 hour' })
  run({ test: expiring(hang), live: expiring(async () => undefined) })
  await expect.poll(() => failed(seller.id, 'live'), { timeout: 5_000 }).toBe(1)
  expect(await failed(tester.id, 'test')).toBe(0)
})

test('a tenant whose payouts get no answer delays no payout of another, and only what has a place is taken', async () => {
  const [busy, other] = [await world.organisation(), await world.organisation()]
  await agreed(busy, 240)
  await agreed(other, 1, { age: '1 hour' })
  const own = `p-${made}`
  const partner = expiring((payoutId) => (payoutId === own ? Promise.resolve() : hang()))
  run({ test: partner, live: undefined })
  await expect.poll(() => failed(other.id, 'test'), { timeout: 5_000 }).toBe(1)
  const taken = sql`select count(*)::int as count from withdrawals where organisation_id = ${busy.id} and next_look_at > now()`
  expect(await world.database.db.one(z.object({ count: z.number() }), taken)).toEqual({ count: 4 })

  isHanging = false
  for (const { resolve } of hangs.splice(0)) resolve()
  const followed = () => {
    run({ test: partner, live: undefined })
    return failed(busy.id, 'test')
  }
  await expect.poll(followed, { timeout: 30_000, interval: 200 }).toBe(240)
})
