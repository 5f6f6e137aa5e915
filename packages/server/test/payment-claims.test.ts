import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createRecorder } from '../src/features/payments/index.ts'
import { deleteClaims } from '../src/features/payments/settlement-store.ts'
import type { NewPayment } from '../src/features/payments/store.ts'
import { type Db, sql } from '../src/platform/db/db.ts'
import { listMigrations, migrate } from '../src/platform/db/migrate.ts'
import { isProblem } from '../src/platform/errors.ts'
import { id, newId } from '../src/platform/ids.ts'
import { forTenant, systemCtx } from '../src/platform/work/runner.ts'
import { anEmptyDatabase, freshDatabase } from './database.ts'
import { newPaymentOf } from './sim/new-payment.ts'
import { aStage, type Stage } from './sim/stage.ts'

let stage: Stage

beforeAll(async () => {
  stage = await aStage(await freshDatabase())
})
afterAll(() => stage?.stop())

type Claims = Partial<Pick<NewPayment, 'claimKey' | 'challengeId' | 'paymentIdentifier' | 'payer'>>

/** Records a payment with these claims for one of the organisations, as a process of its own does; returns 'recorded' or the refusal's code. */
async function record(claims: Claims, { by = 0, db = stage.db }: { by?: number; db?: Db } = {}): Promise<string> {
  const tenant = stage.tenants[by]
  if (tenant === undefined) throw new Error('there is no organisation')
  const { deps } = stage
  const actor = { kind: 'api-key', apiKeyId: newId('key', deps) } as const
  const ctx = { ...forTenant(systemCtx(deps), tenant), actor }
  const hex = (bytes: number): `0x${string}` => `0x${randomBytes(bytes).toString('hex')}`
  const authorization = { from: hex(20), to: hex(20), value: 1n, validBefore: 4_000_000_000n, nonce: hex(32) }
  const signed = { form: 'eip3009', authorization } as const
  const bought = { signed, kind: 'honest', entryPoint: 'verify', claimKey: hex(8), challengeId: '' } as const
  const payment = { ...newPaymentOf(ctx, stage, bought), ...claims }
  const recorder = createRecorder({ db }, { nanoUsdPerDayMax: 10n ** 18n, openPerPayerMax: 100, verifiedMsMax: 60_000 })
  try {
    await recorder({ ctx, payment })
    return 'recorded'
  } catch (error) {
    if (isProblem(error)) return error.code
    throw error
  }
}

let serial = 0
const payer = `0x${'f'.repeat(40)}`
const fresh = (): string => `name-${++serial}`
const both = ['recorded', 'duplicate-payment']

test('a claim and a challenge pay once for all organisations, an identifier once for its own and its payer', async () => {
  const [claimKey, challengeId, paymentIdentifier] = [fresh(), fresh(), fresh()]
  expect(await record({ claimKey, challengeId, paymentIdentifier, payer })).toBe('recorded')
  for (const by of [0, 1]) {
    expect(await record({ claimKey }, { by })).toBe('duplicate-payment')
    expect(await record({ challengeId }, { by })).toBe('duplicate-payment')
  }
  expect(await record({ paymentIdentifier, payer })).toBe('duplicate-payment')
  expect(await record({ paymentIdentifier, payer: payer.toUpperCase() })).toBe('duplicate-payment')
  expect(await record({ paymentIdentifier, payer }, { by: 1 })).toBe('recorded')
  expect(await record({ paymentIdentifier, payer: `0x${'e'.repeat(40)}` }), 'another payer').toBe('recorded')
  expect(await record({ claimKey: null, challengeId: null })).toBe('recorded')
})

test.each(['claimKey', 'challengeId', 'paymentIdentifier'] as const)(
  'of twenty uses of one %s at once one is recorded',
  async (kind) => {
    const name = fresh()
    const uses = Array.from({ length: 20 }, (_, at) =>
      record({ [kind]: name, payer }, { by: kind === 'paymentIdentifier' ? 0 : at % 4 }),
    )
    const outcomes = await Promise.all(uses)
    expect(outcomes.filter((outcome) => outcome === 'recorded')).toHaveLength(1)
    expect(new Set(outcomes)).toEqual(new Set(both))
  },
)

const IdRow = z.object({ id: z.string() })

test('a use that waits for another one’s transaction is refused if it commits, and recorded if it does not', async () => {
  const { db } = stage
  for (const isCommitted of [true, false]) {
    const name = fresh()
    let second: Promise<string> | undefined
    const first = db.tx(async (tx) => {
      await record({ claimKey: name }, { db: { ...db, tx: (work) => work(tx) } })
      second = record({ claimKey: name, challengeId: `${name} of the second` }, { by: 1 })
      const waits = sql`select pid::text as id from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      await expect.poll(async () => (await db.many(IdRow, waits)).length, { timeout: 20_000, interval: 5 }).toBe(1)
      if (!isCommitted) throw new Error('rolled back')
    })
    await (isCommitted ? first : expect(first).rejects.toThrow('rolled back'))
    expect(await second).toBe(isCommitted ? 'duplicate-payment' : 'recorded')
    // The refused one has used up nothing of its own.
    expect(await record({ challengeId: `${name} of the second` })).toBe(isCommitted ? 'recorded' : 'duplicate-payment')
  }
})

test('each payment with a claim has one row of claims, and no other is there', async () => {
  const lost = sql`
    select coalesce(p.id, c.payment_id) as id from payments p full join payment_claims c on c.payment_id = p.id
    where (c.payment_id is null and coalesce(p.claim_key, p.challenge_id, p.payment_identifier) is not null)
      or p.id is null or c.claim_hash is distinct from claim_hash(p.claim_key) or c.challenge_hash is distinct from claim_hash(p.challenge_id)`
  expect(await stage.db.many(IdRow, lost)).toEqual([])
})

/** Records as the previous version did. */
function recordAsBefore(db: Db, id: string, claimKey: string): Promise<number> {
  return db.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, chain, network, token, asset, decimals, raw_amount, pay_to, status,
      claim_key, challenge_id, created_at)
    select ${id}, ${`plog_${id.slice(4)}`}, 'org_x', 'test', 'key_x', 'x402', 'base', 'base', 'USDC', '0x1', 6, 1, '0x2', 'settled',
      ${claimKey}::text, ${`challenge ${claimKey}`}::text, now()
    where not exists (select from payments as known where known.claim_key = ${claimKey}) on conflict do nothing`)
}

test('a migration keeps the claims of old payments, while a process of the previous version sells and finds what is used', async () => {
  const { db, url, drop } = await anEmptyDatabase()
  const all = await listMigrations()
  await migrate({ url, migrations: all.filter(({ name }) => name < '0164') })
  const deps = stage.deps
  const sold: string[] = []
  const sell = async (): Promise<void> => {
    const claimKey = fresh()
    expect(await recordAsBefore(db, newId('pay', deps), claimKey)).toBe(1)
    sold.push(claimKey)
  }
  for (let count = 0; count < 200; count += 1) await sell()
  let isMigrating = true
  const selling = (async () => {
    while (isMigrating) {
      await sell()
      const used = sold[serial % sold.length] ?? ''
      expect(await recordAsBefore(db, newId('pay', deps), used)).toBe(0)
    }
  })()
  await migrate({ url })
  isMigrating = false
  await selling
  expect(sold.length).toBeGreaterThan(200)
  for (let count = 0; count < 20; count += 1) await sell()
  const missing = sql`
    select claim_key as id from payments where not exists (select from payment_claims where claim_hash = claim_hash(claim_key) and payment_id = id)`
  expect(await db.many(IdRow, missing)).toEqual([])
  const counted = sql`select (select count(*) from payment_claims) as claims, (select count(*) from payments) as payments`
  const count = BigInt(sold.length)
  expect(await db.one(z.object({ claims: z.bigint(), payments: z.bigint() }), counted)).toEqual({
    claims: count,
    payments: count,
  })
  for (const used of sold) expect(await recordAsBefore(db, newId('pay', deps), used)).toBe(0)
  const look = { text: `explain select from payments where claim_key = 'x'`, values: [] }
  await db.run({ text: 'analyze payments_first', values: [] })
  const plan = (await db.many(z.record(z.string(), z.string()), look)).map((row) => Object.values(row)[0]).join('\n')
  expect(plan).toContain('payments_first_by_claim')
  await drop()
}, 60_000)

test('the deletion of a claim keeps the identifier of its payment', async () => {
  const [named, nameless, paymentIdentifier] = [fresh(), fresh(), fresh()]
  expect(await record({ claimKey: named, challengeId: null, paymentIdentifier, payer })).toBe('recorded')
  expect(await record({ claimKey: nameless, challengeId: null, payer })).toBe('recorded')
  const ids = await stage.db.many(
    z.object({ id: id('pay') }),
    sql`update payments set status = 'voided' where claim_key in (${named}, ${nameless}) returning id`,
  )
  await stage.db.tx((tx) =>
    deleteClaims(
      tx,
      ids.map((row) => row.id),
    ),
  )
  expect(await record({ claimKey: fresh(), challengeId: null, paymentIdentifier, payer })).toBe('duplicate-payment')
  for (const claimKey of [named, nameless])
    expect(await record({ claimKey, challengeId: null, payer })).toBe('recorded')
})
