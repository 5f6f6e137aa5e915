import type { Address, Hex } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createRecorder } from '../src/features/payments/index.ts'
import { sql } from '../src/platform/db/db.ts'
import { newId } from '../src/platform/ids.ts'
import { forTenant, systemCtx } from '../src/platform/work/runner.ts'
import { freshDatabase } from './database.ts'
import { readsCounted } from './rows-read.ts'
import { newPaymentOf } from './sim/new-payment.ts'
import { aStage, type Stage } from './sim/stage.ts'

let stage: Stage

beforeAll(async () => {
  stage = await aStage(await freshDatabase())
})
afterAll(() => stage?.stop())

const others = 5_000
const payTo: Address = `0x${'d'.repeat(40)}`
const accountOf = (index: number): Address => `0x${index.toString(16).padStart(40, 'a')}`
const nonceOf = (index: number): Hex => `0x${index.toString(16).padStart(64, '0')}`

test('recording a payment reads no row of other payers, however many have open payments', async () => {
  const { deps } = stage
  const [tenant] = stage.tenants
  if (tenant === undefined) throw new Error('there is no organisation')
  const ctx = {
    ...forTenant(systemCtx(deps), tenant),
    actor: { kind: 'api-key', apiKeyId: newId('key', deps) },
  } as const
  const { db, rows } = readsCounted(stage.db, '^(payments|payment_claims|relays)')
  const record = createRecorder({ db }, { nanoUsdPerDayMax: 10n ** 18n, openPerPayerMax: 100, verifiedMsMax: 60_000 })
  const recordOne = async (index: number): Promise<bigint> => {
    const before = rows()
    const authorization = {
      from: accountOf(index),
      to: payTo,
      value: 1n,
      validBefore: 4_000_000_000n,
      nonce: nonceOf(index),
    }
    const payment = newPaymentOf(ctx, stage, {
      signed: { form: 'eip3009', authorization },
      kind: 'honest',
      entryPoint: 'verify',
      claimKey: `claim-${index}`,
      challengeId: '',
    })
    await record({ ctx, payment, funds: { rawBalance: 1n, spentIds: [] } })
    return rows() - before
  }
  // Named statements get their general plans after five runs, here from tables that are empty.
  for (let index = 0; index < 7; index += 1) await recordOne(index)
  await stage.db.run(sql`
    insert into payments select (jsonb_populate_record(payments, jsonb_build_object('id', payments.id || n, 'log_id', log_id || n,
      'claim_key', claim_key || n, 'payer', '0x' || lpad(n::text, 40, 'b')))).*
    from payments, generate_series(1, ${others}) as n where claim_key like '%claim-0'`)
  const { count } = await stage.db.one(z.object({ count: z.bigint() }), sql`select count(*) as count from payments`)
  expect(count).toBe(BigInt(others + 7))
  expect(await recordOne(7)).toBeLessThan(10n)
}, 60_000)
